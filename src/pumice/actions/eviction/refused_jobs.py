"""Jobs of which the plugins offer nobody: asked about once for all claimants of a kind, so that a search does not find it out node by node.

Whom the plugins refuse while nobody else goes they refuse whoever goes, and a job that has lost pods since is offered no more readily.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.points import Reads

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.actions.eviction.candidate_columns import Columns
    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.model.job import Job
    from pumice.model.task import Task


class RefusedJobs:
    """What is known for claimants that the plugins cannot tell apart."""

    def __init__(self, columns: Columns, rules: Rules) -> None:
        self._columns = columns
        self._rules = rules
        self._state = (-1, -1)
        self._jobs: list[Job] = []
        self._ready: dict[int, int] = {}  # of the jobs that are refused, how many pods they had when that was said
        self._flags: Mask = np.zeros(1, dtype=np.bool_)

    def units(self, claimant: Task) -> Mask:
        """Mark the units of jobs that are refused."""
        state = (self._columns.epoch, self._columns.revivals)
        if state[0] != self._state[0]:
            self._jobs = self._columns.jobs()
            self._ready = {}
            self._ask(claimant, range(len(self._jobs)))
        elif state != self._state:
            self._ask(claimant, [n for n, ready in self._ready.items() if self._jobs[n].tally.ready > ready])
        self._state = state
        return self._flags[self._columns.job]

    def holds(self, task: Task) -> bool:
        """Tell whether a pod is one of a job that is refused."""
        return bool(self._ready) and self._columns.number_of(task.job) in self._ready

    def _ask(self, claimant: Task, numbers: range | list[int]) -> None:
        for number in numbers:
            self._ready.pop(number, None)
            job = self._jobs[number]
            if not any(self._rules.ask(claimant, [task]) for task in _kinds(job)):
                self._ready[number] = job.tally.ready
        # The last one stands for places where nobody is.
        self._flags = np.zeros(len(self._jobs) + 1, dtype=np.bool_)
        self._flags[list(self._ready)] = True


def is_enough(rules: Rules) -> bool:
    """Tell whether the plugins know of a candidate no more than its job, its priority and its shape."""
    return all(function.reads == Reads(0) for function in rules.functions())


def _kinds(job: Job) -> list[Task]:
    found: dict[Hashable, Task] = {}
    for task in job.tasks.values():
        if task.node is not None:
            found.setdefault((task.priority, task.pod.spec.priority_class_name, task.shape.serial), task)
    return list(found.values())
