"""Placing a job inside hyper-nodes: as a whole, or sub-group by sub-group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.placing import domain_search, likeness, minimum, sub_jobs, task_runs
from pumice.actions.placing.domain_goal import Goal, Progress
from pumice.framework.job_domains import ALLOCATE
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.model.task import Task


def place(turn: Turn, tasks: Sequence[Task]) -> tuple[Progress, list[Task]]:
    """Bring a job forward; returns how far it got, and the tasks that may be tried in its next turn."""
    if turn.session.job_ready(turn.job) and not turn.job.policies:
        return _one_more(turn, tasks)
    free = [task for task in tasks if not task.gated]
    if not free:
        return Progress.NOTHING, []
    if turn.job.policies:
        goal = _goal(turn, free, 0, sub_jobs.attempt)
    else:
        goal = _goal(turn, *minimum.named_first(turn.session, turn.job, free), _whole_job)
    progress = domain_search.search(turn, goal)
    if progress is Progress.NOTHING:
        return progress, []
    return progress, [task for task in free if task.status == Status.PENDING]


def _goal(
    turn: Turn, tasks: Sequence[Task], named: int, attempt: Callable[[Turn, Progress, Sequence[Task]], Progress]
) -> Goal:
    session, job = turn.session, turn.job
    first = tasks[0].sub_job
    return Goal(
        # Domains are compared by the sub-job of the first task.
        sub_job=next(iter(job.sub_jobs.values())) if first is None else first,
        groups=session.topology.job_domains(job, ALLOCATE),
        limit=session.topology.heeded(job),
        need=max(named, domain_search.needed(job.tally, job.min_member, ready=session.job_ready(job))),
        tasks=tasks,
        attempt=attempt,
        compares=bool(job.policies) and not turn.scope.waits and not session.job_ready(job),
    )


def _one_more(turn: Turn, tasks: Sequence[Task]) -> tuple[Progress, list[Task]]:
    """Place one task of a job that has its minimum; those that are like one which fits nowhere are dropped."""
    left = [task for task in tasks if not task.gated]
    while left:
        first = left[0]
        progress = domain_search.search(turn, _goal(turn, [first], 1, _single))
        if progress is not Progress.NOTHING:
            return progress, left[1:]
        kinds = [(task, likeness.of_member(turn.session, task)) for task in left]
        failure = turn.session.findings.errors(turn.job).get(first.uid)
        if failure is not None:
            turn.session.findings.note_fit([task for task, kind in kinds if kind == kinds[0][1]], failure)
        left = [task for task, kind in kinds if kind != kinds[0][1]]
    return Progress.NOTHING, []


def _single(turn: Turn, stage: Progress, tasks: Sequence[Task]) -> Progress:
    before = len(turn.statement)
    task_runs.place_until(turn, tasks, lambda: True)
    if len(turn.statement) == before:
        return Progress.NOTHING
    waits = tasks[0].status == Status.PIPELINED and stage is Progress.READY
    return Progress.WAITS if waits else Progress.READY


def _whole_job(turn: Turn, _stage: Progress, tasks: Sequence[Task]) -> Progress:
    session, job = turn.session, turn.job
    before = len(turn.statement)
    done = (lambda: session.is_pipelined(job)) if turn.scope.waits else session.readiness(job)
    task_runs.place_until(turn, tasks, done)
    if len(turn.statement) == before:
        return Progress.NOTHING
    return domain_search.reached(ready=session.job_ready(job), pipelined=session.is_pipelined(job))
