"""proportion: queues share the cluster by weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.explaining.queue_accounts import QueueAccount
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import BeyondDue
from pumice.model import resources
from pumice.plugins.proportion import kube_batch, victims, water_level
from pumice.plugins.sharing import admission, flat_limits, minima, queue_limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.framework.session import Session
    from pumice.framework.subject import Demand
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task


class ProportionSettings(Settings):
    """What becomes of room that no queue can use within its share."""

    uses_idle_room = settings.truth(
        "proportion.useIdleRoom",
        default=True,
        help="whether room that nobody within the share of his queue can use goes to whoever waits beyond it; false, as under `compatibility: volcano`, leaves it empty",
    )


class Inputs(msgspec.Struct, frozen=True):
    """What shares follow from; nothing is computed again while it stays the same."""

    rows: list[int]
    weights: list[int]
    request: Matrix
    total: Vector
    limits: Matrix
    guarantees: Matrix

    def same(self, other: Inputs) -> bool:
        """Tell whether both give the same shares."""
        return (
            (self.rows, self.weights) == (other.rows, other.weights)
            and np.array_equal(self.request, other.request)
            and np.array_equal(self.total, other.total)
            and np.array_equal(self.limits, other.limits)
            and np.array_equal(self.guarantees, other.guarantees)
        )


class Proportion(Plugin):
    """Share the cluster between the queues that have jobs, by `spec.weight`.

    A queue deserves its part by weight of every resource, but not more than its pods ask for nor than its `capability`, and not less than its `guarantee`; what one
    does not use goes to the others. The queue with the higher `spec.priority` comes first, then the one that holds the smaller part of what it deserves. A queue
    that holds all it deserves is passed over, and no pod is placed that would take a queue beyond, as long as somebody who waits within the share of his own queue could use the room. What room is then
    left goes to whoever waits, in the order of queues, within their limits and what others are guaranteed; no room stays idle for a share (`proportion.useIdleRoom`). What a queue holds beyond what it deserves may be reclaimed, and nobody
    reclaims more than his queue deserves; for that, shares are of what foreign pods leave.

    A group is let in if its `minResources` fit into the queue's limit beside what the queue holds and has let in. The limit is the cluster without what other
    queues are guaranteed, or the queue's `capability` if that is less; a resource that `capability` does not list is not limited by it.

    Under kube-batch's rules only the weights count, and a queue keeps its part of every resource unless it asks for less of all of them.
    """

    name = "proportion"
    settings = Configured(ProportionSettings)
    points = frozenset(
        {
            "QueueOrder",
            "Overused",
            "Allocatable",
            "Preemptive",
            "Reclaimable",
            "JobEnqueueable",
            "JobEnqueued",
            "Protection",
            "Due",
        }
    )

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self.limits = flat_limits.Limits()
        self.admitted = admission.Admitted()
        self.inputs: Inputs | None = None

    def open(self, session: Session) -> None:
        """Work out what every queue deserves and register the rules."""
        self.cluster = session.cluster
        self._keeps_gangs = session.gangs_are_kept
        self.limits.refresh(session.cluster)
        legacy = session.configuration.rules == "kube-batch"
        self._share_out(_inputs(session.cluster, self.limits, legacy=legacy), legacy=legacy)
        if legacy:
            kube_batch.register(session, self.deserved, self.share)
            return
        self._dues = victims.Dues(session.cluster, lambda: self.reclaim_due)
        self._lending = session.lending
        self._lending.enabled = self.settings.uses_idle_room and session.configuration.compatibility != "volcano"
        self.limits.rooms.open(session.cluster)
        self.limits.rooms.warn(session)
        session.never_running.ceilings = self.limits.rooms.branch_ceilings
        session.announced.queue_accounts = self.account
        admission.guard(session, admission.Guard(self.limits.rooms, self.admitted, self.limit))
        self.admitted.open(session.cluster, minima=minima.shared(session))
        session.queue_order.add(self.order)
        session.overused.add(self.passed_over)
        session.allocatable.add(self.refuse, reads=Reads.QUEUE)
        session.preemptive.add(self.beyond_share)
        session.reclaimable.add(self.above, reads=Reads.QUEUE, basis=self._basis)
        session.protection.add(self.protection, reads=Reads.QUEUE, basis=self._basis)
        session.due.add(self.due)
        session.job_enqueueable.add(lambda job: self.vote(session, job))
        session.job_enqueued.add(self.admitted.enter)

    def _share_out(self, inputs: Inputs, *, legacy: bool) -> None:
        """Bring `deserved`, one row per queue, up to date."""
        shape = self.cluster.queue_sums.allocated.shape
        if self.inputs is not None and self.deserved.shape == shape and self.inputs.same(inputs):
            return
        self.inputs = inputs
        self.deserved: Matrix = np.zeros(shape, dtype=np.int64)
        shared = water_level.surplus(inputs.total, inputs.weights, inputs.request) if legacy else _shares(inputs)
        self.deserved[inputs.rows] = shared.amounts
        # What shares are worked out of, by row: columns with the exact amounts as fractions.
        self._due = {
            row: [(column, above, below) for column, (above, below) in exact.items() if above]
            for row, exact in zip(inputs.rows, shared.exact, strict=True)
        }
        self._reclaim_due: Matrix | None = None

    @property
    def reclaim_due(self) -> Matrix:
        """What every queue deserves of what foreign pods leave: nobody is ever above a due that the cluster cannot give."""
        if self._reclaim_due is None:
            self._reclaim_due = self.deserved if self.inputs is None else self._of_what_is_left(self.inputs)
        return self._reclaim_due

    def _of_what_is_left(self, inputs: Inputs) -> Matrix:
        """Share out what foreign pods leave."""
        left = self.limits.available
        if inputs is self.inputs and np.array_equal(left, inputs.total):
            return self.deserved
        limits = self.limits.within(left)[inputs.rows]
        due: Matrix = np.zeros(self.deserved.shape, dtype=np.int64)
        due[inputs.rows] = _shares(msgspec.structs.replace(inputs, total=left, limits=limits)).amounts
        return due

    # -- order -------------------------------------------------------------------------------------------------

    def share(self, queue: Queue) -> float:
        """Return which part of what it deserves a queue holds, in the resource where that is most; 0 if it deserves nothing."""
        due = self._due.get(queue.row)
        if due is None:
            return 0.0
        held = self.cluster.queue_sums.held(queue.row).tolist()
        return max([held[column] * below / above for column, above, below in due], default=0.0)

    def order(self, queue: Queue) -> tuple[int, float]:
        """Put higher priority first, then the smaller share."""
        return -queue.priority, self.share(queue)

    # -- limits ------------------------------------------------------------------------------------------------

    def overused(self, queue: Queue) -> str | None:
        """Say what a queue holds if it is all that it deserves."""
        held = self.cluster.queue_sums.held(queue.row)
        deserved = self.deserved[queue.row]
        if False in (deserved <= held).tolist():
            return None
        return victims.told(self.cluster.vocabulary.names, held, deserved)

    def passed_over(self, queue: Queue) -> str | None:
        """Pass a queue over that holds all it deserves, as long as somebody else may use the room."""
        if not self._lending.enabled:
            return self.overused(queue)
        told = None if self._lending.lifted else self.overused(queue)
        return None if told is None else BeyondDue(told)

    def refuse(self, queue: Queue, demand: Demand) -> str | None:
        """Refuse tasks that would take the queue beyond its limit or into what others are guaranteed; and beyond what it deserves, as long as somebody else may use the room."""
        rooms, lending = self.limits.rooms, self._lending
        beyond = None if lending.lifted else self.beyond_share(queue, demand)
        if beyond is not None and not lending.enabled:
            return beyond
        if beyond is not None and demand.waits and self._gives_back(queue, demand):
            beyond, limited = None, self.beyond_limit(queue, demand)
        else:
            limited = self.beyond_limit(queue, demand) if lending.lifted or beyond is not None else None
        if limited is None and rooms.active:
            limited = rooms.refused(queue, demand, self.cluster.vocabulary.names)
        return limited if limited is not None or beyond is None else BeyondDue(beyond)

    def limit(self, queue: Queue, demand: Demand) -> str | None:
        """Say what keeps a queue from taking on tasks though there is room: its limit, and its share if that does not give way."""
        return self.beyond_limit(queue, demand) if self._lending.enabled else self.beyond_share(queue, demand)

    def beyond_limit(self, queue: Queue, demand: Demand) -> str | None:
        """Refuse tasks that would take the queue beyond its limit: its capability, and what is left without what others are guaranteed."""
        if (closed := queue.closed) is not None:
            return closed
        held, limit = self._held(queue, demand), self.limits.real_capability[queue.row]
        deserved, total = self.deserved[queue.row], self.limits.total
        beyond = queue_limits.exceeded(demand.amounts, held + demand.amounts, limit)
        # What all nodes together do not have is for nodes to say, unless the queue is due all of it.
        beyond = [column for column in beyond if limit[column] < total[column] or deserved[column] >= limit[column]]
        if not beyond:
            return None
        if (deserved >= limit)[beyond].all():
            return self._told(demand, beyond, held, queue)
        numbers = queue_limits.told(self.cluster.vocabulary.names, beyond, held, demand, limit=limit)
        return f"beyond the limit: {numbers}"

    def beyond_share(self, queue: Queue, demand: Demand) -> str | None:
        """Refuse tasks that would take the queue beyond what it deserves, in a resource they ask for."""
        if (closed := queue.closed) is not None:
            return closed
        held = self._held(queue, demand)
        beyond = queue_limits.exceeded(demand.amounts, held + demand.amounts, self.deserved[queue.row])
        return self._told(demand, beyond, held, queue) if beyond else None

    def _gives_back(self, queue: Queue, demand: Demand) -> bool:
        """Tell whether a queue holds no more with tasks that wait for evictions than it did before these, of anything they ask for: inside a queue that was lent room, one pod goes for one."""
        before, held = self._lending.held_before(queue), self.cluster.queue_sums.held(queue.row)
        return before is not None and not queue_limits.exceeded(demand.amounts, held + demand.amounts, before)

    def _held(self, queue: Queue, demand: Demand) -> Vector:
        """Return what a queue holds, with what is evicted from it and not going yet unless somebody waits for that."""
        sums = self.cluster.queue_sums
        held: Vector = sums.held(queue.row)
        return held if demand.waits else held + sums.evicting[queue.row]

    def _told(self, demand: Demand, beyond: list[int], held: Vector, queue: Queue) -> str:
        """Say what tasks ask for beyond what a queue deserves."""
        deserved, names = self.deserved[queue.row], self.cluster.vocabulary.names
        asked = ", ".join(f"{names[c]} {resources.shown(names[c], int(demand.amounts[c]))}" for c in beyond)
        pods = f"{len(demand.tasks)} pods" if len(demand.tasks) > 1 else "a pod"
        whole = ", which is all there is" if (deserved >= self.limits.total)[beyond].all() else ""
        return f"{asked} for {pods} goes beyond its share{whole}: {victims.told(names, held, deserved)}"

    def _basis(self) -> object:
        """Return what decides who may be reclaimed, beside what queues hold."""
        return self.reclaim_due.tobytes(), self.limits.guarantee.tobytes()

    def _victims(self) -> victims.Victims:
        """Return the victim rules for one question, in the state the plan has reached."""
        return victims.Victims(self.cluster, self._dues, self.limits.guarantee, whole=self._keeps_gangs)

    def above(self, _claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        """Offer candidates while their queue holds more than it deserves of some resource, and none that would break a guarantee."""
        judged = self._victims()
        return [task for task in candidates if judged.judge(task) is None]

    def protection(self, claimant: Task | None, victim: Task, _action: str) -> str | None:
        """Protect pods of other queues that hold no more than they deserve, or no more than they are guaranteed."""
        if claimant is None or claimant.job is None or victim.job is None or victim.job.queue == claimant.job.queue:
            return None
        owner = self.cluster.queues.get(victim.job.queue)
        # Asked about thousands of pods, of which a settled cluster keeps every one.
        kept = None if owner is None else self._dues.keeps(owner)
        return kept or self._victims().judge(victim)

    def due(self, job: Job) -> Matrix:
        """Return what every queue would deserve, of what foreign pods leave, if a job's minimum were asked for by its queue."""
        inputs = self.inputs
        queue = self.cluster.queues[job.queue]
        if inputs is None or not job.min_resources:
            return self.reclaim_due
        more = _asking_more(inputs, self.limits, queue, self.cluster.vocabulary.vector(job.min_resources))
        return self._of_what_is_left(more)

    def account(self, queue: Queue) -> QueueAccount:
        """Show how a queue stands, to whoever explains."""
        row = queue.row
        return QueueAccount(
            plugin=self.name,
            queue=queue,
            held=self.cluster.queue_sums.held(row),
            let_in=self.admitted.inqueue[row],
            due=self.deserved[row],
            ceiling=self.limits.real_capability[row],
            guarantee=self.limits.guarantee[row],
            room=self.limits.rooms.room(queue),
            share=self.share(queue),
            due_limits=not self._lending.enabled,
        )

    # -- letting jobs in ---------------------------------------------------------------------------------------

    def vote(self, session: Session, job: Job) -> Vote:
        """Vote whether a job's minimum fits into its queue."""
        queue = self.cluster.queues[job.queue]
        if (closed := queue.closed) is not None:
            return reject(f"queue {queue.name}: {closed}")
        if job.min_resources is None:
            return PERMIT
        return admission.admission(session, job, (self._bound(queue),), self.admitted)

    def _bound(self, queue: Queue) -> admission.Bound:
        row = queue.row
        return admission.Bound(queue, self.cluster.queue_sums.held(row), self.limits.real_capability[row], (row,))


def _shares(inputs: Inputs) -> water_level.Shares:
    wanted = np.minimum(inputs.request, inputs.limits)
    return water_level.deserved(inputs.total, inputs.weights, wanted, inputs.guarantees)


def _inputs(cluster: Cluster, limits: flat_limits.Limits, *, legacy: bool) -> Inputs:
    """Gather what the queues with jobs ask for, and the guarantees of those without; pods whose group is invalid ask for nothing, those without one are in no queue."""
    sums = cluster.queue_sums
    guaranteed = limits.guarantee.max(axis=1) > 0
    queues = [
        queue
        for queue in cluster.queues.values()
        if not queue.bad and (_has_jobs(cluster, queue) or (guaranteed[queue.row] and not legacy))
    ]
    rows = [queue.row for queue in queues]
    request = sums.allocated + sums.pipelined + sums.pending
    for job in cluster.invalid_jobs.values():
        if (queue := cluster.queues.get(job.queue)) is not None:
            request[queue.row] -= cluster.job_sums.pending[job.row]
    return Inputs(
        rows=rows,
        weights=[queue.weight for queue in queues],
        request=request[rows],
        total=limits.total,
        limits=limits.real_capability[rows],
        guarantees=limits.guarantee[rows],
    )


def _asking_more(inputs: Inputs, limits: flat_limits.Limits, queue: Queue, minimum: Vector) -> Inputs:
    """Return the inputs with a queue asking for more, be it the first that it asks for."""
    if queue.row in inputs.rows:
        request = inputs.request.copy()
        request[inputs.rows.index(queue.row)] += minimum
        return msgspec.structs.replace(inputs, request=request)
    return msgspec.structs.replace(
        inputs,
        rows=[*inputs.rows, queue.row],
        weights=[*inputs.weights, queue.weight],
        request=np.vstack([inputs.request, minimum]),
        limits=np.vstack([inputs.limits, limits.real_capability[queue.row]]),
        guarantees=np.vstack([inputs.guarantees, limits.guarantee[queue.row]]),
    )


def _has_jobs(cluster: Cluster, queue: Queue) -> bool:
    """Tell whether some job of the queue takes part; the first one nearly always does."""
    return any((job := cluster.jobs[key]).group is not None and not job.bad for key in queue.jobs)
