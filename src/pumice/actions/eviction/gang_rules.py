"""Whom the gang forms of eviction may take: everybody whose job and queue do not forbid it, with each of these asked about once.

Asking about every pod alone, `bench.claims` takes more than twice as long for gangreclaim by capacity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import units
from pumice.actions.eviction.rules import Rules
from pumice.framework import independence
from pumice.framework.subject import EvictionContext
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from typing import Any

    from pumice.actions.eviction.settings import Asked
    from pumice.framework.naming_tasks import Intersection
    from pumice.framework.session import Session
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.task import Task


class GangRules(Rules):
    """What both gang forms share: victims whose PodGroup does not forbid it, judged by UnifiedEvictable."""

    node_by_node = False

    def __init__(self, session: Session, asked: Asked | None = None) -> None:
        super().__init__(session, asked)
        self._lists: dict[str, tuple[int, int, list[Task]]] = {}

    def protection(self, claimant: Task | None, candidate: Task) -> str | None:
        """Add the explicit mark of the PodGroup to the protections."""
        job = candidate.job
        if job is not None and job.preemptable_set and not job.preemptable:
            return f"PodGroup {job.key} is marked as not preemptable"
        return super().protection(claimant, candidate)

    def concerns(self, claimant: Task, candidate: Task) -> bool:
        """Look at jobs; which of their pods is meant does not matter."""
        own, other = claimant.job, candidate.job
        return own is not None and other is not None and self.concerns_job(own, other)

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Tell whether the action may look at a job at all."""
        raise NotImplementedError  # pragma: no cover  both forms have their own

    def leaving(self, claimant: Task) -> list[Task]:
        """Return whoever may go for a claimant."""
        return self.candidates(claimant)

    def candidates(self, claimant: Task, domain: HyperNode | None = None, priority: int | None = None) -> list[Task]:
        """Return everybody who may go, on the nodes of a domain or anywhere, of jobs of one priority or any: what `may_go` says, with each job and queue asked about once."""
        claiming = claimant.job
        if claiming is None:
            return []
        jobs = {
            id(job): job
            for job in self.sources(claimant)
            if (priority is None or job.priority == priority) and self._is_open(claiming, job)
        }
        own = claiming.queue
        guarded = {key for key, job in jobs.items() if self._is_guarded(own, job)}
        tasks: Iterable[Task]
        if domain is None and not guarded and self.facts.protections_go_by_pod_or_queue:
            return self._of_jobs(claimant, list(jobs.values()))
        if domain is None:
            tasks = (task for job in jobs.values() for task in job.tasks.values())
        else:
            records = self.session.cluster.nodes.records
            here = (task for row in domain.rows.tolist() for task in records[row].tasks.values())
            tasks = (task for task in here if id(task.job) in jobs)
        shared, keeps = self._asked_once(claimant), self._asked_each(claimant)
        found = []
        for task in tasks:
            if task.status not in self.statuses or not task.preemptable:
                continue
            if (claimant.best_effort and not task.best_effort) or self.is_spared(task):
                continue
            if guarded and id(task.job) in guarded and self._queue_protection(own, task) is not None:
                continue
            if not shared(task) and not keeps(task):
                found.append(task)
        return found

    def _of_jobs(self, claimant: Task, jobs: Sequence[Job]) -> list[Task]:
        """Return those of jobs who may go, from lists that are kept."""
        shared = self._asked_once(claimant)
        found: list[Task] = []
        for job in jobs:
            differ = job.roles_enforced or bool(job.policies)
            shape, kept = None, False
            for task in self._open_pods(claimant, job):
                if task.status not in self.statuses or (claimant.best_effort and not task.best_effort):
                    continue
                if task.eviction_refused is not None and self.is_spared(task):
                    continue
                # Pods of one shape that stand together have one answer from their queue.
                if differ or task.shape is not shape:
                    shape, kept = task.shape, shared(task)
                if not kept:
                    found.append(task)
        return found

    def _open_pods(self, claimant: Task, job: Job) -> list[Task]:
        """Return the pods of a job that nothing about themselves protects, in their order."""
        known = self._lists.get(job.key)
        if known is None or known[:2] != (job.version, len(job.tasks)):
            keeps = self._asked_each(claimant)
            tasks = [task for task in job.tasks.values() if task.preemptable and not keeps(task)]
            known = self._lists[job.key] = (job.version, len(job.tasks), tasks)
        return known[2]

    def _asked_each(self, claimant: Task) -> Callable[[Task], bool]:
        """Return what tells whether any of the other protections keeps a pod; which these are is found out once."""
        protection = self.session.protection
        asked = [registered for registered in protection if not independence.goes_by_queue(registered)]

        def keeps(task: Task) -> bool:
            for registered in asked:  # noqa: SIM110  asked about every pod that could go
                if protection.ask(registered, claimant, task, self.name) is not None:
                    return True
            return False

        return keeps

    def is_kept_by_queue(self, claimant: Task, task: Task) -> bool:
        """Tell whether a protection that knows of a pod only its queue, its shape and its job keeps it."""
        return self.session.protection.among(independence.goes_by_queue, claimant, task, self.name) is not None

    def _asked_once(self, claimant: Task) -> Callable[[Task], bool]:
        """Return what tells whether the protections of queues keep a pod, asked once for all to which they give one answer."""
        known: dict[Hashable, bool] = {}
        spared: dict[int, bool] = {}

        def kept(task: Task) -> bool:
            job = task.job
            if job is None:
                return False
            key: Hashable = task.uid
            if not (job.roles_enforced or job.policies):
                if id(job) not in spared:
                    spared[id(job)] = not self.keeps_gangs or units.keeps_its_minimum(job, (task,))
                key = (job.queue, task.shape.serial) if spared[id(job)] else job.key
            if key not in known:
                known[key] = self.is_kept_by_queue(claimant, task)
            return known[key]

        return kept

    def _is_open(self, own: Job, job: Job) -> bool:
        """Tell whether nothing about a job as a whole speaks against taking from it."""
        return self.concerns_job(own, job) and not (job.preemptable_set and not job.preemptable)

    def _is_guarded(self, own: str, job: Job) -> bool:
        """Tell whether the queue of a job, which may be reclaimed from, may protect its pods."""
        owner = self.session.cluster.queues[job.queue]
        return owner.name != own and bool(owner.guarantee)

    def asking(self, claimant: Task, domain: HyperNode | None = None) -> object:
        """Return what the functions are asked about: the whole gang."""
        return EvictionContext(self.name, claimant.job, domain) if claimant.job is not None else None

    def extension(self) -> Intersection[Any]:
        """Return UnifiedEvictable."""
        return self.session.unified_evictable


class GangPreempt(GangRules):
    """Take from jobs of lower priority in the same queue."""

    name = "gangpreempt"
    own_queue = True
    statuses = frozenset({Status.BOUND, Status.RUNNING})

    def highest_taken(self, job: Job) -> int | None:
        """Return the highest priority below that of a job."""
        return job.priority - 1

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Look at jobs of the same queue with lower priority."""
        return other.queue == own.queue and other.priority < own.priority


class GangReclaim(GangRules):
    """Take from other queues."""

    name = "gangreclaim"

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Look at jobs of other queues."""
        return other.queue != own.queue
