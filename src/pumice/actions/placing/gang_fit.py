"""How much of a gang could start: its members are placed on trial, and everything is taken back. Asked by whoever wants an explanation, never by a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.placing import inside_domains, largest_first, minimum, task_runs, turns
from pumice.framework.explaining import members, placements
from pumice.framework.explaining.explanations import GangVerdict, MissingMember
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task

KINDS = 5  # of missing members of which is said why


def verdict(session: Session, job: Job, tasks: Sequence[Task]) -> GangVerdict | None:
    """Place the members that wait in the order of allocate, or the largest first if more of them fit so; say how many fit and why the others do not."""
    queue = session.queue_of(job)
    if queue is None or not tasks:
        return None
    orders = [minimum.named_first(session, job, tasks)[0]]
    if largest_first.differ(tasks) and not session.topology.steers(job):
        table = session.cluster.nodes
        orders += largest_first.by_size(table, slice(table.count), list(tasks))
    counts = [_count(session, queue, job, order) for order in orders]
    best = orders[counts.index(max(counts))]
    statement = session.statement()
    with session.attempt(job), statement.trial():
        missing = _place(session, statement, queue, job, best)
        return GangVerdict(
            members=len(job.tasks),
            minimum=job.min_member,
            placed=job.tally.expected - len(statement),
            fit=len(statement),
            enough=session.is_pipelined(job),
            missing=tuple(_missing(session, job, missing)),
        )
    return None


def _count(session: Session, queue: Queue, job: Job, tasks: Sequence[Task]) -> int:
    """Return how many tasks fit in an order."""
    statement = session.statement()
    with session.attempt(job), statement.trial():
        _place(session, statement, queue, job, tasks)
        return len(statement)
    return 0


def _place(session: Session, statement: Statement, queue: Queue, job: Job, tasks: Sequence[Task]) -> list[Task]:
    """Place what finds a place; returns the members that do not."""
    turn = turns.Turn(session, statement, queue, job)
    session.findings.forget_fit(job)
    if not session.topology.steers(job):
        return task_runs.place_all(turn, tasks)
    inside_domains.place(turn, list(tasks))
    return [task for task in tasks if task.status == Status.PENDING]


def _missing(session: Session, job: Job, tasks: Sequence[Task]) -> list[MissingMember]:
    """Say of each kind of members why it finds no place, with the others in theirs."""
    reasons = session.findings.errors(job)
    found = []
    for kind in members.alike(tasks)[:KINDS]:
        first = kind[0]
        told = reasons.get(first.uid)
        nodes = placements.explain(session, kind)
        found.append(
            MissingMember(
                pod=first.name,
                count=len(kind),
                reason="it waits for a scheduling gate to be taken off" if first.gated else str(told or ""),
                role=first.role,
                # A node that would take it means that something else keeps it out, which is the reason.
                placement=None if nodes.fitting or first.gated else nodes,
            )
        )
    return found
