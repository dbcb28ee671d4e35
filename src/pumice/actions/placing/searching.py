"""Where a job would go at another time: its members are placed on trial as allocate places them, and everything is taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.placing import another_way, inside_domains, task_runs, turns, waiting_tasks
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.searching import Moment, Places
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task


class Searching:
    """The search of one cycle."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, job: Job, moment: Moment) -> Places | None:
        """Return a node for each pod that would be placed, None if the job would not be ready."""
        session, queue = self._session, self._session.queue_of(job)
        tasks = waiting_tasks.eligible(session, job, job.pending.values())
        if queue is None or not tasks:
            return None
        # Whoever places may discard what was placed, and that alone.
        statement, placing = session.statement(), session.statement()
        with session.attempt(job), statement.trial():
            statement.suppose(moment.gone, [None] * len(moment.gone), Status.SUCCEEDED)
            come = [(task, node) for task, node in moment.come if task.status == Status.PENDING]
            statement.suppose([task for task, _ in come], [node for _, node in come], Status.RUNNING)
            moment.begins()
            session.findings.forget_fit(job)
            with placing.trial():
                return self._placed(turns.Turn(session, placing, queue, job, turns.Scope(now=True)), tasks)
        return None

    def _placed(self, turn: turns.Turn, tasks: list[Task]) -> Places | None:
        session, job = turn.session, turn.job
        if session.topology.steers(job):
            inside_domains.place(turn, tasks)
        else:
            task_runs.place_minimum(turn, tasks)
            if not session.job_ready(job):
                another_way.place(turn, tasks)
        return _places(tasks) if session.job_ready(job) else None


def _places(tasks: Sequence[Task]) -> list[tuple[Task, NodeRecord]]:
    return [(task, task.node) for task in tasks if task.status == Status.ALLOCATED and task.node is not None]
