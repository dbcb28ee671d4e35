"""How many members of a plan all nodes have room for, by what they ask for and what Node objects say alone: whatever else filters say, there is no room for more."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.eviction.plan import Plan
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix
    from pumice.model.task import Task


class MemberRoom:
    """The room for the members of a plan, all of one shape, with none of them placed, as things stand otherwise."""

    def __init__(self, plan: Plan) -> None:
        first = plan.members[0]
        table = plan.session.cluster.nodes
        self._changed = plan.session.cluster.changed
        self._plan = plan
        self._request = first.shape.request
        self._needed: list[int] = self._request.needed.tolist()
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

    def is_too_little_with(self, victims: Sequence[Task]) -> bool:
        """Tell whether not all members have room with some victims back."""
        return self._room + self._change(victims, -1) < len(self._plan.members)

    def is_too_little_without(self, others: Sequence[Task]) -> bool:
        """Tell whether not all members have room with some who are there gone."""
        return self._room + self._change(others, 1) < len(self._plan.members)

    def _change(self, tasks: Sequence[Task], sign: int) -> int:
        """Return for how many more members there is room if tasks give back what they ask for, or take it again."""
        given: dict[int, list[int]] = {}
        for task in tasks:
            if task.node is not None and task.node.row < len(self._open) and self._open[task.node.row]:
                amounts = task.shape.request.vector[self._request.asked].tolist()
                before = given.get(task.node.row) or [0] * len(amounts)
                given[task.node.row] = [sum_ + sign * amount for sum_, amount in zip(before, amounts, strict=True)]
        change = 0
        for row, amounts in given.items():
            free = self._free[row].tolist()
            change += self._members_in(list(map(operator.add, free, amounts))) - self._members_in(free)
        return change

    def _members_in(self, free: list[int]) -> int:
        """Return how many members fit into what is free on one node."""
        if min(free) < 0:
            return 0
        return min(have // need for have, need in zip(free, self._needed, strict=True) if need)

    def _times(self, free: Matrix) -> Rows:
        """Return the same of many nodes."""
        needed = self._request.needed
        times: Rows = (free[:, needed > 0] // needed[needed > 0]).min(axis=1)
        return np.where((free >= 0).all(axis=1), times, 0)


def of(plan: Plan) -> MemberRoom | None:
    """Count the room for the members of a plan; None if they are of several shapes, or ask for nothing."""
    first = plan.members[0].shape
    if not plan.session.shortcuts.victims_by_numbers:
        return None
    if any(member.shape is not first for member in plan.members) or not (first.request.needed > 0).any():
        return None
    return MemberRoom(plan)
