"""backfill: place pods that ask for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.allocate import PlacingSettings
from pumice.api import names
from pumice.framework import reservations, selection
from pumice.framework.configuration import Configured
from pumice.framework.plugin import Action
from pumice.framework.reasons import FitSummary
from pumice.framework.subject import Subject
from pumice.model.job import BEST_EFFORT_PENDING
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


class Backfill(Action):
    """Place best-effort pods, those without any request, on nodes that pass all filters and have a free pod slot.

    They are bound one by one as soon as their job is ready; pending best-effort members count as ready.
    """

    name = "backfill"
    settings = Configured(PlacingSettings)

    def execute(self, session: Session) -> None:
        """Go through queues, jobs and tasks in their orders."""
        jobs = [job for job in session.statements.best_effort_jobs() if self._eligible(session, job)]
        by_queue: dict[str, list[Job]] = {}
        for job in jobs:
            by_queue.setdefault(job.queue, []).append(job)
        for queue in session.queue_order.sort(session.cluster.queues[name] for name in by_queue):
            for job in session.job_order.sort(by_queue[queue.name]):
                for task in _in_order(session, job):
                    if session.breakdowns.has(job):
                        break  # a plugin broke down about it: its members are not bound one by one any more
                    self._place(session, job, task)

    def _eligible(self, session: Session, job: Job) -> bool:
        if not session.usable(job) or session.findings.phase(job) == names.PHASE_PENDING:
            return False
        if (invalid := session.job_valid(job)) is not None:
            session.record.judge(job.key, self.name, f"{invalid.reason}: {invalid.message}")
            return False
        if (closed := session.closed(job)) is not None:
            session.findings.note_fit(_tasks(session, job), FitSummary(0, (), closed))
            session.record.judge(job.key, self.name, closed)
            return False
        return True

    def _place(self, session: Session, job: Job, task: Task) -> None:
        """Place one task; a node that is held for it stays held if there is no other."""
        session.findings.attempt(job)
        if task.status == Status.PIPELINED:
            session.statements.release(task)
        with session.attempt(job):
            self._try(session, job, task)
        if task.status == Status.PENDING:
            reservations.put_back(session, session.reservations, [task])

    def _try(self, session: Session, job: Job, task: Task) -> None:
        """Place one task on the best node, and bind the job's placed tasks if it is ready."""
        if (lack := _what_its_sub_group_lacks(session, job, task)) is not None:
            session.findings.note_fit([task], FitSummary(0, (), lack))
            session.record.judge(job.key, self.name, f"{task.name}: {lack}")
            return
        looked_for = Subject(task, session.queue_of(job))
        refusal = session.pre_predicate(looked_for)
        if refusal is not None:
            session.findings.note_fit(
                [task], FitSummary(session.cluster.nodes.count, ((refusal, session.cluster.nodes.count),))
            )
            return
        evaluation = session.evaluate(looked_for)
        within = session.topology.reach(task)
        rows = selection.choose(evaluation, session.cluster.nodes, 1, released=False, within=within)
        if not rows:
            failure = evaluation.failure(released=False, within=within)
            session.findings.note_fit([task], failure)
            session.record.judge(job.key, self.name, f"{task.name}: {failure}")
            return
        statement = session.statement()
        if statement.allocate([task], [session.cluster.nodes.records[rows[0]]]):
            is_ready = session.job_ready(job)
            session.record.acquit(job.key, self.name)
            statement.keep()
            if is_ready:
                session.sender.dispatch(job)


def _in_order(session: Session, job: Job) -> list[Task]:
    """Return the tasks to place, in their order; none if they cannot be ordered."""
    with session.attempt(job):
        return session.task_order.sort(_tasks(session, job))
    return []


def _what_its_sub_group_lacks(session: Session, job: Job, task: Task) -> str | None:
    """Say what keeps the sub-group of a task from starting whole, None if nothing does."""
    sub_job = task.sub_job
    if not job.policies or sub_job is None or session.is_sub_job_ready(job, sub_job):
        return None
    tally = sub_job.tally
    there = tally.ready + tally.counts[BEST_EFFORT_PENDING]
    return f"sub-group {sub_job.key} has {there} of the {sub_job.minimum} members it starts with"


def _tasks(session: Session, job: Job) -> list[Task]:
    """List the best-effort tasks that have no node, or only the promise of one."""
    return [
        task
        for task in job.tasks.values()
        if task.best_effort
        and not task.gated
        and task.status in (Status.PENDING, Status.PIPELINED)
        and session.may_try(task)
    ]
