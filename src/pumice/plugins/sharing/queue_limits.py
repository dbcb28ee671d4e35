"""The limits of queues: what they may hold at the most, what is guaranteed to them, and what all nodes offer.

Matrices have one row per queue (`queue.row`), in the units and columns of the vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.resources import Amounts, Matrix, Vector, Vocabulary

UNLIMITED = 2**62


def total(cluster: Cluster) -> Vector:
    """Return what all nodes offer."""
    nodes = cluster.nodes
    offered: Vector = nodes.allocatable[: nodes.count].sum(axis=0)
    return offered


def ceiling(vocabulary: Vocabulary, capability: Amounts) -> Vector:
    """Lay a capability out: what is not listed is unlimited, and so are cpu and memory listed as 0."""
    row = np.full(len(vocabulary), UNLIMITED, dtype=np.int64)
    for name, units in capability.items():
        column = vocabulary.columns.get(name)
        if column is not None and (units or name not in ("cpu", "memory")):
            row[column] = units
    return row


class Limits:
    """The limits of flat queues, kept until a Queue or what the nodes offer changes."""

    __slots__ = ("_seen", "_sized", "capability", "guarantee", "guaranteed", "real_capability", "total")

    def __init__(self) -> None:
        self._seen: Sequence[object] = ()
        self._sized = (-1, -1)

    def refresh(self, cluster: Cluster) -> bool:
        """Bring the limits up to date with the cluster, and tell whether any may have changed."""
        queues = [queue for queue in cluster.queues.values() if not queue.bad]
        shape = cluster.queue_sums.allocated.shape
        offered = total(cluster)
        seen = [queue.object for queue in queues]
        same = shape == self._sized and len(seen) == len(self._seen) and all(map(_is, seen, self._seen))
        if same and np.array_equal(offered, self.total):
            return False
        self._seen, self._sized = seen, shape
        self.total: Vector = offered
        self.guarantee: Matrix = np.zeros(shape, dtype=np.int64)
        self.capability: Matrix = np.full(shape, UNLIMITED, dtype=np.int64)
        for queue in queues:
            if queue.guarantee:
                self.guarantee[queue.row] = cluster.vocabulary.vector(queue.guarantee)
            if queue.capability:
                self.capability[queue.row] = ceiling(cluster.vocabulary, queue.capability)
        # Queues without jobs keep their guarantee too, so it is off everybody else's limit.
        self.guaranteed: Vector = self.guarantee.sum(axis=0)
        free = np.maximum(offered - self.guaranteed, 0)
        self.real_capability: Matrix = np.minimum(free + self.guarantee, self.capability)
        return True


def _is(left: object, right: object) -> bool:
    return left is right


def exceeded(asked: Vector, wanted: Vector, limit: Vector) -> list[int]:
    """Return the columns that are asked for, pods aside, in which what is wanted is beyond the limit."""
    beyond = (asked > 0) & (wanted > limit)
    beyond[resources.PODS] = False
    return np.flatnonzero(beyond).tolist()
