"""How close a node brings a task to its bucket: what is there of it, what fits there together, and what the task shuns there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model.nodes import EVERY
from pumice.plugins.sharing.scoring import MAX_SCORE
from pumice.plugins.task_topology.buckets import role_of

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats
    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task
    from pumice.plugins.task_topology.buckets import Buckets


class Closeness:
    """The score of nodes for a task of a bucket, also while equal tasks of that bucket are placed one after another."""

    __slots__ = ("_buckets", "_columns", "_company", "_fitting", "_free", "_others", "_scale", "_shuns_itself", "_task")

    def __init__(self, buckets: Buckets, task: Task, table: NodeTable, weight: int) -> None:
        bucket = buckets.of[task.uid]
        role = role_of(task)
        self._task = task
        self._others = [other for other in bucket.in_order() if other is not task]
        self._scale = MAX_SCORE * weight / buckets.largest
        self._shuns_itself = role in buckets.roles.anti.get(role, ())
        company = np.zeros(len(table.records))
        for row, count in bucket.placed.items():
            company[row] += count
        if role in buckets.roles.anti:
            for row, counts in buckets.on_row.items():
                company[row] -= buckets.roles.shunned(role, counts)
        self._company: Floats = company[: table.count]
        total = sum((other.shape.request.vector for other in self._others), task.shape.request.vector)
        self._columns: list[int] = np.flatnonzero(total).tolist()
        view = table.view()
        self._free: list[Vector] = [view.future_idle_at((EVERY, column)) for column in self._columns]
        self._fitting: Vector | None = None

    def place(self, row: int) -> None:
        """Count one more equal task on a row; the next one of the bucket takes its place."""
        self._company[row] += 0 if self._shuns_itself else 1
        request = self._task.shape.request.vector
        for column, free in zip(self._columns, self._free, strict=True):
            free[row] -= request[column]
        following = (i for i, other in enumerate(self._others) if _are_equal(other, self._task))
        if (position := next(following, None)) is not None:
            self._task = self._others.pop(position)
        self._fitting = None

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:  # noqa: ARG002  no row stands for others
        """Score candidates: the part of the largest bucket that is or fits there; nothing where the task itself does not fit."""
        if self._fitting is None:
            self._fitting = self._fit()
        fitting = self._fitting[rows]
        points: Floats = np.where(fitting > 0, (fitting + self._company[rows]) * self._scale, 0.0)
        return points

    def _fit(self) -> Vector:
        """Count for every node how many waiting tasks of the bucket fit there together: the task itself, then the others in their order."""
        requests = [self._task.shape.request.vector, *(other.shape.request.vector for other in self._others)]
        sums: Matrix = np.cumsum(np.array(requests), axis=0)
        fitting = np.full(len(self._company), len(requests), dtype=np.int64)
        for column, free in zip(self._columns, self._free, strict=True):
            # Most nodes have room for all of them, or for none.
            short = np.flatnonzero(free < sums[-1, column])
            if len(short):
                held = np.searchsorted(sums[:, column], free[short], side="right")
                fitting[short] = np.minimum(fitting[short], held)
        return fitting


def _are_equal(left: Task, right: Task) -> bool:
    return left.shape is right.shape and left.role == right.role
