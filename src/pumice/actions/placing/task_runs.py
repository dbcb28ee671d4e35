"""Finding nodes for the tasks of one job: runs of equal tasks at once, in task order, until the job is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import selection, subject
from pumice.framework.points import Reads
from pumice.framework.reasons import FitSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.placing.turns import Scope, Turn
    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.model.job import Job, SubJob
    from pumice.model.nodes import Rows
    from pumice.model.queue import Queue
    from pumice.model.task import Task


def place_job(turn: Turn, tasks: Sequence[Task]) -> list[Task]:
    """Place tasks until the job is ready, a task that must not be missing fails, or none is left; returns those to try in its next turn."""
    if turn.session.job_ready(turn.job):
        # Beyond its minimum a job gets one pod per turn; the first one that finds a node ends the turn.
        return place_until(turn, tasks, lambda: True)
    return place_until(turn, tasks, lambda: turn.session.job_ready(turn.job))


def place_until(turn: Turn, tasks: Sequence[Task], done: Callable[[], bool]) -> list[Task]:
    """Place tasks until it is enough, a task that must not be missing fails, or none is left; returns those that were not tried."""
    session, job = turn.session, turn.job
    failed_roles: dict[str, None] = {}
    position = 0
    while position < len(tasks):
        run = next_run(session, tasks, position)
        start, position = position, position + len(run)
        first = run[0]
        if first.gated:
            continue
        if first.role and first.role in failed_roles:
            _note_like(session, job, run)
            continue
        allowed, refusal = _allowed(session, turn.queue, run)
        placed, finished = _place_run(turn, run[:allowed], done) if allowed else (0, False)
        if refusal is not None:
            _note_beyond(session, run, placed if not finished else allowed, allowed, refusal)
        if finished:
            return list(tasks[start + placed :])
        if placed < allowed:
            # The run stopped short: no node takes the next task, nor any other that is equal to it.
            failed_roles[first.role] = None
            if not goes_on(job, first.sub_job, failed_roles):
                break
    return list(tasks[position:])


def next_run(session: Session, tasks: Sequence[Task], start: int = 0) -> list[Task]:
    """Return the equal tasks that begin at a position.

    A task with a nominated node stands alone, and so does every task if some function tells equal ones apart. Plugins may divide tasks further.
    """
    first, divisions = tasks[start], session.divisions
    if first.nominated or session.evaluator.functions.reads & Reads.TASK:
        return [first]
    parts = [part(first) for part in divisions]
    end = start + 1
    while end < len(tasks):
        task = tasks[end]
        if task.shape is not first.shape or task.role != first.role or task.sub_job is not first.sub_job:
            break
        if task.bond is not first.bond and task.likeness != first.likeness:
            break
        if task.nominated or task.gated != first.gated:
            break
        if divisions and [part(task) for part in divisions] != parts:
            break
        end += 1
    return list(tasks[start:end])


def _allowed(session: Session, queue: Queue, run: list[Task]) -> tuple[int, FitSummary | None]:
    """Return how many tasks of a run the queue may take on, and why no more; limits only ever allow fewer as more is asked."""
    if not session.allocatable.active or session.allocatable(queue, subject.equal_tasks(run)) is None:
        return len(run), None
    low, high = 0, len(run)
    while high - low > 1:
        middle = (low + high) // 2
        if session.allocatable(queue, subject.equal_tasks(run[:middle])) is None:
            low = middle
        else:
            high = middle
    refusal = session.allocatable(queue, subject.equal_tasks(run[: low + 1]))
    return low, FitSummary(0, (), f"queue {queue.name}: {refusal}")


def _note_beyond(session: Session, run: list[Task], placed: int, allowed: int, refusal: FitSummary) -> None:
    """Say why tasks beyond what the queue may take on wait: for the queue, unless nodes already stopped an equal one before them."""
    job = run[0].job
    if placed < allowed and job is not None:
        refusal = session.findings.errors(job).get(run[placed].uid, refusal)
    session.findings.note_fit(run[allowed:], refusal)


def _place_run(turn: Turn, run: list[Task], done: Callable[[], bool]) -> tuple[int, bool]:
    """Place equal tasks on free room, then on room that is being released; returns how many are dealt with, and whether it is enough."""
    session, statement, scope = turn.session, turn.statement, turn.scope
    looked_for = subject.Subject(run[0], turn.queue)
    refusal = session.pre_predicate(looked_for)
    if refusal is not None:
        session.findings.note_fit(
            run, FitSummary(session.cluster.nodes.count, ((refusal, session.cluster.nodes.count),))
        )
        return 0, False
    evaluation = session.evaluate(looked_for)
    placed = 0
    for released in (True,) if scope.waits else (False, True):
        while placed < len(run):
            # No more is chosen ahead than the gang still lacks; what turns out to be needed beyond that is chosen in the next round.
            rows = _choose(session, evaluation, run[placed : placed + lacking(run[0])], scope, released=released)
            if not rows:
                break
            records = [session.cluster.nodes.records[row] for row in rows]
            batch = run[placed : placed + len(records)]
            if released:
                moved = statement.pipeline(batch, records, done, evicted=scope.waits)
            else:
                moved = statement.allocate(batch, records, done)
            placed += moved
            if moved and done():
                return placed, True
            if moved < len(batch):
                # A plugin refused this one placement, and the statement has noted why; the next task may still go.
                placed += 1
    if placed < len(run):
        session.findings.note_fit(run[placed:], scope.failure(evaluation))
    return placed, False


def lacking(task: Task) -> int:
    """Return how many members the gang of a task, or its sub-group, still lacks; at least one."""
    job, sub_job = task.job, task.sub_job
    if job is None:
        return 1
    if job.policies and sub_job is not None:
        return max(1, sub_job.minimum - sub_job.tally.ready - sub_job.tally.waiting)
    return max(1, job.min_member - job.tally.ready - job.tally.waiting)


def _choose(session: Session, evaluation: Evaluation, run: list[Task], scope: Scope, *, released: bool) -> list[int]:
    """Choose rows for as many of the tasks as can be chosen at once."""
    table = session.cluster.nodes
    nominated = table.by_name.get(run[0].nominated) if run[0].nominated else None
    within = scope.within
    if nominated is not None and nominated.row < table.count and (within is None or nominated.row in within):
        rows = selection.choose(
            evaluation, table, 1, released=released, within=np.array([nominated.row], dtype=np.int64)
        )
        if rows:
            return rows
    if session.best_node.active:
        return _best_node(session, evaluation, within, released=released)
    return selection.choose(evaluation, table, len(run), released=released, within=within)


def _best_node(session: Session, evaluation: Evaluation, within: Rows | None, *, released: bool) -> list[int]:
    """Let the plugins that know better name the node, else take the highest score."""
    table = session.cluster.nodes
    mask = evaluation.mask(released=released)
    candidates = np.flatnonzero(mask) if within is None else within[mask[within]]
    if not len(candidates):
        return []
    evaluation.refresh_scores()
    scores = evaluation.plain[candidates] + evaluation.normalised(candidates)
    named = session.best_node(evaluation.subject, table.view(candidates, released=released), scores)
    if named is not None and named in candidates:
        return [named]
    return [selection.best(evaluation, candidates)]


def _note_like(session: Session, job: Job, run: list[Task]) -> None:
    """Give tasks of a role that already failed the reason of the one that was tried."""
    errors = session.findings.errors(job)
    for task in job.pending.values():
        if task.role == run[0].role and task.uid in errors:
            session.findings.note_fit(run, errors[task.uid])
            return


def goes_on(job: Job, sub_job: SubJob | None, failed_roles: dict[str, None]) -> bool:
    """Tell whether the remaining tasks are worth trying after one found no node."""
    if job.min_member == len(job.tasks) or (sub_job is not None and sub_job.minimum >= len(sub_job.tasks)):
        return False
    if job.policies:
        return True
    if job.min_member < job.min_task_total:
        others = sum(1 for task in job.pending.values() if task.role not in failed_roles)
        return job.tally.ready + others >= job.min_member
    for role in failed_roles:
        minimum = job.min_task_member.get(role, 0)
        tally = job.roles.get(role)
        if minimum > 0 and (tally is None or not tally.is_ready(minimum)):
            return False
    return True
