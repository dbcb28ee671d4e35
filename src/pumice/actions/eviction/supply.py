"""What nodes would have with some victims gone, counted before anybody is evicted."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction.asking import least_need

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.units import Unit
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task


class Supply:
    """What nodes would have with units gone, in numbers, and whether that could do for all members."""

    def __init__(self, session: Session, plan: Plan, tasks: Sequence[Task]) -> None:
        self._plan = plan
        self._table = session.cluster.nodes
        self._room: Matrix = self._table.future_idle_at(self._table.rows).copy()
        self._kinds = list({task.shape.serial: task for task in tasks if not task.shape.request.unoffered}.values())
        self._least = least_need(plan.job, tasks)
        self._rows: dict[int, None] = {}  # on which somebody goes, in the order of the first who does
        rows = self._table.rows if plan.domain is None else plan.domain.rows
        self._total: Vector = np.maximum(self._room[rows], 0).sum(axis=0)
        job = plan.job
        all_needed = job.min_member - job.tally.ready - job.tally.waiting >= len(tasks)
        alone = all_needed and not job.roles_enforced and not job.policies
        # Members that have room nowhere yet; as long as there is one, there is no plan.
        self._homeless = [member for member in self._kinds if not self._fits(member, rows).any()] if alone else []

    def _fits(self, member: Task, rows: Rows | slice) -> Mask:
        request = member.shape.request
        fits: Mask = np.logical_and.reduce(self._room[rows][:, request.asked] >= request.needed, axis=1)
        return fits

    def add(self, unit: Unit) -> None:
        """Count a unit as gone."""
        for task in unit.tasks:
            if task.node is None or not self._plan.covers(task) or task.node.row >= len(self._room):
                continue
            row, vector = task.node.row, task.shape.request.vector
            self._room[row] += vector
            self._rows[row] = None
            self._total = self._total + vector
            if self._homeless:
                here = np.array([row], dtype=np.int64)
                self._homeless = [member for member in self._homeless if not self._fits(member, here)[0]]

    def is_enough(self) -> bool:
        """Tell whether there is enough in sum."""
        return bool((self._least <= self._total).all())

    def may_do(self) -> bool:
        """Tell whether nothing in the numbers speaks against a plan."""
        return not self._homeless and self.is_enough()

    def divided(self, units: Sequence[Unit], most: int | None = None) -> tuple[list[Unit], list[Unit]]:
        """Tell units on nodes where a member would have room from the others, which come first; of each kind of member at most so many nodes, the first to lose first."""
        useful: dict[int, None] = {}
        for member in self._kinds:
            fits = self._fits(member, self._table.rows)
            found = (row for row in self._rows if fits[row])
            useful.update(dict.fromkeys(itertools.islice(found, most)))
        parts: tuple[list[Unit], list[Unit]] = ([], [])
        for unit in units:
            rows = (task.node.row for task in unit.tasks if task.node is not None)
            parts[any(row in useful for row in rows)].append(unit)
        return parts
