"""Whom the protections of queues are known to keep: what one pod is told holds for every pod of its queue and its shape that its job can spare, or for its job.

Without this a queue that holds no more than its due would be found out node by node: reclaim by proportion in `bench.claims` takes eight times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import units
from pumice.framework import independence
from pumice.model.statuses import ALLOCATED_LIKE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Matrix
    from pumice.model.task import Task


class QueueProtections:
    """The groups of pods that were found protected, for the claimants of one queue: pods of one queue and shape that can be spared, or those of one job."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, int | str], int] = {}
        self._members: list[Task] = []
        self._by_queue: dict[str, list[int]] = {}
        self._sets: dict[tuple[int, ...], int] = {}
        self._closed: dict[int, None] = {}
        self._held: Matrix | None = None
        self._flags: Mask | None = None
        self._owner = ""  # the queue of the claimants

    def __len__(self) -> int:
        return len(self._groups)

    def renew(self, session: Session, rules: Rules) -> None:
        """Take over the rules of a cycle, in which nobody is known to be protected yet."""
        self._sums = session.cluster.queue_sums
        self._queues = session.cluster.queues
        self._tasks = session.cluster.tasks
        self._name = rules.name
        self._everybody_goes_alone = not rules.keeps_gangs
        self._protection = session.protection
        self._is_active = any(map(independence.goes_by_queue, session.protection))
        self._is_flat = all(queue.parent in {"", "root"} for queue in self._queues.values())
        self._forget()

    def _forget(self) -> None:
        """Take nobody for protected."""
        self._closed.clear()
        self._flags = None

    def group(self, job: Job, task: Task, *, alone: bool) -> int:
        """Return the number of a pod's group; one that would not go alone belongs to its job's."""
        key = (job.queue, _key(job, task, alone=alone))
        number = self._groups.get(key)
        if number is None:
            number = self._groups[key] = len(self._groups)
            self._members.append(task)
            self._by_queue.setdefault(job.queue, []).append(number)
        self._members[number] = task
        return number

    def number(self, groups: tuple[int, ...]) -> int:
        """Return the number of a set of groups, such as those of a job."""
        return self._sets.setdefault(groups, len(self._sets))

    def kept(self) -> Mask | None:
        """Mark the sets of groups all of which are protected; None if there are none."""
        if not self._closed:
            return None
        if self._flags is None or len(self._flags) < len(self._sets):
            self._flags = np.array([all(g in self._closed for g in groups) for groups in self._sets], dtype=np.bool_)
        return self._flags

    def is_kept(self, task: Task) -> bool:
        """Tell whether a pod is known to be protected."""
        job = task.job
        if not self._closed or job is None:
            return False
        return self._groups.get((job.queue, self._key_now(job, task))) in self._closed

    def likeness(self, task: Task) -> Hashable:
        """Return what all pods share of whom queues say the same."""
        job = task.job
        return task.uid if job is None else (job.queue, self._key_now(job, task))

    def look_again(self, claimant: Task) -> None:
        """Forget everything, unless the claimant is of the same queue as the last and what queues hold has only become less."""
        before, self._owner = self._owner, "" if claimant.job is None else claimant.job.queue
        if self._closed and (before != self._owner or not self._has_only_shrunk(claimant)):
            self._forget()

    def _has_only_shrunk(self, claimant: Task) -> bool:
        held = self._sums.allocated + self._sums.pipelined
        if self._held is None or self._held.shape != held.shape:
            return False
        grown: Mask = np.logical_or.reduce(held > self._held, axis=1)
        own = self._queues.get(claimant.job.queue) if claimant.job is not None else None
        if own is not None and self._is_flat:
            grown[own.row] = False
        return not grown.any()

    def learn(self, claimant: Task, tasks: Iterable[Task]) -> bool:
        """Find out whether queues protect some pods, and whom else of theirs; tell whether that is news."""
        before = len(self._closed)
        for task in tasks if self._is_active else ():
            job = task.job
            group = None if job is None else self._groups.get((job.queue, self._key_now(job, task)))
            if job is not None and group is not None and group not in self._closed and self._keeps(claimant, task):
                # Whoever stood for its group may have gone since.
                self._members[group] = task
                others = [g for g in self._by_queue[job.queue] if g not in self._closed]
                self._closed.update(dict.fromkeys(g for g in others if self._keeps_group(claimant, g)))
        if len(self._closed) > before:
            self._flags = None
            self._held = self._sums.allocated + self._sums.pipelined
        return len(self._closed) > before

    def _keeps_group(self, claimant: Task, group: int) -> bool:
        """Ask about a group, if whoever stands for it is still one of it."""
        task = self._members[group]
        job = task.job
        if job is None or task.status not in ALLOCATED_LIKE or self._tasks.get(task.uid) is not task:
            return False
        return self._groups.get((job.queue, self._key_now(job, task))) == group and self._keeps(claimant, task)

    def _key_now(self, job: Job, task: Task) -> int | str:
        return _key(job, task, alone=self._everybody_goes_alone or units.keeps_its_minimum(job, (task,)))

    def _keeps(self, claimant: Task, task: Task) -> bool:
        return self._protection.among(independence.goes_by_queue, claimant, task, self._name) is not None


def _key(job: Job, task: Task, *, alone: bool) -> int | str:
    if job.roles_enforced or job.policies:
        return task.uid
    return task.shape.serial if alone else job.key
