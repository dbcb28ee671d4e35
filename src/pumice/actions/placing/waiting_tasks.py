"""The tasks of jobs that may be tried, in the order in which they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.framework.reasons import FitSummary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


def listed(session: Session, jobs: Iterable[Job], action: str) -> tuple[dict[str, list[Job]], dict[str, list[Task]]]:
    """List the jobs that an action is to serve by queue, and for each its eligible tasks in order."""
    members: dict[str, list[Job]] = {}
    work: dict[str, list[Task]] = {}
    reserved = {task.job_key for uid, task in session.reserved.items() if uid not in session.resting_holders}
    closed_queues = session.closed_queues()
    for job in session.usable_jobs(jobs):
        if session.findings.phase(job) == names.PHASE_PENDING:
            continue
        if (invalid := session.job_valid(job)) is not None:
            session.record.judge(job.key, action, f"{invalid.reason}: {invalid.message}")
            continue
        waiting: Iterable[Task] = job.pending.values()
        if job.key in reserved:
            waiting = [*waiting, *(t for t in job.tasks.values() if t.uid in session.reserved)]
        if tasks := usable(session, waiting):
            if job.queue in closed_queues:
                _keep_out(session, job, tasks, closed_queues[job.queue], action)
                continue
            work[job.key] = tasks
            members.setdefault(job.queue, []).append(job)
    put_in_order(session, members, work)
    return members, work


def _keep_out(session: Session, job: Job, tasks: list[Task], closed: str, action: str) -> None:
    """Note that the queue of a job starts nothing new."""
    if tasks := in_order(session, job, tasks):
        session.findings.attempt(job)
        session.findings.note_fit(tasks, FitSummary(0, (), closed))
        session.record.judge(job.key, action, closed)


def eligible(session: Session, job: Job, waiting: Iterable[Task]) -> list[Task]:
    """Return the tasks of a job that may be tried, in order."""
    return in_order(session, job, usable(session, waiting))


def usable(session: Session, waiting: Iterable[Task]) -> list[Task]:
    """Return the tasks that may be tried."""
    started = session.started
    return [
        task
        for task in waiting
        if not task.best_effort and not task.externally_gated and (task.retry_at <= started or session.may_try(task))
    ]


def put_in_order(session: Session, members: dict[str, list[Job]], work: dict[str, list[Task]]) -> None:
    """Put the tasks of every job in order, of all jobs at once if nobody breaks down; a job whose tasks cannot be ordered is not served."""
    if not session.reserved:
        try:
            session.task_order.sort_each([tasks for tasks in work.values() if len(tasks) > 1])
        except Exception as error:  # noqa: BLE001  whatever it is, it comes again where the tasks of one job are put in order
            session.observer.retreated("task order", error)
        else:
            return
    for name, jobs in list(members.items()):
        for job in jobs:
            work[job.key] = in_order(session, job, work[job.key])
        members[name] = [job for job in jobs if work[job.key]]
        if not members[name]:
            del members[name]


def in_order(session: Session, job: Job, tasks: list[Task]) -> list[Task]:
    """Return tasks of a job in order; whoever room is held for comes before others of the job. None of them if they cannot be ordered."""
    if len(tasks) < 2:
        return tasks
    with session.attempt(job):
        tasks = session.task_order.sort(tasks)
        if session.reserved:
            # The plan was made for these members, not for others.
            tasks.sort(key=lambda task: task.uid not in session.reserved)
        return tasks
    return []
