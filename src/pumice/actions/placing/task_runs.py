"""Finding nodes for the tasks of one job: runs of equal tasks at once, in task order, until the job is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.placing import drafted, minimum, misfits
from pumice.actions.placing.turns import Scope
from pumice.framework import reasons, selection, subject
from pumice.framework.reasons import FitSummary
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.model.nodes import Rows
    from pumice.model.task import Task


class Tried(msgspec.Struct, frozen=True):
    """How far a run got: how many of its tasks are dealt with, how many of these are placed, and whether that is enough."""

    dealt_with: int
    placed: int
    enough: bool = False


def place_minimum(turn: Turn, tasks: Sequence[Task], order: Sequence[Task] | None = None) -> list[Task]:
    """Place tasks until the job is ready, a task that must not be missing fails, or none is left; returns those to try in its next turn.

    They are tried in the order that is given, by default those first that the minimum names.
    """
    session, job = turn.session, turn.job
    if order is None:
        order = minimum.named_first(session, job, tasks)[0]
    done = session.readiness(job)
    count = _placed_together(turn, order)
    rest = order[count:]
    left = {task.uid for task in (rest if count and done() else place_until(turn, rest, done))}
    return [task for task in tasks if task.uid in left] if left else []


def _placed_together(turn: Turn, order: Sequence[Task]) -> int:
    """Place members of different shapes together, no more than the minimum asks for, since the job is not ready before; returns how many, none if they have to be placed run by run."""
    session, job = turn.session, turn.job
    members = order[: minimum.lacking(job.tally, job.min_member)]
    if len(members) < 2 or members[0].shape is members[1].shape:
        return 0
    if job.policies or turn.scope != Scope() or not session.announced.minimums_count:
        return 0
    allocatable = session.allocatable
    if allocatable.active and allocatable(turn.queue, subject.demand(members)) is not None:
        return 0
    count = 0
    while more := drafted.place(session, turn.statement, turn.queue, members[count:]):
        count += more
    return count


def place_equal_ahead(turn: Turn, run: list[Task], is_next: Callable[[], bool]) -> int:
    """Place equal tasks on free room, the fewer the sooner the next turn is somebody else's; returns how many. Nothing is said of those that find no node."""
    session, statement = turn.session, turn.statement
    looked_for = subject.Subject(run[0], turn.queue)
    allowed = _allowed(turn, run)[0]
    if not allowed or session.pre_predicate(looked_for) is not None:
        return 0
    rows = _choose(session, session.evaluate(looked_for), run[:allowed], turn.scope, released=False)
    records = [session.cluster.nodes.records[row] for row in rows]
    mark, count = statement.checkpoint(), len(records)
    while count:
        if statement.allocate(run[:count], records[:count]) == count and is_next():
            return count
        statement.rollback(mark)
        count //= 2
    return 0


def place_until(
    turn: Turn, tasks: Sequence[Task], done: Callable[[], bool], first: list[Task] | None = None
) -> list[Task]:
    """Place tasks until it is enough, a task that must not be missing fails, or none is left; returns those that were not tried.

    They are tried in the given order until one is missing; then those come first that the minimum now asks for. The equal ones that come first may be given.
    """
    session, job = turn.session, turn.job
    failed = misfits.begin(turn)
    beyond: dict[tuple[int, int], FitSummary] = {}
    rest = tasks
    position = 0
    while position < len(rest):
        run, first = first or next_run(session, rest, position), None
        start, position = position, position + len(run)
        if run[0].gated:
            continue
        if (known := failed.reason(run[0])) is not None:
            session.findings.note_fit(run, known)
            continue
        allowed, refusal = _allowed(turn, run, beyond)
        if refusal is not None and refusal.due and not allowed:
            refusal = _asked_of_nodes(turn, run[0], refusal)
        tried = _place_run(turn, run[:allowed], done) if allowed else Tried(0, 0)
        if refusal is not None:
            _note_beyond(session, run, tried.dealt_with if not tried.enough else allowed, allowed, refusal)
        if tried.enough:
            return list(rest[start + tried.dealt_with :])
        if tried.placed < len(run):
            part = run[0].sub_job if job.policies else None
            rest, position = minimum.named_first(session, job, rest[position:], part)[0], 0
        if tried.dealt_with < allowed:
            # The run stopped short: no node takes the next task, nor any other that is equal to it.
            failed.add(run[tried.dealt_with])
            if not failed.leave_hope(run[0].sub_job, rest):
                break
    return list(rest[position:])


def place_all(turn: Turn, tasks: Sequence[Task]) -> list[Task]:
    """Place every task that finds a node beside the others, whoever is missing; returns those that found none."""
    missing: list[Task] = []
    position = 0
    while position < len(tasks):
        run = next_run(turn.session, tasks, position)
        position += len(run)
        allowed, refusal = (0, None) if run[0].gated else _allowed(turn, run)
        if allowed:
            _place_run(turn, run[:allowed], lambda: False)
        if refusal is not None:
            _note_beyond(turn.session, run, allowed, allowed, refusal)
        missing += [task for task in run if task.status == Status.PENDING]
    return missing


def next_run(session: Session, tasks: Sequence[Task], start: int = 0) -> list[Task]:
    """Return the equal tasks that begin at a position.

    A task with a nominated node stands alone, and so does every task if some function tells equal ones apart. Plugins may divide tasks further.
    """
    first, divisions = tasks[start], session.announced.divisions
    if first.nominated or not session.independence.siblings_share_answers:
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


def _allowed(
    turn: Turn, run: list[Task], beyond: dict[tuple[int, int], FitSummary] | None = None
) -> tuple[int, FitSummary | None]:
    """Return how many tasks of a run the queue may take on, and why no more; limits only ever allow fewer as more is asked.

    Of which shapes it takes nothing on as things stand is remembered in `beyond`: members that wait on nodes of their own are runs of one.
    """
    session, queue, waits = turn.session, turn.queue, turn.scope.waits
    if not session.allocatable.active:
        return len(run), None
    state = session.cluster.changed, run[0].shape.serial
    if beyond and (known := beyond.get(state)) is not None:
        return 0, known
    if session.allocatable(queue, subject.equal_tasks(run, waits=waits)) is None:
        return len(run), None
    low, high = 0, len(run)
    while high - low > 1:
        middle = (low + high) // 2
        if session.allocatable(queue, subject.equal_tasks(run[:middle], waits=waits)) is None:
            low = middle
        else:
            high = middle
    refusal = session.allocatable(queue, subject.equal_tasks(run[: low + 1], waits=waits))
    told = None if refusal is None else reasons.of_queue(queue.name, refusal)
    if beyond is not None and told is not None and not low and session.independence.limits_go_by_queues:
        beyond[state] = told
    return low, told


def _asked_of_nodes(turn: Turn, task: Task, refusal: FitSummary) -> FitSummary:
    """Return why a task waits that nothing but the due of its queue keeps out: for nodes, if none of them takes it, and then idle room would not help."""
    session = turn.session
    if len(turn.statement) or turn.scope != Scope():
        return refusal
    looked_for = subject.Subject(task, turn.queue)
    if (said := _refused_anywhere(session, looked_for)) is not None:
        return said
    evaluation = session.evaluate(looked_for)
    if evaluation.mask(released=True).any() or evaluation.mask(released=False).any():
        return refusal
    return turn.scope.failure(evaluation)


def _note_beyond(session: Session, run: list[Task], placed: int, allowed: int, refusal: FitSummary) -> None:
    """Say why tasks beyond what the queue may take on wait: for the queue, unless nodes already stopped an equal one before them."""
    job = run[0].job
    if placed < allowed and job is not None:
        refusal = session.findings.errors(job).get(run[placed].uid, refusal)
    session.findings.note_fit(run[allowed:], refusal)


def _place_run(turn: Turn, run: list[Task], done: Callable[[], bool]) -> Tried:
    """Place equal tasks on free room, then on room that is being released."""
    session, statement, scope = turn.session, turn.statement, turn.scope
    looked_for = subject.Subject(run[0], turn.queue)
    if _is_refused(session, looked_for, run):
        return Tried(0, 0)
    evaluation = session.evaluate(looked_for)
    placed = refused = 0
    for released in scope.room:
        while placed < len(run):
            # No more is chosen ahead than the gang still lacks; what turns out to be needed beyond that is chosen in the next round.
            rows = _choose(session, evaluation, run[placed : placed + lacking(run[0])], scope, released=released)
            if not rows:
                break
            records = [session.cluster.nodes.records[row] for row in rows]
            batch = run[placed : placed + len(records)]
            until = None if len(batch) <= _never_enough(turn) else done
            if released:
                moved = statement.pipeline(batch, records, until, evicted=scope.waits)
            else:
                moved = statement.allocate(batch, records, until)
            placed += moved
            if moved and done():
                return Tried(placed, placed - refused, enough=True)
            if moved < len(batch):
                # A plugin refused this one placement, and the statement has noted why; the next task may still go.
                placed += 1
                refused += 1
    if placed < len(run):
        session.findings.note_fit(run[placed:], scope.failure(evaluation))
    return Tried(placed, placed - refused)


def _is_refused(session: Session, looked_for: subject.Subject, run: list[Task]) -> bool:
    """Tell whether tasks fit nowhere, whatever the nodes are, and note why."""
    refusal = _refused_anywhere(session, looked_for)
    if refusal is not None:
        session.findings.note_fit(run, refusal)
    return refusal is not None


def _refused_anywhere(session: Session, looked_for: subject.Subject) -> FitSummary | None:
    """Say why a task fits nowhere, whatever the nodes are."""
    refusal, count = session.pre_predicate(looked_for), session.cluster.nodes.count
    return None if refusal is None else FitSummary(count, ((refusal, count),))


def lacking(task: Task) -> int:
    """Return how many members the gang of a task, or its sub-group, still lacks; at least one."""
    job, sub_job = task.job, task.sub_job
    if job is None:
        return 1
    if job.policies and sub_job is not None:
        return max(1, sub_job.minimum - sub_job.tally.expected)
    return max(1, job.min_member - job.tally.expected)


def _never_enough(turn: Turn) -> int:
    """Return how many tasks can be enough with the last of them at the earliest: where minimums count no job is ready below its own, so nobody is asked after each."""
    job = turn.job
    if job.policies or turn.scope.waits or not turn.session.announced.minimums_count:
        return 0
    return minimum.lacking(job.tally, job.min_member)


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
    if not session.independence.nodes_are_chosen_by_scores:
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
    return [selection.best(evaluation, candidates) if named is None else int(candidates[named])]
