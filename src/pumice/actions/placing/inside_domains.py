"""Placing a job inside hyper-nodes: as a whole, or sub-group by sub-group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.placing import domain_search, sub_jobs, task_runs
from pumice.actions.placing.domain_search import Goal, Progress
from pumice.framework.job_domains import Purpose
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.actions.placing.task_runs import Turn
    from pumice.model.task import Task


def place(turn: Turn, tasks: list[Task]) -> Progress:
    """Bring a job forward; of the tasks (a stack, first one last) those remain that may be tried in its next turn."""
    if turn.session.job_ready(turn.job) and not turn.job.policies:
        return _one_more(turn, tasks)
    tasks[:] = [task for task in tasks if not task.gated]
    if not tasks:
        return Progress.NOTHING
    attempt = sub_jobs.attempts(tasks) if turn.job.policies else _whole_job(tasks)
    progress = domain_search.search(turn, _goal(turn, tasks, attempt))
    if progress is Progress.NOTHING:
        tasks.clear()
    else:
        tasks[:] = [task for task in tasks if task.status == Status.PENDING]
    return progress


def _goal(turn: Turn, tasks: list[Task], attempt: Callable[[Turn, Progress], Progress]) -> Goal:
    session, job = turn.session, turn.job
    first = tasks[-1].sub_job
    return Goal(
        # Domains are compared by the sub-job of the first task.
        sub_job=next(iter(job.sub_jobs.values())) if first is None else first,
        groups=session.topology.job_domains(job, Purpose.ALLOCATE),
        limit=session.topology.limit(job) if session.job_gradient.active else None,
        need=domain_search.needed(job.tally, job.min_member, ready=session.job_ready(job)),
        tasks=tasks,
        attempt=attempt,
        compares=bool(job.policies) and not turn.scope.waits and not session.job_ready(job),
    )


def _one_more(turn: Turn, tasks: list[Task]) -> Progress:
    """Place one task of a job that has its minimum; those that are like one which fits nowhere are dropped."""
    while tasks:
        first = tasks[-1]
        if first.gated:
            tasks.pop()
            continue
        progress = domain_search.search(turn, _goal(turn, [first], _single(first)))
        if progress is not Progress.NOTHING:
            tasks.pop()
            return progress
        like = [task for task in tasks if task.likeness == first.likeness]
        failure = turn.session.findings.errors(turn.job).get(first.uid)
        if failure is not None:
            turn.session.findings.note_fit(reversed(like), failure)
        tasks[:] = [task for task in tasks if task.likeness != first.likeness]
    return Progress.NOTHING


def _single(task: Task) -> Callable[[Turn, Progress], Progress]:
    def attempt(turn: Turn, stage: Progress) -> Progress:
        before = len(turn.statement)
        task_runs.place_until(turn, [task], lambda: True)
        if len(turn.statement) == before:
            return Progress.NOTHING
        waits = task.status == Status.PIPELINED and stage is Progress.READY
        return Progress.WAITS if waits else Progress.READY

    return attempt


def _whole_job(tasks: list[Task]) -> Callable[[Turn, Progress], Progress]:
    def attempt(turn: Turn, _stage: Progress) -> Progress:
        session, job = turn.session, turn.job
        before, stack = len(turn.statement), list(tasks)
        done = session.is_pipelined if turn.scope.waits else session.job_ready
        task_runs.place_until(turn, stack, lambda: done(job))
        if len(turn.statement) == before:
            return Progress.NOTHING
        return domain_search.reached(ready=session.job_ready(job), pipelined=session.is_pipelined(job))

    return attempt
