"""Placing a job sub-group by sub-group: each starts whole or not at all, those that the job needs to be complete first."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from pumice.actions.placing import domain_search, minimum, task_runs
from pumice.actions.placing.domain_goal import Goal, Progress
from pumice.framework.job_domains import ALLOCATE
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.framework.ordering import Ordering
    from pumice.model.job import SubJob
    from pumice.model.task import Task


def attempt(turn: Turn, stage: Progress, tasks: Sequence[Task]) -> Progress:
    """Serve sub-groups of a job inside a domain until it has what it needs; beyond its minimum, one of them."""
    session, job = turn.session, turn.job
    was_ready, before = session.job_ready(job), len(turn.statement)
    waiting: dict[str, list[Task]] = {}
    for task in tasks:
        if task.sub_job is not None:
            waiting.setdefault(task.sub_job.key, []).append(task)
    for accepted in domain_search.stages(turn) if stage is Progress.WAITS else [Progress.READY]:
        _go_through(turn, waiting, accepted, once=was_ready)
        if len(turn.statement) > before and (was_ready or _is_enough(turn, accepted)):
            break
    if len(turn.statement) == before:
        return Progress.NOTHING
    return domain_search.reached(ready=session.job_ready(job), pipelined=session.is_pipelined(job))


def _go_through(turn: Turn, waiting: dict[str, list[Task]], accepted: Progress, *, once: bool) -> None:
    """Serve one sub-group after the other until it is enough, or until one got something."""
    for sub_job in _work(turn, waiting, complete=once):
        served = _serve(turn, sub_job, waiting[sub_job.key], accepted) is not Progress.NOTHING
        if served:
            waiting[sub_job.key] = [task for task in waiting[sub_job.key] if task.status == Status.PENDING]
        if served and (once or _is_enough(turn, accepted)):
            return


def _is_enough(turn: Turn, accepted: Progress) -> bool:
    if accepted is Progress.READY and not turn.scope.waits:
        return turn.session.job_ready(turn.job)
    return turn.session.is_pipelined(turn.job)


def _work(turn: Turn, waiting: dict[str, list[Task]], *, complete: bool) -> Iterator[SubJob]:
    """Give the sub-jobs that have tasks: those that the job needs to be complete first; one that got something and has more comes again."""
    job, order = turn.job, turn.session.sub_job_order
    keys = sorted((order.key(job.sub_jobs[key]), key) for key, tasks in waiting.items() if tasks)
    listed = [job.sub_jobs[key] for _, key in keys]
    needed = {} if complete else required(turn, listed)
    again: list[tuple[Any, str]] = [entry for entry in keys if entry[1] not in needed]
    for sub_job in (each for each in listed if each.key in needed):
        yield from _offer(sub_job, waiting, again, order)
    while again:
        yield from _offer(job.sub_jobs[heapq.heappop(again)[1]], waiting, again, order)


def _offer(
    sub_job: SubJob, waiting: dict[str, list[Task]], again: list[tuple[Any, str]], order: Ordering[SubJob]
) -> Iterator[SubJob]:
    """Give a sub-job its chance, and another one later if it used it and has tasks left."""
    before = len(waiting[sub_job.key])
    yield sub_job
    if 0 < len(waiting[sub_job.key]) < before:
        heapq.heappush(again, (order.key(sub_job), sub_job.key))


def required(turn: Turn, listed: Sequence[SubJob]) -> dict[str, None]:
    """Return the sub-jobs, in order, that bring every policy to its number of complete sub-groups."""
    session, job = turn.session, turn.job
    lacking = {
        f"{job.key}/{policy.name}": policy.min_sub_groups
        - sum(
            1
            for each in job.sub_jobs.values()
            if each.group == f"{job.key}/{policy.name}" and session.is_sub_job_ready(job, each)
        )
        for policy in job.policies
        if policy.min_sub_groups
    }
    found: dict[str, None] = {}
    for sub_job in listed:
        if lacking.get(sub_job.group, 0) > 0 and not session.is_sub_job_ready(job, sub_job):
            lacking[sub_job.group] -= 1
            found[sub_job.key] = None
    return found


def _serve(turn: Turn, sub_job: SubJob, tasks: Sequence[Task], accepted: Progress) -> Progress:
    """Start a sub-group whole, or place one more of its tasks."""
    session, job = turn.session, turn.job
    topology = session.topology
    was_ready = session.is_sub_job_ready(job, sub_job)
    goal = Goal(
        sub_job=sub_job,
        groups=topology.sub_job_domains(sub_job, turn.scope.domain or topology.tree.root, ALLOCATE),
        limit=topology.sub_limit(sub_job) if session.sub_job_gradient.active else None,
        need=domain_search.needed(sub_job.tally, sub_job.minimum, ready=was_ready),
        tasks=minimum.named_first(session, job, tasks, sub_job)[0],
        attempt=_whole_sub_group(sub_job),
        is_part=True,
    )
    return domain_search.search(turn, goal, accepted)


def _whole_sub_group(sub_job: SubJob) -> Callable[[Turn, Progress, Sequence[Task]], Progress]:
    def attempt(turn: Turn, _stage: Progress, tasks: Sequence[Task]) -> Progress:
        session, job = turn.session, turn.job
        mark, before = turn.statement.checkpoint(), len(turn.statement)
        if session.is_sub_job_ready(job, sub_job):
            task_runs.place_until(turn, tasks, lambda: True)
            return Progress.READY if len(turn.statement) > before else Progress.NOTHING
        done = session.is_sub_job_pipelined if turn.scope.waits else session.is_sub_job_ready
        task_runs.place_until(turn, tasks, lambda: done(job, sub_job))
        if session.is_sub_job_ready(job, sub_job):
            return Progress.READY
        if not session.is_sub_job_pipelined(job, sub_job):
            return Progress.NOTHING
        if not turn.scope.waits:
            # A sub-group starts whole: what is on free room waits for the rest.
            turn.statement.make_wait(mark)
        return Progress.WAITS

    return attempt
