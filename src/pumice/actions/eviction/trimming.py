"""Sparing victims: nobody is evicted without whom the members would fit as well."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pumice.actions.eviction import units, votes
from pumice.actions.eviction.units import Unit
from pumice.actions.placing import likeness
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.actions.eviction.plan import Plan
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Vector
    from pumice.model.task import Task

TRIES = 200
PARTS = f"no more than {TRIES} parts of gangs were tried"


def trim(plan: Plan) -> None:
    """Give back, dearest first, every unit that the plan can do without, and take no gang whole of which a part is enough."""
    if plan.is_trimmed:
        return
    kinds = list({likeness.of_member(plan.session, member): member for member in plan.members}.values())
    by_numbers = _is_told_by_numbers(plan, kinds)
    # Among equals the last to go is the first to be given back.
    for unit in sorted(plan.units, key=lambda u: (u.priority, len(u.tasks)))[::-1]:
        if unit in plan.units and not (by_numbers and is_needed(plan, unit)):
            spare(plan, unit, kinds)
    if plan.gangs and any(unit.whole for unit in plan.units):
        tries = [TRIES]
        for job in {u.tasks[0].job.key: u.tasks[0].job for u in plan.units if u.tasks[0].job is not None}.values():
            _take_a_part(plan, job, kinds, tries)


def _is_told_by_numbers(plan: Plan, kinds: Sequence[Task]) -> bool:
    """Tell whether room alone decides where members go, and too many are concerned to try every way."""
    if not plan.session.shortcuts.victims_by_numbers or plan.session.evaluator.sampler is not None:
        return False
    if plan.is_small(plan.members):
        return False
    evaluations = [plan.evaluation(member) for member in kinds]
    return not any(e.minds_others(released=True) or e.is_stepwise(released=True) for e in evaluations)


def is_needed(plan: Plan, unit: Unit) -> bool:
    """Tell without trying that a unit cannot be spared: it would leave one member no room on its node, and no other node has any."""
    displaced = _crowded_out(plan, unit.tasks, gone=True)
    if len(displaced) != 1 or displaced[0].node is None:
        return False
    member, row = displaced[0], displaced[0].node.row
    request = member.shape.request
    free = plan.session.cluster.nodes.future_idle_at(row) + request.vector - _asked_on(row, unit.tasks)
    is_full = bool((free[request.asked] < request.needed).any())
    return is_full and not plan.evaluation(member).mask(released=True).any()


def _asked_on(row: int, tasks: Sequence[Task]) -> Vector | int:
    """Add up what tasks ask for that are on one node."""
    if len(tasks) == 1 and (node := tasks[0].node) is not None and node.row == row:
        return tasks[0].shape.request.vector
    return sum(task.shape.request.vector for task in tasks if task.node is not None and task.node.row == row)


def spare(plan: Plan, unit: Unit, kinds: list[Task]) -> None:
    """Try to do without a unit, and without others on whose nodes no member would be left."""
    before, returned = _Before(plan), list[Unit]()
    loose = [unit]
    while loose:
        for each in loose:
            plan.units.remove(each)
            for task in each.tasks:
                plan.statement.undo(task)
        returned += loose
        tasks = [task for each in loose for task in each.tasks]
        if not plan.leaves_gangs_whole(plan.units) or not _still_fits(plan, tasks, kinds):
            before.restore(returned)
            return
        loose = plan.loose_units() if before.moved() else []
    plan.is_admitted = False


class _Before:
    """A plan as it was before it was tried whether it can do without somebody."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._units = list(plan.units)
        self._homes = [(member, member.node) for member in plan.members]

    def moved(self) -> list[tuple[Task, NodeRecord | None]]:
        """Return the members that wait elsewhere by now, with where they were."""
        return [(member, home) for member, home in self._homes if member.node is not home]

    def restore(self, returned: Sequence[Unit]) -> None:
        """Evict units again, and put members back where they were; the plan lists all of them as it did."""
        plan, moved = self._plan, self.moved()
        for member, _ in moved:
            plan.statement.undo(member)
        for unit in returned:
            plan.statement.evict(unit.tasks, plan.rules.name)
        for member, home in moved:
            if home is not None:
                plan.statement.pipeline([member], [home], evicted=True)
        plan.units, plan.members = self._units, [member for member, _ in self._homes]


def _take_a_part(plan: Plan, job: Job, kinds: list[Task], tries: list[int]) -> None:
    """Take from a gang that goes whole only what it can spare, if some of that is enough."""
    whole = [unit for unit in plan.units if unit.tasks[0].job is job]
    tasks = [task for unit in whole for task in unit.tasks]
    if len(tasks) == 1 or job.tally.ready or not any(unit.whole for unit in whole):
        return
    before = _Before(plan)
    for task in tasks:
        plan.statement.undo(task)
    plan.units = [unit for unit in plan.units if unit not in whole]
    records = {task.node.row: task.node for task in tasks if task.node is not None}
    given = [votes.offered(plan.rules, plan.members[0], record, plan.domain) for record in records.values()]
    offered = [task for some in given for task in some if task.job is job]
    for part in _parts(offered, job.surplus):
        tries[0] -= 1
        if tries[0] < 0:
            plan.bounds[PARTS] = None
            break
        if units.may_all_go(plan.rules, plan.statement, plan.members[0], part):
            taken = [Unit((task,), whole=False) for task in part]
            for unit in taken:
                plan.evict(unit)
            if units.keeps_its_minimum(job) and _still_fits(plan, tasks, kinds) and not plan.loose_units():
                plan.is_admitted = False
                return
            for task in part:
                plan.statement.undo(task)
            del plan.units[-len(taken) :]
    before.restore(whole)


def _parts(tasks: Sequence[Task], most: int) -> Iterator[tuple[Task, ...]]:
    """Give the sets of tasks up to a size, the smallest first."""
    for size in range(1, most + 1):
        yield from itertools.combinations(tasks, size)


def _still_fits(plan: Plan, returned: Sequence[Task], kinds: list[Task]) -> bool:
    """Tell whether all members fit now that some victims are back: as things are, else with those displaced elsewhere, else all anew."""
    if not _limits_hold(plan, kinds):
        return False
    displaced = _displaced(plan, returned, kinds)
    if not displaced or _move(plan, displaced):
        return True
    return plan.is_small(plan.members) and _move(plan, list(plan.members))


def _displaced(plan: Plan, returned: Sequence[Task], kinds: list[Task]) -> list[Task]:
    """Return the members that no longer fit where they are, now that some victims are back."""
    evaluations = [plan.evaluation(member) for member in kinds]
    elsewhere = any(evaluation.minds_others(released=True) for evaluation in evaluations)
    if not elsewhere and not any(evaluation.is_stepwise(released=True) for evaluation in evaluations):
        return _crowded_out(plan, returned)
    rows = {task.node.row for task in returned if task.node is not None}
    displaced = []
    for member in plan.members:
        record = member.node
        if record is not None and (elsewhere or record.row in rows):
            plan.statement.undo(member)
            fits = plan.fits(member, record.row)
            plan.statement.pipeline([member], [record], evicted=True)
            if not fits:
                displaced.append(member)
    return displaced


def _crowded_out(plan: Plan, returned: Sequence[Task], *, gone: bool = False) -> list[Task]:
    """Return members whose leaving would give the nodes of some victims room again with these back, where room is all that matters; they may still be gone."""
    table = plan.session.cluster.nodes
    displaced = []
    for row in sorted({task.node.row for task in returned if task.node is not None}):
        free = table.future_idle_at(row) - (_asked_on(row, returned) if gone else 0)
        here = [t for t in table.records[row].tasks.values() if t.job is plan.job and t.status == Status.PIPELINED]
        for member in reversed(here):
            if (free >= 0).all():
                break
            if member in plan.members:
                displaced.append(member)
                free = free + member.shape.request.vector
    return displaced


def _limits_hold(plan: Plan, kinds: list[Task]) -> bool:
    """Ask, for one member of each shape, whether the queue may still take it on with all the others placed."""
    if not plan.session.allocatable.active:
        return True
    for member in kinds:
        record = member.node
        if record is None:
            continue
        plan.statement.undo(member)
        allowed = plan.is_allowed(member)
        plan.statement.pipeline([member], [record], evicted=True)
        if not allowed:
            return False
    return True


def _move(plan: Plan, displaced: list[Task]) -> bool:
    """Find other places for some members; if there are none, put them back where they were."""
    listed, homes = list(plan.members), [(member, member.node) for member in displaced]
    for member in displaced:
        plan.statement.undo(member)
        plan.members.remove(member)
    if plan.arrange(displaced):
        return True
    for member, record in homes:
        if record is not None:
            plan.statement.pipeline([member], [record], evicted=True)
    plan.members = listed
    return False
