"""Placing a job inside hyper-nodes: as a whole, or sub-group by sub-group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions import domains, placing, subgroups
from pumice.actions.domains import Goal, Outcome
from pumice.framework.topology import Purpose
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.actions.placing import Turn
    from pumice.model.task import Task


def place(turn: Turn, tasks: list[Task]) -> Outcome:
    """Bring a job forward; of the tasks (a stack, first one last) those remain that may be tried in its next turn."""
    if turn.session.job_ready(turn.job) and not turn.job.policies:
        return _one_more(turn, tasks)
    tasks[:] = [task for task in tasks if not task.gated]
    if not tasks:
        return Outcome.NOTHING
    attempt = subgroups.attempts(tasks) if turn.job.policies else _whole_job(tasks)
    outcome = domains.search(turn, _goal(turn, tasks, attempt))
    if outcome is Outcome.NOTHING:
        tasks.clear()
    else:
        tasks[:] = [task for task in tasks if task.status == Status.PENDING]
    return outcome


def _goal(turn: Turn, tasks: list[Task], attempt: Callable[[Turn, Outcome], Outcome]) -> Goal:
    session, job = turn.session, turn.job
    first = tasks[-1].sub_job
    return Goal(
        # Domains are compared by the sub-job of the first task.
        sub_job=next(iter(job.sub_jobs.values())) if first is None else first,
        groups=session.topology.job_domains(job, Purpose.ALLOCATE),
        limit=session.topology.limit(job) if session.job_gradient.active else None,
        need=domains.needed(job.tally, job.min_member, ready=session.job_ready(job)),
        tasks=tasks,
        attempt=attempt,
        compares=bool(job.policies) and not turn.scope.waits and not session.job_ready(job),
    )


def _one_more(turn: Turn, tasks: list[Task]) -> Outcome:
    """Place one task of a job that has its minimum; those that are like one which fits nowhere are dropped."""
    while tasks:
        first = tasks[-1]
        if first.gated:
            tasks.pop()
            continue
        outcome = domains.search(turn, _goal(turn, [first], _single(first)))
        if outcome is not Outcome.NOTHING:
            tasks.pop()
            return outcome
        like = [task for task in tasks if task.likeness == first.likeness]
        failure = turn.session.findings.errors(turn.job).get(first.uid)
        if failure is not None:
            turn.session.findings.note_fit(reversed(like), failure)
        tasks[:] = [task for task in tasks if task.likeness != first.likeness]
    return Outcome.NOTHING


def _single(task: Task) -> Callable[[Turn, Outcome], Outcome]:
    def attempt(turn: Turn, stage: Outcome) -> Outcome:
        before = len(turn.statement)
        placing.place_until(turn, [task], lambda: True)
        if len(turn.statement) == before:
            return Outcome.NOTHING
        waits = task.status == Status.PIPELINED and stage is Outcome.READY
        return Outcome.WAITS if waits else Outcome.READY

    return attempt


def _whole_job(tasks: list[Task]) -> Callable[[Turn, Outcome], Outcome]:
    def attempt(turn: Turn, _stage: Outcome) -> Outcome:
        session, job = turn.session, turn.job
        before, stack = len(turn.statement), list(tasks)
        done = session.is_pipelined if turn.scope.waits else session.job_ready
        placing.place_until(turn, stack, lambda: done(job))
        if len(turn.statement) == before:
            return Outcome.NOTHING
        return domains.reached(ready=session.job_ready(job), pipelined=session.is_pipelined(job))

    return attempt
