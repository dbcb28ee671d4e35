"""Room that is promised to jobs that do not run yet: as columns, and as a profile of what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.plugins.timeline.profile import BEGINNING, Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector

AT_FIRST = 64


class Promises:
    """Promises by job; a line of the columns is what a job has on one node. Lines of jobs that are gone stop before everything."""

    def __init__(self) -> None:
        self.profile = Profile()
        self._lines: dict[str, list[int]] = {}
        self._free: list[int] = []
        self.begin(0, 0)

    def begin(self, nodes: int, width: int) -> None:
        """Forget everything; there are so many nodes and resources."""
        self.profile = Profile()
        self.profile.build(np.zeros((nodes, width), dtype=np.int64), {})
        self._lines = {}
        self._free = list(range(AT_FIRST))
        self._jobs = [""] * AT_FIRST
        self._rows, self._starts = np.zeros(AT_FIRST, dtype=np.int64), np.zeros(AT_FIRST, dtype=np.int64)
        self._stops = np.full(AT_FIRST, BEGINNING)
        self._amounts: Matrix = np.zeros((AT_FIRST, width), dtype=np.int64)

    def __contains__(self, job: str) -> bool:
        return job in self._lines

    def __len__(self) -> int:
        return len(self._jobs) - len(self._free)

    def put(self, job: str, rows: Sequence[int], amounts: Matrix, start: int, stop: int) -> None:
        """Promise a job some amounts, each on a node, from one time to another, beside what it was promised."""
        self._enter(job, rows, amounts, start, stop)
        self.profile.change(rows, -amounts, start, stop)

    def put_all(self, promises: Sequence[tuple[str, Sequence[int], Matrix, int, int]]) -> None:
        """Promise many jobs something at once."""
        lines = [line for each in promises for line in self._enter(*each)]
        self.profile.take(self._rows[lines], self._amounts[lines], self._starts[lines], self._stops[lines])

    def _enter(self, job: str, rows: Sequence[int], amounts: Matrix, start: int, stop: int) -> list[int]:
        while len(self._free) < len(rows):
            self._grow()
        lines = [self._free.pop() for _ in rows]
        self._lines.setdefault(job, []).extend(lines)
        self._rows[lines], self._amounts[lines] = rows, amounts
        self._starts[lines], self._stops[lines] = start, stop
        for line in lines:
            self._jobs[line] = job
        return lines

    def drop(self, job: str) -> None:
        """Take back all that a job was promised."""
        lines = self._lines.pop(job)
        for start, stop in dict.fromkeys(zip(self._starts[lines].tolist(), self._stops[lines].tolist(), strict=True)):
            then = [line for line in lines if self._starts[line] == start and self._stops[line] == stop]
            self.profile.change(self._rows[then].tolist(), self._amounts[then], start, stop)
        self._stops[lines] = BEGINNING
        self._free += lines
        if len(self.profile) > 4 * len(self) + 2 * self.profile.nodes + AT_FIRST:
            self.profile.compact()

    def _grow(self) -> None:
        before = len(self._jobs)
        self._free += range(before, 2 * before)
        self._jobs += [""] * before
        self._rows, self._starts = np.tile(self._rows, 2), np.tile(self._starts, 2)
        self._stops = np.append(self._stops, np.full(before, BEGINNING))
        self._amounts = np.concatenate((self._amounts, self._amounts))

    def begun_by(self, moment: int) -> list[str]:
        """Return whose promises have begun by some time; who has some on several nodes is named for each."""
        lines = np.flatnonzero((self._starts <= moment) & (self._stops > BEGINNING))
        return [self._jobs[line] for line in lines.tolist()]

    def begins(self, since: int) -> Vector:
        """Return when promises begin, each time once; those that have begun by some time begin then."""
        found: Vector = np.unique(np.maximum(self._starts[self._stops > BEGINNING], since))
        return found

    def rows(self, by: int) -> Rows:
        """Return the nodes of promises that have begun by some time."""
        found: Rows = self._rows[(self._starts <= by) & (self._stops > BEGINNING)]
        return found

    def before(
        self, rows: Sequence[int], moment: int, column: int, most: int
    ) -> tuple[list[tuple[str, int, int]], int]:
        """Return whose promises on some nodes are over by some time, what each has there of a resource and until when, the last ones alone; and how many there are."""
        here = np.zeros(self.profile.nodes, dtype=np.bool_)
        here[list(rows)] = True
        over = (self._stops <= moment) & (self._stops > BEGINNING) & (self._amounts[:, column] > 0)
        lines = np.flatnonzero(over)
        lines = lines[here[self._rows[lines]]]
        stops = self._stops[lines]
        count = len({self._jobs[line] for line in lines.tolist()}) if here.sum() > 1 else len(lines)
        latest: dict[str, tuple[int, int]] = {}
        for line in lines[np.argsort(-stops, kind="stable")].tolist():
            job, stop = self._jobs[line], int(self._stops[line])
            if job not in latest and len(latest) >= most and stop < min(each for _, each in latest.values()):
                break
            amount, _ = latest.get(job, (0, 0))
            latest[job] = (amount + int(self._amounts[line, column]), stop)
        return [(job, amount, stop) for job, (amount, stop) in latest.items()], count
