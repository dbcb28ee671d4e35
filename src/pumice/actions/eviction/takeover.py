"""Taking over a hold: who could evict a claimant if it ran may have the room that is held for it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pumice.actions.eviction import asking
from pumice.framework import reservations
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task


def holders(session: Session, rules: Rules, claimant: Task) -> list[Job]:
    """Return the jobs with held room whose members the claimant could evict by the same rules if they ran."""
    waiting: dict[str, list[Task]] = {}
    for task in session.reserved.values():
        if task.job is not None and task.job is not claimant.job and task.status == Status.PIPELINED:
            waiting.setdefault(task.job.key, []).append(task)
    return [session.cluster.jobs[key] for key, tasks in waiting.items() if could_evict(session, rules, claimant, tasks)]


def could_evict(session: Session, rules: Rules, claimant: Task, tasks: Sequence[Task]) -> bool:
    """Tell whether a claimant could evict tasks if they ran, and they could not evict it in turn."""
    nodes = list({id(task.node): task.node for task in tasks if task.node is not None}.values())
    statement = session.statement()
    with statement.trial():
        statement.suppose(tasks, [task.node for task in tasks], Status.RUNNING)
        wanted = {task.uid for task in tasks}
        places = [record for record in nodes if any(t.uid in wanted for t in rules.offered(claimant, record))]
        if not places:
            return False
        statement.suppose(tasks, [None] * len(tasks), Status.PENDING)
        # With all that its job lacks: what a gang holds once it is there decides whether it may keep it.
        asking_too = [claimant, *(task for task in _lacking(session, claimant) if task is not claimant)]
        return not any(_would_be_offered(statement, rules, asking_too, tasks, each) for each in places)


def _lacking(session: Session, claimant: Task) -> list[Task]:
    job = claimant.job
    waiting = [] if job is None else [task for task in asking.claimants(session, job) if task.status == Status.PENDING]
    return [] if job is None else asking.members_lacking(job, waiting)


def _would_be_offered(
    statement: Statement, rules: Rules, claimants: Sequence[Task], others: Sequence[Task], record: NodeRecord
) -> bool:
    """Tell whether any of the claimants, all of which ran on a node, would be offered to one of the others."""
    own = {task.uid for task in claimants}
    with statement.trial():
        statement.suppose(claimants, [record] * len(claimants), Status.RUNNING)
        kinds = {id(task.shape): task for task in others}.values()
        return any(task.uid in own for other in kinds for task in rules.offered(other, record))


class Lifted:
    """Holds that are off for a while; `keep` makes that final."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = tasks
        self.final = False

    def keep(self) -> None:
        """Let the holds go for good."""
        self.final = True


@contextlib.contextmanager
def lifted(session: Session, jobs: Sequence[Job]) -> Iterator[Lifted]:
    """Take the holds of jobs off, and put them back afterwards unless they are to stay off."""
    off = Lifted([task for job in jobs for task in reservations.lift(session, job)])
    try:
        yield off
    finally:
        if off.final:
            # A plan that lost one member's room is worth nothing to the others.
            held = session.reservations.holds
            session.reservations.drop([task for job in jobs for task in job.tasks.values() if task.uid in held])
        else:
            reservations.put_back(session, session.reservations, off.tasks)
