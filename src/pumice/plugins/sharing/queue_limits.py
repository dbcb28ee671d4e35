"""The limits of queues: what they may hold at the most, what is guaranteed to them, and what all nodes offer.

Matrices have one row per queue (`queue.row`), in the units and columns of the vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import resources, statuses

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from pumice.framework.subject import Demand
    from pumice.model.cluster import Cluster
    from pumice.model.resources import Amounts, Matrix, Vector, Vocabulary

UNLIMITED = 2**62
HOLDING = statuses.PLACED - {statuses.Status.RELEASING}


def total(cluster: Cluster) -> Vector:
    """Return what all nodes offer."""
    return cluster.nodes.total("offered")


def available(cluster: Cluster, taking_part: Container[str]) -> Vector:
    """Return what each node offers less what foreign pods hold there, never below 0: pods that are not terminating and are in no queue that takes part."""
    nodes, sums, count = cluster.nodes, cluster.queue_sums, cluster.nodes.count
    strange = [name for name, row in sums.rows.items() if name not in taking_part and sums.allocated[row].any()]
    if not strange:
        return nodes.total("left by foreigners")
    foreign: Matrix = nodes.foreign[:count].copy()
    for name in strange:
        for key in cluster.queue_jobs.get(name, ()):
            for task in cluster.jobs[key].tasks.values():
                if task.node is not None and task.node.row < count and task.status in HOLDING:
                    foreign[task.node.row] += task.shape.request.vector
    left: Vector = np.maximum(nodes.allocatable[:count] - foreign, 0).sum(axis=0)
    return left


def ceiling(vocabulary: Vocabulary, capability: Amounts) -> Vector:
    """Lay a capability out: what is not listed is unlimited, and so are cpu and memory listed as 0."""
    row = np.full(len(vocabulary), UNLIMITED, dtype=np.int64)
    for name, units in capability.items():
        column = vocabulary.columns.get(name)
        if column is not None and (units or name not in ("cpu", "memory")):
            row[column] = units
    return row


def exceeded(asked: Vector, wanted: Vector, limit: Vector) -> list[int]:
    """Return the columns that are asked for, pods aside, in which what is wanted is beyond the limit."""
    # Asked for every pod, of few resources, and nearly always in vain: a list is looked through sooner than an array.
    beyond = (wanted > limit).tolist()
    if True not in beyond:
        return []
    return [
        column
        for column, is_beyond in enumerate(beyond)
        if is_beyond and asked[column] > 0 and column != resources.PODS
    ]


def told(names: Sequence[str], columns: Sequence[int], held: Vector, demand: Demand, **bounds: Vector) -> str:
    """Write the numbers of some resources: what is held, what is asked for, and what bounds them."""
    ((word, bound),) = bounds.items()

    def shown(column: int, vector: Vector) -> str:
        return resources.shown(names[column], int(vector[column]))

    pods = f"{len(demand.tasks)} pods" if len(demand.tasks) > 1 else "a pod"
    return "; ".join(
        f"{names[c]} {shown(c, held)} held + {shown(c, demand.amounts)} for {pods}, {word} {shown(c, bound)}"
        for c in columns
    )
