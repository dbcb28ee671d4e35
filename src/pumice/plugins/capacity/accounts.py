"""What a queue may hold, is due and holds; in a tree, with everything below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import resources
from pumice.model.resources import CPU, MEMORY, PODS

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Amounts, Vector
    from pumice.plugins.sharing import flat_limits

    Mask = npt.NDArray[np.bool_]


class Account:
    """One queue: its limit, guarantee and due, and what it holds now.

    `above` are its ancestors, the nearest first and the root last; in flat mode there are none. What an inner queue holds is what the leaves below it hold.
    """

    __slots__ = (
        "_below",
        "_parts",
        "_sums",
        "above",
        "best_effort",
        "children",
        "compared",
        "deserved",
        "guarantee",
        "limit",
        "named",
        "queue",
    )

    def __init__(self, queue: Queue, cluster: Cluster, above: tuple[Account, ...] = ()) -> None:
        self.queue = queue
        self.above = above
        self.children: list[Account] = []
        self._sums = cluster.queue_sums
        self._below: Vector = np.zeros(len(cluster.vocabulary), dtype=np.int64)

    def __repr__(self) -> str:
        return f"<account of queue {self.queue.name}>"

    def grant(self, cluster: Cluster, limit: Vector, guarantee: Vector, due: Amounts) -> None:
        """Set what the queue may hold, what is guaranteed to it in effect, and what it is due, that included."""
        vocabulary = cluster.vocabulary
        self.limit = limit
        self.guarantee = guarantee
        self.deserved: Vector = vocabulary.vector(due)
        self.named = frozenset(name for name, units in due.items() if units)
        self.best_effort = not self.named - {"pods"}
        # Where a due counts against a victim: cpu and memory if there is any, other resources if they are listed, even as 0. Pods never do.
        self.compared: Mask = np.zeros(len(vocabulary), dtype=np.bool_)
        for name in due:
            if (column := vocabulary.columns.get(name)) is not None:
                self.compared[column] = column not in (CPU, MEMORY) or due[name] > 0
        self.compared[PODS] = False
        self._parts = [(column, units) for column, units in enumerate(self.deserved.tolist()) if units]

    @property
    def is_leaf(self) -> bool:
        """Tell whether the queue has no children, so that it may have jobs."""
        return not self.children

    def leaves(self) -> list[Account]:
        """Return the queues without children that count here, itself if it has none."""
        found, leaves = [self], []
        for account in found:
            found.extend(account.children)
            if account.is_leaf:
                leaves.append(account)
        return leaves

    @property
    def held(self) -> Vector:
        """What the queue holds, as it is now."""
        return self._below if self.children else self._sums.held(self.queue.row)

    def start(self) -> None:
        """Forget what is held below."""
        self._below[:] = 0

    def add(self, change: Vector) -> None:
        """Count what is held below."""
        self._below += change

    @property
    def share(self) -> float:
        """Return which part of its due the queue holds, in the resource where that is most; 1 if it is due nothing."""
        if self.best_effort:
            return 1.0
        held = self.held.tolist()
        return max([held[column] / units for column, units in self._parts], default=0.0)

    @property
    def entry(self) -> tuple[float, bool] | tuple[()]:
        """What the queue is ordered by among its siblings: its share, and whether it is due nothing."""
        share = self.share
        return (share, self.best_effort) if share or self.best_effort else ()


def flat(cluster: Cluster, limits: flat_limits.Limits) -> dict[str, Account]:
    """Open an account for every valid queue, side by side."""
    accounts: dict[str, Account] = {}
    for name, queue in cluster.queues.items():
        if queue.bad:
            continue
        limit, guarantee = limits.real_capability[queue.row], limits.guarantee[queue.row]
        columns = cluster.vocabulary.columns
        capped = {
            resource: min(units, int(limit[columns[resource]])) if resource in columns else units
            for resource, units in queue.deserved.items()
        }
        account = accounts[name] = Account(queue, cluster)
        account.grant(cluster, limit, guarantee, with_guarantee(cluster, capped, queue, guarantee))
    return accounts


def with_guarantee(cluster: Cluster, due: Amounts, queue: Queue, guarantee: Vector) -> Amounts:
    """Raise what a queue is due to what is guaranteed to it in effect; a guarantee that is stated as 0 names its resource too."""
    named = {name: 0 for name, units in queue.guarantee.items() if not units}
    return resources.highest(due, named | cluster.vocabulary.amounts(guarantee))
