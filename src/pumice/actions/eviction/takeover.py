"""Taking over a hold: who could evict a claimant if it ran may have the room that is held for it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from pumice.actions.eviction import asking, votes
from pumice.actions.eviction.equal_holders import EqualHolders
from pumice.framework import reservations, resting, subject
from pumice.model.statuses import TENTATIVE, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task


class Found(NamedTuple):
    """The jobs whose held room a claimant may have, and whether any that hold some would be offered to it, if only to be refused since they could take it back."""

    jobs: list[Job]
    is_any_offered: bool


def holders(session: Session, rules: Rules, claimant: Task) -> Found:
    """Return the jobs with held room whose members the claimant could evict by the same rules if they ran."""
    if not session.reserved:
        return Found([], is_any_offered=False)
    asked = _Asked()
    is_alone = len(_asking_too(session, claimant)) == 1
    equal = EqualHolders(session, rules, claimant, asked.could_evict, asked.could_evict if is_alone else is_offered)
    kinds = resting.of(session).kinds(session)
    safe = set[str]().union(*[kind for kind in kinds if equal.are_safe(list(kind.values()))])
    waiting: dict[str, list[Task]] = {}
    for uid, task in session.reserved.items():
        if uid in safe:
            continue
        if task.job is not None and task.job is not claimant.job and task.status in TENTATIVE:
            waiting.setdefault(task.job.key, []).append(task)
    found = [session.cluster.jobs[key] for key, tasks in waiting.items() if equal.could_be_evicted(tasks)]
    return Found(found, is_any_offered=asked.is_any_offered)


class _Asked:
    """Asks about holders, and remembers whether any was offered."""

    def __init__(self) -> None:
        self.is_any_offered = False

    def could_evict(self, session: Session, rules: Rules, claimant: Task, tasks: Sequence[Task]) -> bool:
        """Tell whether a claimant could evict tasks if they ran, and they could not evict it in turn."""
        statement = session.statement()
        with statement.trial():
            places = _where_offered(statement, rules, claimant, tasks)
            if not places:
                return False
            self.is_any_offered = True
            statement.suppose(tasks, [None] * len(tasks), Status.PENDING)
            members = _asking_too(session, claimant)
            return not any(_would_be_offered(statement, rules, members, tasks, each) for each in places)


def is_offered(session: Session, rules: Rules, claimant: Task, tasks: Sequence[Task]) -> bool:
    """Tell whether any of some tasks would be offered to a claimant if they ran."""
    statement = session.statement()
    with statement.trial():
        return bool(_where_offered(statement, rules, claimant, tasks))


def could_evict(session: Session, rules: Rules, claimant: Task, tasks: Sequence[Task]) -> bool:
    """Tell whether a claimant could evict tasks if they ran, and they could not evict it in turn."""
    return _Asked().could_evict(session, rules, claimant, tasks)


def _where_offered(statement: Statement, rules: Rules, claimant: Task, tasks: Sequence[Task]) -> list[NodeRecord]:
    """Let tasks run where they wait, and return the nodes on which any of them is offered to a claimant."""
    nodes = list({id(task.node): task.node for task in tasks if task.node is not None}.values())
    statement.suppose(tasks, [task.node for task in tasks], Status.RUNNING)
    wanted = {task.uid for task in tasks}
    return [record for record in nodes if any(t.uid in wanted for t in votes.offered(rules, claimant, record))]


def _asking_too(session: Session, claimant: Task) -> list[Task]:
    """Return a claimant with all that its job lacks: what a gang holds once it is there decides whether it may keep it."""
    job = claimant.job
    if job is None:
        return [claimant]
    waiting = [task for task in asking.claimants(session, job) if task.status == Status.PENDING]
    return [claimant, *(task for task in asking.members_lacking(job, waiting) if task is not claimant)]


def _would_be_offered(
    statement: Statement, rules: Rules, claimants: Sequence[Task], others: Sequence[Task], record: NodeRecord
) -> bool:
    """Tell whether any of the claimants, all of which ran on a node, would be offered to one of the others."""
    own = {task.uid for task in claimants}
    with statement.trial():
        statement.suppose(claimants, [record] * len(claimants), Status.RUNNING)
        kinds = {id(task.shape): task for task in others}.values()
        return any(task.uid in own for other in kinds for task in votes.offered(rules, other, record))


class Lifted:
    """Holds that are off for a while; `keep` says that somebody has room now that some of them counted on."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = tasks
        self.final = False

    def keep(self) -> None:
        """Let the holds go whose room is taken."""
        self.final = True


@contextlib.contextmanager
def lifted(session: Session, jobs: Sequence[Job]) -> Iterator[Lifted]:
    """Take the holds of jobs off, and put them back afterwards but for those whose room was taken over."""
    by_job = [(job, reservations.lift(session, job)) for job in jobs]
    off = Lifted([task for _, tasks in by_job for task in tasks])
    try:
        yield off
    finally:
        if not off.final:
            reservations.put_back(session, session.reservations, off.tasks)
        else:
            for job, tasks in by_job:
                _hold_the_rest(session, job, tasks)


def _hold_the_rest(session: Session, job: Job, tasks: Sequence[Task]) -> None:
    """Hold for a job again what it has left of its room; a plan that lost one member's is worth nothing to the others."""
    queue = session.queue_of(job)
    if queue is not None and session.allocatable(queue, subject.demand(tasks, waits=True)) is None:
        reservations.put_back(session, session.reservations, tasks)
    if any(task.status == Status.PENDING for task in tasks):
        reservations.lift(session, job)
        held = session.reservations.holds
        session.reservations.drop([task for task in job.tasks.values() if task.uid in held])
