"""The limits of flat queues: what they may hold at the most, what is guaranteed to them in effect, and what all nodes offer.

Matrices have one row per queue (`queue.row`), in the units and columns of the vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.plugins.sharing import queue_limits, rooms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.resources import Matrix, Vector


class Limits:
    """The limits of flat queues, kept until what a Queue asks for, what the nodes offer or what foreign pods hold changes."""

    __slots__ = (
        "_seen",
        "_sized",
        "available",
        "capability",
        "guarantee",
        "guaranteed",
        "real_capability",
        "rooms",
        "total",
        "written",
    )

    def __init__(self) -> None:
        self._seen: Sequence[object] = ()
        self._sized = (-1, -1)

    def refresh(self, cluster: Cluster) -> bool:
        """Bring the limits up to date with the cluster, and tell whether any may have changed."""
        queues = {name: queue for name, queue in cluster.queues.items() if not queue.bad}
        shape = cluster.queue_sums.allocated.shape
        offered, available = queue_limits.total(cluster), queue_limits.available(cluster, queues)
        seen = [(queue, queue.object.spec if queue.object is not None else None) for queue in queues.values()]
        if (
            shape == self._sized
            and seen == self._seen
            and np.array_equal(offered, self.total)
            and np.array_equal(available, self.available)
        ):
            return False
        self._seen, self._sized = seen, shape
        self.total: Vector = offered
        self.available: Vector = available
        self.rooms = rooms.Rooms(cluster, rooms.flat_places(cluster), queues.get(names.ROOT_QUEUE), available)
        self.guarantee: Matrix = np.zeros(shape, dtype=np.int64)
        self.capability: Matrix = np.full(shape, queue_limits.UNLIMITED, dtype=np.int64)
        self.written: Matrix = np.zeros(shape, dtype=np.int64)
        rows = [queue.row for queue in queues.values()]
        self.guarantee[rows] = self.rooms.guaranteed[1:]
        self.written[rows] = self.rooms.written[1:]
        self.capability[rows] = self.rooms.ceilings[1:]
        # Queues without jobs keep their guarantee too, so it is off everybody else's limit.
        self.guaranteed: Vector = self.guarantee.sum(axis=0)
        self.real_capability: Matrix = self.within(offered)
        return True

    def within(self, total: Vector) -> Matrix:
        """Return how much each queue may hold of a total: what the guarantees of the others leave, but not less than its own as written, at most its capability."""
        left = np.maximum(total - self.guaranteed, 0) + self.guarantee
        limits: Matrix = np.minimum(np.maximum(left, self.written), self.capability)
        return limits
