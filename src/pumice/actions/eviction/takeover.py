"""Taking over a hold: who could evict a claimant if it ran may have the room that is held for it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pumice.framework import reservations
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


def holders(session: Session, rules: Rules, claimant: Task) -> list[Job]:
    """Return the jobs with held room whose members the claimant could evict by the same rules if they ran."""
    waiting: dict[str, list[Task]] = {}
    for task in session.reserved.values():
        if task.job is not None and task.job is not claimant.job and task.status == Status.PIPELINED:
            waiting.setdefault(task.job.key, []).append(task)
    return [
        session.cluster.jobs[key] for key, tasks in waiting.items() if _could_evict(session, rules, claimant, tasks)
    ]


def _could_evict(session: Session, rules: Rules, claimant: Task, tasks: Sequence[Task]) -> bool:
    homes = [(task, task.node) for task in tasks]
    for task, record in homes:
        session.cluster.move([task], [record], Status.RUNNING)
    try:
        nodes = {id(record): record for _, record in homes if record is not None}
        wanted = {task.uid for task in tasks}
        return any(task.uid in wanted for record in nodes.values() for task in rules.offered(claimant, record))
    finally:
        for task, record in homes:
            session.cluster.move([task], [record], Status.PIPELINED)


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
            session.reservations.drop(off.tasks)
        else:
            reservations.put_back(session, session.reservations, off.tasks)
