"""What goes together when a pod is reclaimed: alone if its gang keeps its minimum without it, else with everybody that is left of the gang.

A gang that goes whole is judged once, before it goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model.job import BEST_EFFORT_PENDING
from pumice.model.statuses import ALLOCATED_LIKE

if TYPE_CHECKING:
    from pumice.model.job import Job, Tally
    from pumice.model.task import Task


class Units:
    """Who goes with whom in one question about candidates in victim order; with `whole` false, everybody goes alone."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._lost: dict[int, int] = {}
        self._gone: dict[str, None] = {}

    def is_gone(self, task: Task) -> bool:
        """Tell whether a task goes with its gang already."""
        return task.uid in self._gone

    def unit(self, task: Task) -> list[Task]:
        """Return what has to go if a task goes, itself first."""
        job = task.job
        if not self._whole or job is None or self._keeps_its_minimum(job, task):
            return [task]
        rest = [
            t for t in job.tasks.values() if t.status in ALLOCATED_LIKE and t is not task and t.uid not in self._gone
        ]
        return [task, *rest]

    def take(self, unit: list[Task]) -> None:
        """Note that a unit goes."""
        for task in unit:
            self._gone[task.uid] = None
            for tally in task.tallies:
                self._lost[id(tally)] = self._lost.get(id(tally), 0) + 1

    def _keeps_its_minimum(self, job: Job, task: Task) -> bool:
        """Tell whether a gang, its roles and its sub-groups stay complete without one more of its placed tasks."""
        own = frozenset(map(id, task.tallies))

        def left(tally: Tally) -> int:
            return tally.ready - self._lost.get(id(tally), 0) - (id(tally) in own)

        def reaches(tally: Tally | None, minimum: int) -> bool:
            return minimum <= (0 if tally is None else left(tally) + tally.counts[BEST_EFFORT_PENDING])

        if not reaches(job.tally, job.min_member):
            return False
        if job.roles_enforced and not all(reaches(job.roles.get(r), n) for r, n in job.min_task_member.items()):
            return False
        for policy in job.policies:
            group = f"{job.key}/{policy.name}"
            subs = [sub for sub in job.sub_jobs.values() if sub.group == group and reaches(sub.tally, sub.minimum)]
            if len(subs) < policy.min_sub_groups:
                return False
        return True
