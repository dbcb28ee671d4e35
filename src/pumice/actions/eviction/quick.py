"""The common case of an offer, in plain numbers: where only room decides, and every victim is one that its job can spare.

It finds exactly what trying out would find, or says that it cannot tell (None).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction.units import Unit
from pumice.model.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.eviction.planning import Plan
    from pumice.framework.evaluation import Evaluation
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Vector
    from pumice.model.task import Task


def assess(
    plan: Plan, member: Task, evaluation: Evaluation, record: NodeRecord, offered: Sequence[Task]
) -> list[Unit] | None:
    """Return the units to evict on a node, an empty list if that is not enough, None if it takes more than numbers to tell."""
    if (
        plan.rules.simulation is not None
        or evaluation.is_stepwise(released=True)
        or evaluation.minds_others(released=True)
        or not plan.is_allowed(member)
    ):
        return None
    request = member.shape.request
    table = plan.session.cluster.nodes
    row = record.row
    asked, needed = request.asked, request.needed
    free = table.future_idle_at(row)[asked]
    taken = _take(plan, member, offered, free, needed)
    if not taken:
        return None if taken is None else []
    kept = _give_back(taken, free, asked, needed)
    if len(kept) > 1 and plan.session.protection.active:
        # A budget may allow the first victim and not the second.
        return None
    freed = np.sum([task.shape.request.vector for task in kept], axis=0)
    if not _passes(plan, evaluation, row, freed):
        return None
    return [Unit((task,), whole=False) for task in kept]


def _take(plan: Plan, member: Task, offered: Sequence[Task], free: Vector, needed: Vector) -> list[Task] | None:
    """Take victims in order until there is room; None if one of them could not be spared by its job."""
    asked = member.shape.request.asked
    spent: dict[str, int] = {}
    taken: list[Task] = []
    room = free
    for victim in offered:
        job = victim.job
        if job is None:
            return None
        if plan.gangs and job is not plan.job:
            spent[job.key] = spent.get(job.key, 0) + 1
            if job.roles_enforced or job.policies or job.tally.ready - spent[job.key] < job.min_member:
                return None
        taken.append(victim)
        room = room + victim.shape.request.vector[asked]
        if (room >= needed).all():
            return taken
    return []


def _give_back(taken: list[Task], free: Vector, asked: Vector, needed: Vector) -> list[Task]:
    """Give back, last taken first, whoever is not needed."""
    if len(taken) == 1:
        return taken
    room = free + np.sum([task.shape.request.vector[asked] for task in taken], axis=0)
    kept = list(taken)
    for task in reversed(taken[:-1]):
        less = room - task.shape.request.vector[asked]
        if (less >= needed).all():
            room = less
            kept.remove(task)
    return kept


def _passes(plan: Plan, evaluation: Evaluation, row: int, freed: Vector) -> bool:
    """Ask the filters that read amounts about the node with the victims gone."""
    table = plan.session.cluster.nodes
    rows = np.array([row], dtype=np.int64)
    nodes = Nodes(table, rows, table.used[rows] - freed, table.non_zero[rows], table.pipelined[rows], released=True)
    passed = evaluation.passes_ahead(nodes)
    return passed is None or bool(passed[0])
