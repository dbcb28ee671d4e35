"""How many members each hyper-node can hold, found for all of them at once before any is tried.

For pods of one shape the count is exact, as far as filters do not depend on what is placed meanwhile; otherwise it is never too low: so many of each kind as there is room for if it were alone, but
no more together than the smallest of them could be by what is free in sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.placing import likeness
from pumice.framework import foresight, subject

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class DomainCapacity:
    """What the hyper-nodes can hold of some tasks."""

    __slots__ = ("_kinds", "_queue", "_session", "_tasks", "_tree")

    def __init__(self, session: Session, queue: Queue, job: Job, tasks: Sequence[Task]) -> None:
        self._session = session
        self._tree = session.topology.tree_of(job)
        self._queue = queue
        self._tasks = tasks
        self._kinds: list[list[Task]] | None = None

    def _by_kind(self) -> list[list[Task]]:
        if self._kinds is None:
            kinds: dict[Hashable, list[Task]] = {}
            for task in self._tasks:
                kinds.setdefault(likeness.of_member(self._session, task), []).append(task)
            self._kinds = list(kinds.values())
        return self._kinds

    def counts(self, *, released: bool) -> Vector:
        """Return how many of the tasks each hyper-node can hold, on free room or on what will be free."""
        total = np.zeros(len(self._tree.domains), dtype=np.int64)
        kinds = self._by_kind()
        for kind in kinds:
            total += np.minimum(self._copies(kind[0], released=released), len(kind))
        if len(kinds) == 1 or not self._session.shortcuts.domain_sums:
            return total
        return np.minimum(total, self._together(released=released))

    def _together(self, *, released: bool) -> Vector:
        """Return how many of the tasks, the smallest first in each resource, each hyper-node can hold by what is free in sum."""
        table, tree = self._session.cluster.nodes, self._tree
        free = table.idle_at(slice(table.count))
        later = table.after_release(free, slice(table.count))
        room = tree.sums(np.maximum(later if released else np.minimum(free, later), 0))
        asked = np.sort(np.array([task.shape.request.vector for task in self._tasks]), axis=0)
        most: Vector = np.full(len(tree.domains), len(self._tasks), dtype=np.int64)
        for column in np.flatnonzero(asked[-1]).tolist():
            most = np.minimum(most, np.searchsorted(asked[:, column].cumsum(), room[:, column], side="right"))
        return most

    def _copies(self, task: Task, *, released: bool) -> Vector:
        """Return how many copies of one task each hyper-node can hold."""
        table, evaluation = self._session.cluster.nodes, self._session.evaluate(subject.Subject(task, self._queue))
        room = foresight.capacity(table, table.rows, task.shape, foresight.TABLE_LIMIT, released=released)
        return self._tree.sums(np.where(evaluation.possible(released=released), room, 0))
