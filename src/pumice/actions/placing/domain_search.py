"""Looking for a domain that holds a job or one of its sub-groups.

Before a domain is tried, it is known how many members it can hold; of those that can hold enough, the first in order that works is taken. For a job of
sub-groups the first few of a tier are all tried, and the one is taken in which its sub-groups score the most together. Room that is free now is looked for in all
domains before anybody is left to wait for room that is being released. Where members of different sizes do not fit in their own order, the largest go first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.placing import largest_first, shortage
from pumice.actions.placing.domain_capacity import DomainCapacity
from pumice.actions.placing.domain_goal import Progress
from pumice.framework import foresight, reasons, subject
from pumice.model.job import BEST_EFFORT_PENDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pumice.actions.placing.domain_goal import Goal
    from pumice.actions.placing.turns import Turn
    from pumice.framework.job_domains import Groups
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import SubJob, Tally
    from pumice.model.task import Task


COMPARED = 8


def needed(tally: Tally, minimum: int, *, ready: bool) -> int:
    """Return how many members must fit in a domain for it to be of use."""
    if ready:
        return 1
    return max(1, minimum - tally.expected - tally.counts[BEST_EFFORT_PENDING])


def search(turn: Turn, goal: Goal, accepted: Progress | None = None) -> Progress:
    """Try domains until one works: first on free room, then, unless only that is accepted, on room that is being released."""
    capacity = DomainCapacity(turn.session, turn.queue, turn.job, goal.tasks)
    wanted = stages(turn) if accepted is None else [accepted]
    tried = False
    for stage in wanted:
        for domain in _candidates(turn, goal, capacity, stage):
            tried = True
            progress = _attempt(turn, goal, domain, stage)
            if progress >= stage:
                return progress
    if not tried and wanted[-1] is Progress.WAITS:
        turn.session.findings.note_fit(goal.tasks, shortage.why_not(turn, goal, capacity))
    return Progress.NOTHING


def _attempt(turn: Turn, goal: Goal, domain: HyperNode, stage: Progress) -> Progress:
    """Try one domain; where a job is on trial, note what its sub-group scores there.

    What was not enough is undone; why it was not stays said until another domain is tried.
    """
    turn.session.findings.forget_fit(turn.job, goal.tasks)
    topology = turn.session.topology
    scores = None if turn.points is None or not goal.is_part else topology.order(goal.sub_job, [domain])
    # Whoever would have to wait keeps nobody from what is free, while that is what is looked for.
    now = stage is Progress.READY
    inside, mark = (
        turn.inside(None if domain is topology.tree_of(turn.job).root else domain, now=now),
        turn.statement.checkpoint(),
    )
    progress = goal.attempt(inside, stage, goal.tasks)
    if progress < stage:
        turn.statement.rollback(mark)
        for other in _largest_first(inside, goal, domain, stage):
            progress = _attempt_again(inside, goal, stage, other)
            if progress >= stage:
                break
    if turn.points is not None and scores is not None and progress >= stage:
        turn.points.append(float(foresight.rounded(scores)[0]))
    return progress


def _attempt_again(turn: Turn, goal: Goal, stage: Progress, tasks: Sequence[Task]) -> Progress:
    """Try the same domain with the tasks in another order; if that is no better, what the first order said stays."""
    with turn.statement.trial() as trial:
        turn.session.findings.forget_fit(turn.job, tasks)
        progress = goal.attempt(turn, stage, tasks)
        if progress >= stage:
            trial.keep()
    return progress


def _largest_first(turn: Turn, goal: Goal, domain: HyperNode, stage: Progress) -> Iterable[list[Task]]:
    """Give other orders of the tasks that could help in a domain."""
    if goal.is_part is not bool(turn.job.policies) or not turn.session.gangs_are_kept:
        return ()
    part = goal.sub_job if goal.is_part else None
    return largest_first.reordered(turn, domain.rows, goal.tasks, part, released=stage is Progress.WAITS)


def stages(turn: Turn) -> list[Progress]:
    """Return what is looked for, in this order; where everything waits anyway, nothing else can be had."""
    return [Progress.WAITS] if turn.scope.waits else [Progress.READY, Progress.WAITS]


def _candidates(turn: Turn, goal: Goal, capacity: DomainCapacity, stage: Progress) -> Iterator[HyperNode]:
    """Give the domains that can hold enough, in the order in which they are tried."""
    if goal.limit is None:
        yield from (domain for group in goal.groups for domain in group)
        return
    if _is_refused_by_queue(turn, goal):
        return
    counts = capacity.counts(released=stage is Progress.WAITS or turn.scope.waits)
    enough = [[each for each in group if counts[each.index] >= goal.need] for group in goal.groups]
    home = goal.rows(turn)
    held = _held(turn, goal, home)
    if held is not None and counts[held.index] >= goal.need:
        yield held
    for group in _near_first(turn, enough, home):
        ranked = [domain for domain in _ranked(turn, goal.sub_job, group) if domain is not held]
        yield from _compared(turn, goal, ranked, stage) if goal.compares and len(ranked) > 1 else ranked


def _held(turn: Turn, goal: Goal, home: list[int]) -> HyperNode | None:
    """Return the lowest domain that holds all nodes which a plan has promised to the tasks; it is tried first."""
    holds, known = turn.session.reservations.holds, turn.session.cluster.nodes.by_name
    rows = [
        known[holds[task.uid].node].row for task in goal.tasks if task.uid in holds and holds[task.uid].node in known
    ]
    if not rows:
        return None
    offered = {id(domain) for group in goal.groups for domain in group}
    return next(
        (each for each in turn.session.topology.containing([*home, *rows], turn.job) if id(each) in offered), None
    )


def _near_first(turn: Turn, groups: Groups, home: list[int]) -> Groups:
    """Regroup domains, if members run somewhere, so that those come first with which all lie in the lowest hyper-node."""
    around = turn.session.topology.containing(home, turn.job) if home else []
    if not around:
        return groups
    regrouped: Groups = []
    rest = groups
    for above in around:
        inside = frozenset(above.inside.tolist())
        regrouped += [[each for each in group if each.index in inside] for group in rest]
        rest = [[each for each in group if each.index not in inside] for group in rest]
    return [*regrouped, *rest]


def _ranked(turn: Turn, sub_job: SubJob, domains: Sequence[HyperNode]) -> Sequence[HyperNode]:
    """Sort domains of a tier: the highest score first, the first name among equals."""
    if len(domains) < 2:
        return domains
    scores = foresight.rounded(turn.session.topology.order(sub_job, domains))
    return [domains[position] for position in np.argsort(-scores, kind="stable").tolist()]


def _compared(turn: Turn, goal: Goal, ranked: Sequence[HyperNode], stage: Progress) -> Sequence[HyperNode]:
    """Try the first few domains and undo it: the one in which the sub-groups score the most together comes first.

    Of domains that look alike only the first that works is tried; if all that are tried fail, the others follow.
    """
    found: dict[bytes, tuple[float, HyperNode]] = {}
    failed: list[HyperNode] = []
    for domain, outlook in zip(ranked, _outlooks(turn, goal, ranked), strict=True):
        if outlook in found or len(found) + len(failed) == COMPARED:
            continue
        points: list[float] = []
        with turn.statement.trial():
            progress = _attempt(msgspec.structs.replace(turn, points=points), goal, domain, stage)
        if progress >= stage:
            found[outlook] = (sum(points), domain)
        else:
            failed.append(domain)
    if found:
        return [domain for _, domain in sorted(found.values(), key=lambda each: -each[0])]
    return [*failed[-1:], *(domain for domain in ranked if domain not in failed)]


def _outlooks(turn: Turn, goal: Goal, domains: Sequence[HyperNode]) -> Iterator[bytes]:
    """Give what each domain is like to the first sub-group: the scores of all hyper-nodes inside."""
    below = [domain.below() for domain in domains]
    scores = turn.session.topology.order(goal.sub_job, [each for inside in below for each in inside])
    ends = np.cumsum([len(inside) for inside in below])
    for part in np.split(foresight.rounded(scores), ends[:-1]):
        yield np.sort(part).tobytes()


def _is_refused_by_queue(turn: Turn, goal: Goal) -> bool:
    """Tell, and note, that no domain helps because the queue may not take on what is needed; asked where all tasks are equal."""
    session, first = turn.session, goal.tasks[0]
    if not session.allocatable.active or any(task.shape is not first.shape for task in goal.tasks):
        return False
    refusal = session.allocatable(turn.queue, subject.equal_tasks(goal.tasks[: goal.need], waits=turn.scope.waits))
    if refusal is None:
        return False
    session.findings.note_fit(goal.tasks, reasons.of_queue(turn.queue.name, refusal))
    return True


def reached(*, ready: bool, pipelined: bool) -> Progress:
    """Say how far somebody got."""
    return Progress.READY if ready else Progress.WAITS if pipelined else Progress.NOTHING
