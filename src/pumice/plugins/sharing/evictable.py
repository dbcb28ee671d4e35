"""What a group that asks to be let in could evict by the rules of the configured actions: room that its vote may count on.

For preempt and gangpreempt that is what preemptable pods of jobs with lower priority in its queue hold; for reclaim and gangreclaim what other reclaimable queues
hold above their due, as if the group's minimum were already asked for by its queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Vector
    from pumice.model.task import Task

PREEMPTING = frozenset({"preempt", "gangpreempt"})
RECLAIMING = frozenset({"reclaim", "gangreclaim"})


class EvictableRoom:
    """Works out, once per cycle and kind of group, what could be evicted."""

    def __init__(self, session: Session) -> None:
        self._session = session
        actions = {action.name: action for action in session.configuration.actions}
        enqueue = actions.get("enqueue")
        aware = enqueue is None or bool(enqueue.arguments.get("evictionAware", True))
        aware = aware and session.configuration.compatibility != "volcano"
        self._preempts = aware and bool(PREEMPTING & actions.keys())
        self._reclaims = aware and bool(RECLAIMING & actions.keys())
        self._zero: Vector = np.zeros(len(session.cluster.vocabulary), dtype=np.int64)
        self._own: dict[tuple[str, int], dict[int, Vector]] = {}
        self._others: dict[Any, dict[int, Vector]] = {}
        self._by_row: dict[int, Job] | None = None

    def anywhere(self, job: Job) -> Vector:
        """Return what could be evicted in the whole cluster."""
        total = self._zero
        for amounts in (*self._in_queue(job).values(), *self._in_other_queues(job).values()):
            total = total + amounts
        return total

    def inside(self, job: Job, rows: Sequence[int]) -> Vector:
        """Return what could be evicted inside some queues, beyond what their jobs hold above their minimums."""
        cluster = self._session.cluster
        total = self._zero
        if cluster.queues[job.queue].row in rows:
            for row, amounts in self._in_queue(job).items():
                total = total + np.maximum(amounts - self._elastic(row), 0)
        for row, amounts in self._in_other_queues(job).items():
            if row in rows:
                held = sum((self._elastic(cluster.jobs[key].row) for key in self._jobs_of(row)), start=self._zero)
                total = total + np.maximum(amounts - held, 0)
        return total

    def may_take(self, job: Job, task: Task) -> bool:
        """Tell whether a pod could be evicted for a job, as far as queues, priorities and its own word go."""
        other = task.job
        if other is None or other.group is None:
            return False
        if other.queue == job.queue:
            return self._preempts and other.priority < job.priority and _may_go(task, Status.BOUND, Status.RUNNING)
        queue = self._session.cluster.queues.get(other.queue)
        return self._reclaims and queue is not None and queue.reclaimable and _may_go(task, Status.RUNNING)

    def _elastic(self, job_row: int) -> Vector:
        """Return what a job holds beyond its minimum; no pod must be counted twice."""
        cluster = self._session.cluster
        if self._by_row is None:
            self._by_row = {job.row: job for job in cluster.jobs.values()}
        job = self._by_row.get(job_row)
        minimum = cluster.vocabulary.vector(job.min_resources or {}) if job is not None else self._zero
        beyond: Vector = np.maximum(cluster.job_sums.allocated[job_row] - minimum, 0)
        return beyond

    def _jobs_of(self, queue_row: int) -> list[str]:
        cluster = self._session.cluster
        return [
            key
            for queue in cluster.queues.values()
            if queue.row == queue_row
            for key in queue.jobs
            if key in cluster.jobs
        ]

    # -- who -----------------------------------------------------------------------------------------------------

    def _in_queue(self, job: Job) -> dict[int, Vector]:
        """Return, per job of lower priority in the queue, what its preemptable pods hold."""
        if not self._preempts:
            return {}
        key = (job.queue, job.priority)
        if key not in self._own:
            cluster = self._session.cluster
            found: dict[int, Vector] = {}
            for other in (cluster.jobs[name] for name in cluster.queues[job.queue].jobs if name in cluster.jobs):
                if other.priority < job.priority and other.group is not None:
                    amounts = self._held([t for t in other.tasks.values() if _may_go(t, Status.BOUND, Status.RUNNING)])
                    if amounts is not None:
                        found[other.row] = amounts
            self._own[key] = found
        return self._own[key]

    def _in_other_queues(self, job: Job) -> dict[int, Vector]:
        """Return, per reclaimable queue, what it holds above its due, as far as its pods may go."""
        if not self._reclaims:
            return {}
        asked = tuple(sorted((job.min_resources or {}).items()))
        key = (job.queue, asked)
        if key not in self._others:
            self._others[key] = self._above_due(job)
        return self._others[key]

    def _above_due(self, job: Job) -> dict[int, Vector]:
        cluster = self._session.cluster
        due = self._session.due(job)
        found: dict[int, Vector] = {}
        if due is None:
            return found
        for name, queue in cluster.queues.items():
            if name == job.queue or not queue.reclaimable or queue.bad:
                continue
            above = np.maximum(cluster.queue_sums.held(queue.row) - due[queue.row], 0)
            if above.any():
                tasks = [t for key in self._jobs_of(queue.row) for t in cluster.jobs[key].tasks.values()]
                amounts = self._held([t for t in tasks if _may_go(t, Status.RUNNING)])
                if amounts is not None:
                    found[queue.row] = np.minimum(above, amounts)
        return found

    def _held(self, tasks: list[Task]) -> Vector | None:
        if not tasks:
            return None
        total: Vector = np.sum([task.shape.request.vector for task in tasks], axis=0)
        return total


def shared(session: Session) -> EvictableRoom:
    """Return what all votes of a cycle count on."""
    found = session.scratch.get("evictable room")
    if not isinstance(found, EvictableRoom):
        found = session.scratch["evictable room"] = EvictableRoom(session)
    return found


def _may_go(task: Task, *statuses: Status) -> bool:
    return task.preemptable and task.status in statuses
