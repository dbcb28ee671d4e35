"""Whom the gang forms of eviction may take: everybody whose job and queue do not forbid it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction.rules import Rules, jobs_of_other_queues
from pumice.framework.subject import EvictionContext
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from typing import Any

    from pumice.framework.combining import Intersection
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.task import Task


class GangRules(Rules):
    """What both gang forms share: victims whose PodGroup does not forbid it, judged by UnifiedEvictable."""

    node_by_node = False

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

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Look at jobs of the same queue with lower priority."""
        return other.queue == own.queue and other.priority < own.priority

    def sources(self, claimant: Task) -> list[Job]:
        """Return the jobs of lower priority in the queue."""
        cluster, own = self.session.cluster, claimant.job
        queue = cluster.queues.get(own.queue) if own is not None else None
        if queue is None or own is None:
            return []
        return [job for key in queue.jobs if (job := cluster.jobs.get(key)) is not None and job.priority < own.priority]


class GangReclaim(GangRules):
    """Take from other queues."""

    name = "gangreclaim"

    def concerns_job(self, own: Job, other: Job) -> bool:
        """Look at jobs of other queues."""
        return other.queue != own.queue

    def sources(self, claimant: Task) -> list[Job]:
        """Return the jobs of the other queues that may be reclaimed from."""
        return jobs_of_other_queues(self.session, claimant)
