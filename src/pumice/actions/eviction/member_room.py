"""How many members of a plan all nodes have room for, by what they ask for and what Node objects say alone: whatever else filters say, there is no room for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import subject

if TYPE_CHECKING:
    from pumice.actions.eviction.planning import Plan
    from pumice.actions.eviction.units import Unit
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix


class MemberRoom:
    """The room for the members of a plan, all of one shape, with none of them placed and its victims gone."""

    def __init__(self, plan: Plan) -> None:
        first = plan.members[0]
        table = plan.session.cluster.nodes
        self._changed = plan.session.cluster.changed
        self._plan = plan
        self._request = first.shape.request
        self._free: Matrix = table.future_idle_at(table.rows)[:, self._request.asked]
        for member in plan.members:
            if member.node is not None:
                self._free[member.node.row] += self._request.needed
        self._open = plan.session.evaluator.static_mask(subject.Subject(first, plan.queue))
        self._room = int(self._times(self._free)[self._open].sum())

    @property
    def is_current(self) -> bool:
        """Whether nothing has moved since."""
        return self._changed == self._plan.session.cluster.changed

    def needs(self, unit: Unit) -> bool:
        """Tell whether there is too little for all members with a unit back."""
        asked, room = self._request.asked, self._room
        taken: dict[int, Rows] = {}
        for task in unit.tasks:
            if task.node is not None and task.node.row < len(self._open) and self._open[task.node.row]:
                row = task.node.row
                taken[row] = taken.get(row, 0) + task.shape.request.vector[asked]
        for row, amount in taken.items():
            before, after = self._times(np.stack([self._free[row], self._free[row] - amount])).tolist()
            room -= before - after
        return room < len(self._plan.members)

    def _times(self, free: Matrix) -> Rows:
        """Return how many members fit into what is free, row by row."""
        needed = self._request.needed
        times: Rows = (free // np.maximum(needed, 1))[:, needed > 0].min(axis=1)
        return np.where((free >= 0).all(axis=1), times, 0)


def of(plan: Plan) -> MemberRoom | None:
    """Count the room for the members of a plan; None if they are of several shapes, or ask for nothing."""
    first = plan.members[0].shape
    if any(member.shape is not first for member in plan.members) or not (first.request.needed > 0).any():
        return None
    return MemberRoom(plan)
