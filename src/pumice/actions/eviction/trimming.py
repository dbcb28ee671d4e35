"""Sparing victims: nobody is evicted without whom the members would fit as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.eviction.planning import Plan
    from pumice.actions.eviction.units import Unit
    from pumice.model.task import Task


def trim(plan: Plan) -> None:
    """Give back, dearest first, every unit that the plan can do without."""
    kinds = list({id(member.shape): member for member in plan.members}.values())
    for unit in sorted(plan.units, key=lambda u: (u.priority, len(u.tasks)), reverse=True):
        _spare(plan, unit, kinds)


def _spare(plan: Plan, unit: Unit, kinds: list[Task]) -> None:
    """Try to do without a unit."""
    for task in unit.tasks:
        plan.statement.undo(task)
    plan.units.remove(unit)
    if not plan.leaves_gangs_whole([*plan.units, unit]) or not _still_fits(plan, unit.tasks, kinds):
        plan.statement.evict(unit.tasks, plan.rules.name)
        plan.units.append(unit)


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
    rows = {task.node.row for task in returned if task.node is not None}
    if not any(plan.evaluation(member).is_stepwise(released=True) for member in kinds):
        return _crowded_out(plan, sorted(rows))
    displaced = []
    for member in plan.members:
        record = member.node
        if record is not None and record.row in rows:
            plan.statement.undo(member)
            fits = plan.fits(member, record.row)
            plan.statement.pipeline([member], [record], evicted=True)
            if not fits:
                displaced.append(member)
    return displaced


def _crowded_out(plan: Plan, rows: list[int]) -> list[Task]:
    """Return members whose leaving would give the nodes of these rows room again, where room is all that matters."""
    table = plan.session.cluster.nodes
    displaced = []
    for row in rows:
        free = table.allocatable[row] - table.used[row] + table.releasing[row] - table.pipelined[row]
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
    homes = [(member, member.node) for member in displaced]
    for member in displaced:
        plan.statement.undo(member)
        plan.members.remove(member)
    if plan.arrange(displaced):
        if plan.is_anchored():
            return True
        for member in displaced:
            plan.statement.undo(member)
            plan.members.remove(member)
    for member, record in homes:
        if record is not None:
            plan.statement.pipeline([member], [record], evicted=True)
            plan.members.append(member)
    return False
