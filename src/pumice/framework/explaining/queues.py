"""How a queue stands, and what it says to a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.framework import queue_room, subject
from pumice.framework.explaining.amounts import UNLIMITED, shown, vector_shown
from pumice.framework.explaining.explanations import (
    Claim,
    Dimension,
    Going,
    Holder,
    QueueDimension,
    QueueExplanation,
    QueueJob,
    QueueVerdict,
)
from pumice.framework.explaining.members import demanded, wanted
from pumice.model.resources import PODS
from pumice.model.statuses import GOING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.explaining.explanations import PluginVote
    from pumice.framework.explaining.queue_accounts import QueueAccount
    from pumice.framework.queue_room import Kind
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue

HOLDERS = 5
JOBS = 50
CLAIMS = 20


def account_of(session: Session, queue: Queue) -> QueueAccount | None:
    """Return what the plugin that shares says of a queue; None if none is listed, or the queue takes no part."""
    accounts = session.announced.queue_accounts
    return None if accounts is None or queue.bad else accounts(queue)


# -- what a queue says to a job --------------------------------------------------------------------------------


def verdict(session: Session, job: Job, votes: Iterable[PluginVote]) -> QueueVerdict:
    """Say who refuses a job in its queue's name, and in which resources there is no room for it."""
    queue = session.cluster.queues.get(job.queue)
    if queue is None:
        return QueueVerdict(queue=job.queue, state="missing", refusals=(f"queue {job.queue} does not exist",))
    if queue.bad:
        return QueueVerdict(queue=queue.name, state="invalid", refusals=(queue.bad,))
    refusals = dict.fromkeys(f"{vote.plugin}: {vote.reason}" for vote in votes if vote.answer == "against")
    account = account_of(session, queue)
    dimensions = () if account is None else tuple(_dimensions(session, job, account))
    return QueueVerdict(queue=queue.name, state=queue.state, refusals=tuple(refusals), dimensions=dimensions)


def _dimensions(session: Session, job: Job, account: QueueAccount) -> list[Dimension]:
    """Return the resources in which what a job wants is more than its queue, or one above it, may hold."""
    want = wanted(session, job)
    asks_to_be_let_in = not demanded(session, job)
    found = []
    for each in (account, *account.above):
        beside = each.let_in if asks_to_be_let_in else np.zeros(len(want), dtype=np.int64)
        for column in np.flatnonzero(want).tolist():
            # A vote on letting a group in asks for the ceiling alone.
            kind, bound = _tightest(each, column, ceiling_only=asks_to_be_let_in)
            if column != PODS and int(each.held[column] + beside[column] + want[column]) > bound:
                name = session.cluster.vocabulary.names[column]
                holders = _holders(session, each.queue, column)
                found.append(
                    Dimension(
                        resource=name,
                        queue=each.queue.name,
                        have=shown(name, int(each.held[column])),
                        want=shown(name, int(want[column])),
                        limit=shown(name, bound),
                        kind=kind,
                        let_in=shown(name, int(beside[column])),
                        holders=tuple(holders[:HOLDERS]),
                        other_holders=max(0, len(holders) - HOLDERS),
                    )
                )
    return found


def _tightest(account: QueueAccount, column: int, *, ceiling_only: bool) -> tuple[Kind, int]:
    return ("ceiling", int(account.ceiling[column])) if ceiling_only else queue_room.tightest(account, column)


def _holders(session: Session, queue: Queue, column: int) -> list[Holder]:
    """Return the jobs of a queue, and of those below it, that hold some of a resource, the largest first."""
    cluster = session.cluster
    name = cluster.vocabulary.names[column]
    held = [(int(cluster.job_sums.held(job.row)[column]), job) for job in jobs_below(session, queue)]
    found = sorted(((units, job) for units, job in held if units), key=lambda entry: (-entry[0], entry[1].key))
    return [
        Holder(name=job.key, amount=shown(name, units), pods=job.tally.ready + job.tally.waiting)
        for units, job in found
    ]


def jobs_below(session: Session, queue: Queue) -> list[Job]:
    """Return the jobs of a queue and of all queues below it."""
    cluster = session.cluster
    below = [queue]
    for each in below:
        known = {id(other) for other in below}
        below += [o for o in cluster.queues.values() if not o.bad and o.parent == each.name and id(o) not in known]
    return [cluster.jobs[key] for each in below for key in each.jobs if key in cluster.jobs]


# -- how a queue stands ----------------------------------------------------------------------------------------


def explain(session: Session, queue: Queue) -> QueueExplanation:
    """Say how a queue stands."""
    account = account_of(session, queue)
    jobs = sorted(jobs_below(session, queue), key=lambda job: job.key)
    overused = "" if queue.bad else str(session.overused(queue) or "")
    claims = _claims(session)
    return QueueExplanation(
        queue=queue.name,
        state=f"invalid: {queue.bad}" if queue.bad else queue.state,
        parent=queue.parent,
        weight=queue.weight,
        priority=queue.priority,
        reclaimable=queue.reclaimable,
        plugin="" if account is None else account.plugin,
        share=None if account is None else round(account.share, 4),
        overused=overused,
        dimensions=tuple(_standing(session, queue, account)),
        jobs=tuple(_queue_job(session, job) for job in _largest(session, jobs)[:JOBS]),
        other_jobs=max(0, len(jobs) - JOBS),
        claims=tuple(claim for claim in claims if claim.claimant == queue.name),
        claimed=tuple(claim for claim in claims if claim.owner == queue.name),
        going=tuple(_going(session, jobs)),
        children=tuple(sorted(each.name for each in session.cluster.queues.values() if each.parent == queue.name)),
        waiting=tuple(job.key for job in _served_next(session, queue)[:JOBS]),
    )


def _largest(session: Session, jobs: Iterable[Job]) -> list[Job]:
    """Order jobs by the largest part of the nodes that they hold, then by name."""
    table, sums = session.cluster.nodes, session.cluster.job_sums
    offered = np.maximum(table.allocatable[: table.count].sum(axis=0), 1)
    offered[PODS] = 2**62
    return sorted(jobs, key=lambda job: (-float((sums.held(job.row) / offered).max()), job.key))


def _standing(session: Session, queue: Queue, account: QueueAccount | None) -> list[QueueDimension]:
    cluster = session.cluster
    sums = cluster.queue_sums
    held = sums.held(queue.row) if account is None else account.held
    asked = sums.pending[queue.row]
    nothing = np.zeros(len(held), dtype=np.int64)
    unlimited = nothing + UNLIMITED
    due = nothing if account is None else account.due
    ceiling = unlimited if account is None else account.ceiling
    room = unlimited if account is None or account.room is None else account.room
    guarantee = nothing if account is None else account.guarantee
    let_in = nothing if account is None else account.let_in
    found = []
    for column, name in enumerate(cluster.vocabulary.names):
        amounts = [int(each[column]) for each in (held, asked, let_in, due, guarantee)]
        if column == PODS or not (any(amounts) or 0 < int(ceiling[column]) < UNLIMITED):
            continue
        have, want, let, owed, kept = (shown(name, units) for units in amounts)
        found.append(
            QueueDimension(
                resource=name,
                held=have,
                asked=want,
                let_in=let,
                due=owed if account is not None else "",
                ceiling=shown(name, int(ceiling[column])),
                guarantee=kept,
                room=shown(name, max(0, int(room[column]))),
            )
        )
    return found


def _queue_job(session: Session, job: Job) -> QueueJob:
    cluster = session.cluster
    sums = cluster.job_sums
    return QueueJob(
        job=job.key,
        phase=session.findings.phase(job),
        priority=job.priority,
        running=job.tally.ready,
        waiting=len(job.pending) + job.tally.waiting,
        held=vector_shown(cluster.vocabulary, sums.held(job.row)),
        asked=vector_shown(cluster.vocabulary, sums.pending[job.row]),
    )


def _going(session: Session, jobs: Iterable[Job]) -> list[Going]:
    """Return the pods of a queue that were evicted, and whoever waits for their going."""
    cluster = session.cluster
    waiting: dict[str, str] = {}
    for uid, hold in sorted(session.reservations.holds.items()):
        claimant = cluster.tasks.get(uid)
        for victim in hold.victims if claimant is not None else ():
            waiting.setdefault(victim, claimant.job_key if claimant is not None else "")
    going = [task for job in jobs for task in job.tasks.values() if task.status in GOING]
    return [
        Going(pod=task.key, job=task.job_key, claimant=waiting.get(task.uid, ""))
        for task in sorted(going, key=lambda task: task.key)
    ]


def _claims(session: Session) -> list[Claim]:
    """Return what queues that hold less than their due, and have jobs that wait, could take back from those that hold more."""
    if not any(name in session.configuration.action_names for name in ("reclaim", "gangreclaim")):
        return []
    accounts = [account_of(session, queue) for _, queue in sorted(session.cluster.queues.items())]
    leaves = [account for account in accounts if account is not None and not _has_children(session, account.queue)]
    owners = [each for each in leaves if each.queue.reclaimable and (each.held > each.due).any()]
    found = []
    for account in leaves:
        job = _first_waiting(session, account.queue) if owners else None
        if job is None:
            continue
        want = wanted(session, job)
        lacking = np.minimum(want, np.maximum(account.due - account.held, 0))
        refusal = _may_not_ask(session, account.queue, job)
        for owner in owners:
            beyond = np.maximum(owner.held - np.maximum(owner.due, owner.guarantee), 0)
            amounts = np.minimum(want if refusal else lacking, beyond)
            amounts[PODS] = 0
            if owner is not account and amounts.any():
                found.append(
                    Claim(
                        claimant=account.queue.name,
                        job=job.key,
                        owner=owner.queue.name,
                        amounts=vector_shown(session.cluster.vocabulary, amounts),
                        refusal=refusal,
                    )
                )
    return found[:CLAIMS]


def _has_children(session: Session, queue: Queue) -> bool:
    return any(other.parent == queue.name for other in session.cluster.queues.values())


def _first_waiting(session: Session, queue: Queue) -> Job | None:
    """Return the job of a queue that would be served first of those that wait."""
    return next(iter(_waiting(session, queue)), None)


def _waiting(session: Session, queue: Queue) -> list[Job]:
    """Return the jobs of a queue that wait, in the order in which they would be served."""
    cluster = session.cluster
    waiting = [
        cluster.jobs[key] for key in queue.jobs if key in cluster.pending_jobs and session.usable(cluster.jobs[key])
    ]
    return session.job_order.sort(waiting) if waiting else []


def _served_next(session: Session, queue: Queue) -> list[Job]:
    """Return the jobs of a queue that want something, those that are not let in yet among them, in the order in which they would be served."""
    jobs = session.usable_jobs(session.cluster.jobs[key] for key in queue.jobs if key in session.cluster.jobs)
    waiting = [
        job
        for job in jobs
        if job.key in session.cluster.pending_jobs or session.findings.phase(job) == names.PHASE_PENDING
    ]
    return session.job_order.sort(waiting) if waiting else []


def _may_not_ask(session: Session, queue: Queue, job: Job) -> str:
    tasks = demanded(session, job)
    if not tasks:
        return "it was not let in"
    return str(session.overused(queue) or session.preemptive(queue, subject.demand(tasks)) or "")
