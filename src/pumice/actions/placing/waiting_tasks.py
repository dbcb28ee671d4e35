"""The tasks of jobs that may be tried, in the order in which they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


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
