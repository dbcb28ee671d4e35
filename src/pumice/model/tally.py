"""Tallies: tasks counted by status, so that every question about readiness is a comparison of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pumice.model import statuses
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

BEST_EFFORT_PENDING = statuses.COUNT

# Asked for every job in every cycle: plain integers index lists several times faster than members of an enumeration.
ALLOCATED, PIPELINED, BINDING = int(Status.ALLOCATED), int(Status.PIPELINED), int(Status.BINDING)
BOUND, RUNNING, SUCCEEDED = int(Status.BOUND), int(Status.RUNNING), int(Status.SUCCEEDED)
PENDING, RELEASING, EVICTING = int(Status.PENDING), int(Status.RELEASING), int(Status.EVICTING)


class Tally:
    """Tasks counted by status, with one more slot for pending best-effort tasks."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = [0] * (statuses.COUNT + 1)

    @property
    def ready(self) -> int:
        """Tasks that are placed or have succeeded."""
        c = self.counts
        return c[ALLOCATED] + c[BINDING] + c[BOUND] + c[RUNNING] + c[SUCCEEDED]

    @property
    def waiting(self) -> int:
        """Tasks placed on room that is still being released."""
        return self.counts[PIPELINED]

    @property
    def expected(self) -> int:
        """Tasks that are placed, have succeeded or wait for room that is still being released."""
        c = self.counts  # asked in every turn, so without asking `ready`
        return c[ALLOCATED] + c[BINDING] + c[BOUND] + c[RUNNING] + c[SUCCEEDED] + c[PIPELINED]

    @property
    def valid(self) -> int:
        """Tasks that are, or may still be, placed."""
        c = self.counts  # asked about every job that waits, so without asking `ready`
        placed = c[ALLOCATED] + c[BINDING] + c[BOUND] + c[RUNNING] + c[SUCCEEDED]
        return placed + c[PIPELINED] + c[PENDING]

    @property
    def total(self) -> int:
        """All tasks."""
        return sum(self.counts[: statuses.COUNT])

    @property
    def started(self) -> int:
        """Tasks that are placed or have succeeded, pending best-effort ones counting as placed."""
        c = self.counts  # asked about every job that could be taken from, so without asking `ready`
        return c[ALLOCATED] + c[BINDING] + c[BOUND] + c[RUNNING] + c[SUCCEEDED] + c[BEST_EFFORT_PENDING]

    def is_ready(self, minimum: int) -> bool:
        """Tell whether the minimum is placed, pending best-effort tasks counting as placed."""
        c = self.counts  # asked after every placement, so without asking `started`
        placed = c[ALLOCATED] + c[BINDING] + c[BOUND] + c[RUNNING] + c[SUCCEEDED]
        return placed + c[BEST_EFFORT_PENDING] >= minimum

    def is_pipelined(self, minimum: int) -> bool:
        """Tell whether the minimum is placed or waits for room that is being released."""
        return self.expected + self.counts[BEST_EFFORT_PENDING] >= minimum

    def is_starving(self, minimum: int) -> bool:
        """Tell whether fewer than the minimum are placed or waiting."""
        return self.expected < minimum


def count(tallies: Iterable[Tally], status: Status, sign: int, *, best_effort: bool) -> None:
    """Count a task that has come, or one less that has gone."""
    for tally in tallies:
        tally.counts[status] += sign
        if best_effort and status == PENDING:
            tally.counts[BEST_EFFORT_PENDING] += sign


def move(tallies: Iterable[Tally], before: Status, after: Status, best_effort: bool) -> None:
    """Count a task under another status; asked for every step of every task, so without keywords."""
    for tally in tallies:
        counts = tally.counts
        counts[before] -= 1
        counts[after] += 1
        if best_effort:
            counts[BEST_EFFORT_PENDING] += (after == PENDING) - (before == PENDING)


class Counted(Protocol):
    """A task, as far as it is counted."""

    best_effort: bool
    tallies: tuple[Tally, ...]


def move_all(tasks: Iterable[Counted], befores: Iterable[Status], after: Status) -> None:
    """Count many tasks under another status, without a call for each."""
    last, left, reached = None, 0, int(after)
    for task, before in zip(tasks, befores, strict=True):
        if before is not last:
            last, left = before, int(before)
        for tally in task.tallies:
            counts = tally.counts
            counts[left] -= 1
            counts[reached] += 1
            if task.best_effort:
                counts[BEST_EFFORT_PENDING] += (reached == PENDING) - (left == PENDING)
