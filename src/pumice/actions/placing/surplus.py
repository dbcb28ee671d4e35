"""Pods beyond the minimum of their jobs: one a turn, or many at once where all turns between would be the job's own.

Whoever has a turn again right after its last one is given ahead what it would get in its next turns, twice as much each time. If somebody else would come first by then, or the queue is
given no more, less is given ahead: so each pod goes where it would have gone one a turn, provided that what is given to a job moves it, and its queue, one way only in their orders (`1x10000-free`: 9.9 times as fast).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.placing import task_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.model.job import Job
    from pumice.model.task import Task


class Surplus:
    """Who had the last turn and what was given ahead in it, and the equal tasks with which the next turn of each job begins."""

    __slots__ = ("_ahead", "_last", "_runs")

    def __init__(self) -> None:
        self._last: Job | None = None
        self._ahead = 0
        self._runs: dict[str, list[Task]] = {}

    def begin(self, job: Job) -> bool:
        """Note whose turn it is, and tell whether its last turn was the last of all."""
        again, self._last = job is self._last, job
        if not again:
            self._ahead = 0
        return again

    def place_ahead(self, turn: Turn, tasks: Sequence[Task], is_next: Callable[[], bool]) -> int:
        """Place the first of a job's tasks that it would get in turns right before this one, as long as the next turn would be its own; returns how many."""
        if tasks[0].gated or not turn.session.independence.placements_stand or not turn.session.shortcuts.rounds:
            return 0
        run = self._run(turn, tasks)
        # One task is left: its turn says what is to be said of those for whom there is no room.
        count = min(2 * self._ahead + 1, len(run), len(tasks) - 1)
        self._ahead = task_runs.place_equal_ahead(turn, run[:count], is_next) if count else 0
        self._runs[turn.job.key] = run[self._ahead :]
        return self._ahead

    def place_next(self, turn: Turn, tasks: Sequence[Task]) -> list[Task]:
        """Place the first task that finds a node; returns those that were not tried."""
        run = self._run(turn, tasks)
        left = task_runs.place_until(turn, tasks, lambda: True, run)
        self._runs[turn.job.key] = run[len(tasks) - len(left) :]
        return left

    def _run(self, turn: Turn, tasks: Sequence[Task]) -> list[Task]:
        """Return the equal tasks that come first; those that were left of them by the last turn are known to be equal."""
        known = self._runs.get(turn.job.key)
        if not known or tasks[: len(known)] != known:
            known = task_runs.next_run(turn.session, tasks)
        return known
