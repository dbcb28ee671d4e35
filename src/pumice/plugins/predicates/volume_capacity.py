"""Room for new volumes: where a storage class may make one, and where its driver says that there is enough left."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from pumice.api import names, quantity
from pumice.model.volumes import CAPACITY
from pumice.plugins.predicates import claims, selected_rows

if TYPE_CHECKING:
    from pumice.api import storage, volumes
    from pumice.model.attributes import Attributes
    from pumice.model.nodes import NodeTable
    from pumice.model.volume_usage import Volumes

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Pool(msgspec.Struct):
    """The capacities that drivers state for one class: the largest volume, whether volumes on their way reduce it, and who reaches it."""

    limits: Ints
    shrinks: Mask
    selected: selected_rows.SelectedRows


class Provisioning:
    """Answers where a volume could be made for a claim."""

    def __init__(self, objects: claims.StorageObjects, decided: Volumes) -> None:
        self._objects = objects
        self._decided = decided

    def possible(self, claim: volumes.PersistentVolumeClaim, columns: Attributes) -> Mask:
        """Mark the nodes for which the claim's class may make volumes."""
        found = self._objects.storage_class(claims.class_of(claim))
        if found is None or found.provisioner in ("", names.NO_PROVISIONER):
            return np.zeros(columns.count, dtype=np.bool_)
        if not found.allowed_topologies:
            return np.ones(columns.count, dtype=np.bool_)
        mask = np.zeros(columns.count, dtype=np.bool_)
        for term in found.allowed_topologies:
            mask |= _within(term, columns)
        return mask

    def enough(self, claim: volumes.PersistentVolumeClaim, size: int, nodes: NodeTable) -> Mask | None:
        """Mark the nodes for which there is room; None if nobody says how much there is."""
        name = claims.class_of(claim)
        found = self._objects.storage_class(name)
        driver = self._objects.driver(found.provisioner) if found is not None else None
        if driver is None or not driver.spec.storage_capacity or claims.STORAGE not in claim.spec.resources.requests:
            return None
        columns = nodes.attributes
        pool = self._pool(name, columns)
        numbers, rows = pool.selected.expand(np.arange(len(pool.limits)))
        promised = self._promised(name, f"{claim.metadata.namespace}/{claim.metadata.name}", nodes)
        taken = np.zeros(len(pool.limits), dtype=np.int64)
        np.add.at(taken, numbers, promised[rows])
        fits = pool.limits - np.where(pool.shrinks, taken, 0) >= size
        mask = np.zeros(columns.count, dtype=np.bool_)
        mask[rows[fits[numbers]]] = True
        return mask

    def _pool(self, storage_class: str, columns: Attributes) -> Pool:
        version = self._decided.versions[CAPACITY]
        kept: tuple[int, Pool] | None = columns.derived.get(("pool", storage_class))
        if kept is None or kept[0] != version:
            stated = [
                (capacity, limit)
                for capacity in self._objects.capacities()
                if capacity.storage_class_name == storage_class and (limit := _limit(capacity)) is not None
            ]
            pool = Pool(
                np.array([limit for _, limit in stated], dtype=np.int64),
                np.array([capacity.maximum_volume_size is None for capacity, _ in stated], dtype=np.bool_),
                selected_rows.SelectedRows(
                    [selected_rows.of_labels(capacity.node_topology) for capacity, _ in stated], columns
                ),
            )
            kept = columns.derived["pool", storage_class] = (version, pool)
        return kept[1]

    def _promised(self, storage_class: str, asking: str, nodes: NodeTable) -> Ints:
        """Add up, per node, the new volumes of a class that are decided and not made yet."""
        total = np.zeros(nodes.count, dtype=np.int64)
        for key, (volume, node) in self._decided.chosen.items():
            record = nodes.by_name.get(node)
            claim = self._objects.claim(key)
            if volume or key == asking or claim is None or record is None or record.row >= nodes.count:
                continue
            if claims.class_of(claim) == storage_class:
                total[record.row] += claims.requested(claim)
        return total


def _limit(capacity: storage.CSIStorageCapacity) -> int | None:
    """Return the size of the largest volume that can be made; None if it is not stated, or cannot be read."""
    stated = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return None if stated is None else quantity.whole(stated)
    except quantity.QuantityError:
        return None


def _within(term: storage.TopologySelectorTerm, columns: Attributes) -> Mask:
    """Mark the nodes that have one of the values of every label; a term without labels has none."""
    mask = np.full(columns.count, bool(term.match_label_expressions), dtype=np.bool_)
    for wanted in term.match_label_expressions:
        mask &= columns.mask(wanted.key, functools.partial(operator.contains, wanted.values))
    return mask
