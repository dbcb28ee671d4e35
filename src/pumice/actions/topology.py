"""Placing a job inside hyper-nodes: as a whole, or sub-group by sub-group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions import domains, placing, subgroups
from pumice.actions.domains import Goal, Outcome
from pumice.framework.topology import Purpose
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.placing import Turn
    from pumice.model.job import SubJob
    from pumice.model.task import Task


def place(turn: Turn, tasks: list[Task]) -> Outcome:
    """Bring a job forward; of the tasks (a stack, first one last) those remain that may be tried in its next turn."""
    job, session = turn.job, turn.session
    tasks[:] = [task for task in tasks if not task.gated]
    if not tasks:
        return Outcome.NOTHING
    attempt = _whole_job(tasks) if not job.policies else subgroups.attempts(tasks)
    goal = Goal(
        sub_job=_first(turn, tasks),
        groups=session.topology.job_domains(job, Purpose.ALLOCATE),
        limit=session.topology.limit(job) if session.job_gradient.active else None,
        need=domains.needed(job.tally, job.min_member, ready=session.job_ready(job)),
        tasks=tasks,
        attempt=attempt,
    )
    outcome = domains.search(turn, goal)
    if outcome is Outcome.NOTHING:
        tasks.clear()
    else:
        tasks[:] = [task for task in tasks if task.status == Status.PENDING]
    return outcome


def _whole_job(tasks: list[Task]) -> Callable[[Turn, Outcome], Outcome]:
    def attempt(turn: Turn, _stage: Outcome) -> Outcome:
        session, job = turn.session, turn.job
        before, stack = len(turn.statement), list(tasks)
        was_ready = session.job_ready(job)
        if turn.scope.waits and not was_ready:
            placing.place_until(turn, stack, lambda: session.is_pipelined(job))
        else:
            placing.place_job(turn, stack)
        if was_ready:
            return Outcome.READY if len(turn.statement) > before else Outcome.NOTHING
        return domains.reached(ready=session.job_ready(job), pipelined=session.is_pipelined(job))

    return attempt


def _first(turn: Turn, tasks: Sequence[Task]) -> SubJob:
    """Return the sub-job by which domains of a job are compared: that of its first task."""
    found = tasks[-1].sub_job
    return next(iter(turn.job.sub_jobs.values())) if found is None else found
