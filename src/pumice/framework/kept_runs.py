"""Runs that stay applied until the session closes: thousands may be held, and any task of them is found at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.runs import Run
    from pumice.model.task import Task


class KeptRuns:
    """Runs in the order in which they were kept; a task that is in several is looked for in the latest."""

    __slots__ = ("_holding", "_next", "_runs", "resting")

    def __init__(self) -> None:
        self._next = 0
        # By number, and once a task was taken out of a run by its tasks, each by itself.
        self._runs: dict[int, Run | dict[str, Run]] = {}
        self._holding: dict[str, int] = {}  # the number of a run by the uid of each of its tasks
        self.resting: dict[str, Run] = {}  # those of one task that are undone together, by its uid

    def __iter__(self) -> Iterator[Run]:
        for kept in self._runs.values():
            if isinstance(kept, dict):
                yield from kept.values()
            else:
                yield kept

    def add(self, run: Run) -> None:
        """Keep one more."""
        self._runs[self._next] = run
        for task in run.tasks:
            self._holding[task.uid] = self._next
        self._next += 1

    def take(self, task: Task) -> Run | None:
        """Take one task out; returns it as a run of its own, None if it is in no run."""
        number = self._holding.pop(task.uid, None)
        if number is None:
            return self.resting.pop(task.uid, None)
        kept = self._runs[number]
        if not isinstance(kept, dict):
            if len(kept.tasks) == 1:
                del self._runs[number]
                return kept
            kept = self._runs[number] = {each.uid: kept.pick([place]) for place, each in enumerate(kept.tasks)}
        single = kept.pop(task.uid)
        if not kept:
            del self._runs[number]
        return single

    def put_last(self, task: Task, *, evicted: bool) -> None:
        """Let a task be the last that was kept; `evicted` says that pods were evicted for it."""
        if (run := self.take(task)) is not None:
            run.evicted = evicted
            self.add(run)

    def take_all(self) -> list[Run]:
        """Take everything out, in order."""
        runs, self._runs = list(self), {}
        self._holding.clear()
        return runs
