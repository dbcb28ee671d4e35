"""How many members each hyper-node can hold, found for all of them at once before any is tried.

For pods of one shape the count is exact, as far as filters do not depend on what is placed meanwhile; otherwise it is never too low.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import foresight, subject

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.framework.session import Session
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class Holding:
    """What the hyper-nodes can hold of some tasks, kept while nothing is placed."""

    __slots__ = ("_kept", "_kinds", "_queue", "_session")

    def __init__(self, session: Session, queue: Queue, tasks: Sequence[Task]) -> None:
        self._session = session
        self._queue = queue
        kinds: dict[Hashable, list[Task]] = {}
        for task in tasks:
            kinds.setdefault(task.likeness, []).append(task)
        self._kinds = list(kinds.values())
        self._kept: dict[tuple[bool, int], list[Vector]] = {}

    def counts(self, *, released: bool) -> Vector:
        """Return how many of the tasks each hyper-node can hold, on free room or on what will be free."""
        total = np.zeros(len(self._session.topology.tree.domains), dtype=np.int64)
        for kind, copies in zip(self._kinds, self._copies(released=released), strict=True):
            total += np.minimum(copies, len(kind))
        return total

    def hopeless(self) -> list[Task]:
        """Return the tasks of which no hyper-node holds a single one."""
        return [
            task
            for kind, copies in zip(self._kinds, self._copies(released=True), strict=True)
            if not copies.any()
            for task in kind
        ]

    def _copies(self, *, released: bool) -> list[Vector]:
        key = (released, self._session.cluster.nodes.position)
        if key not in self._kept:
            self._kept[key] = [self._of_kind(kind, released=released) for kind in self._kinds]
        return self._kept[key]

    def _of_kind(self, kind: list[Task], *, released: bool) -> Vector:
        """Return how many copies of one task each hyper-node can hold, no more on a node than there are."""
        table = self._session.cluster.nodes
        evaluation = self._session.evaluate(subject.Subject(kind[0], self._queue))
        mask = evaluation.possible(released=released)
        copies = foresight.capacity(table, table.rows, kind[0].shape, len(kind), released=released)
        return self._session.topology.tree.sums(np.where(mask, copies, 0))
