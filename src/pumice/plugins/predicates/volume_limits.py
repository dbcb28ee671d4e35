"""How many volumes of a CSI driver a node can attach.

Volumes are told apart by driver and handle, so one that several pods of a node use counts once. (The peer also counts them as an amount of
a resource, once per pod, and so refuses pods that share a volume; that is not done here.) Placing a pod never changes the verdict for
another pod with the same volumes: they are attached by then. So runs of equal pods need not be placed one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from pumice.api import names
from pumice.framework.reasons import Code, ReasonVector
from pumice.model.statuses import GOING
from pumice.model.volumes import CSI_NODE, Disk, in_tree, migrated_driver
from pumice.plugins.predicates import claims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.framework.subject import Subject
    from pumice.model.cluster import Cluster
    from pumice.model.constraints import Constraints
    from pumice.model.nodes import NodeRecord, Nodes, NodeTable
    from pumice.plugins.predicates.claims import StorageObjects

Ints = npt.NDArray[np.int64]
Attached = dict[str, set[str]]  # driver -> handles

TOO_MANY = "node(s) exceed max volume count"
UNLIMITED = 2**62


class Known(msgspec.Struct):
    """What is attached to a node, as of a version of it."""

    record: NodeRecord
    version: int
    attached: Attached


class VolumeLimits:
    """The filter, with the number of attached volumes of each driver as a column."""

    def __init__(self, cluster: Cluster, objects: StorageObjects, reason: Callable[[Code, str], int]) -> None:
        self._volumes = cluster.volumes
        self._objects = objects
        self._too_many = reason(Code.UNSCHEDULABLE, TOO_MANY)
        self._known: dict[str, Known] = {}
        self._limits: dict[str, Ints] = {}
        self._counts: dict[str, Ints] = {}
        self._layout: tuple[int, int] | None = None
        self._seen = (-1, -1)

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes to which the pod would bring more volumes of a driver than it can attach."""
        constraints = subject.constraints
        if not constraints.has_volumes:
            return None
        self._refresh(nodes.table)
        wanted: dict[str, list[Disk]] = {}
        for disk in self._disks(constraints):
            if disk.driver in self._limits:
                wanted.setdefault(disk.driver, []).append(disk)
        if not wanted:
            return None
        close = np.zeros(len(nodes), dtype=np.bool_)
        for driver, disks in wanted.items():
            close |= self._counts[driver][nodes.index] + len(disks) > self._limits[driver][nodes.index]
        refused = np.zeros(nodes.table.count, dtype=np.int16)
        # Only nodes that are close to a limit are looked at one by one: some of the volumes may be there already.
        for row in np.unique(nodes.index[close]).tolist():
            if self._exceeds(nodes.table.records[row], wanted, released=nodes.released):
                refused[row] = self._too_many
        chosen: ReasonVector = refused[nodes.index]
        return chosen

    def _exceeds(self, record: NodeRecord, wanted: dict[str, list[Disk]], *, released: bool) -> bool:
        attached = self._attached(record, released=True) if released else self._known[record.name].attached
        migrated = self._migrated(record.name)
        for driver, disks in wanted.items():
            held = attached.get(driver, set())
            new = {disk.handle for disk in disks if not disk.plugin or disk.plugin in migrated} - held
            if new and len(held) + len(new) > self._limits[driver][record.row]:
                return True
        return False

    # -- what is attached --------------------------------------------------------------------------------------

    def _refresh(self, table: NodeTable) -> None:
        """Bring limits and counts up to date with nodes, pods and objects."""
        layout = (table.structure, self._volumes.versions[CSI_NODE])
        rows: Iterable[int] = range(table.count)
        if self._layout != layout:
            self._layout = layout
            self._lay(table)
        elif self._seen == (table.claims, table.position):
            return
        elif self._seen[0] == table.claims and (changed := table.changed_since(self._seen[1])) is not None:
            rows = changed.tolist()
        self._seen = (table.claims, table.position)
        if self._limits:
            for row in rows:
                self._count(table.records[row])

    def _lay(self, table: NodeTable) -> None:
        """Make the columns of limits anew, and empty columns of counts."""
        self._limits, self._known = {}, {}
        for node in self._objects.csi_nodes():
            record = table.by_name.get(node.metadata.name)
            if record is None or record.row >= table.count:
                continue
            for driver in node.spec.drivers:
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    column = self._limits.get(driver.name)
                    if column is None:
                        column = self._limits[driver.name] = np.full(table.count, UNLIMITED, dtype=np.int64)
                    column[record.row] = driver.allocatable.count
        self._counts = {driver: np.zeros(table.count, dtype=np.int64) for driver in self._limits}

    def _count(self, record: NodeRecord) -> None:
        known = self._known.get(record.name)
        if known is not None and known.record is record and known.version == record.volume_version:
            return
        attached = self._attached(record, released=False)
        self._known[record.name] = Known(record, record.volume_version, attached)
        for driver, column in self._counts.items():
            column[record.row] = len(attached.get(driver, ()))

    def _attached(self, record: NodeRecord, *, released: bool) -> Attached:
        """Collect the volumes of a node: those of its pods, and others that are attached already."""
        attached: Attached = {}
        leaving: Attached = {}
        migrated: frozenset[str] | None = None
        for task in record.volume_users.values():
            kept = leaving if released and task.status in GOING else attached
            for disk in self._disks(task.shape.constraints):
                if disk.plugin:
                    migrated = self._migrated(record.name) if migrated is None else migrated
                    if disk.plugin not in migrated:
                        continue
                kept.setdefault(disk.driver, set()).add(disk.handle)
        for name in self._volumes.attached.get(record.name, {}).values():
            volume = self._objects.volume(name)
            source = volume.spec.csi if volume is not None else None
            # A volume that only pods on their way out use will be detached after them.
            if source is not None and source.volume_handle not in leaving.get(source.driver, ()):
                attached.setdefault(source.driver, set()).add(source.volume_handle)
        return attached

    def _migrated(self, node: str) -> frozenset[str]:
        """Return the in-tree plugins that a node has left to their drivers."""
        found = self._objects.csi_node(node)
        text = found.metadata.annotations.get(names.MIGRATED_PLUGINS, "") if found is not None else ""
        return frozenset(text.split(","))

    def _disks(self, constraints: Constraints) -> Iterable[Disk]:
        yield from constraints.disks
        for use in constraints.claims:
            disk = self._disk(use.key)
            if disk is not None:
                yield disk

    def _disk(self, key: str) -> Disk | None:
        """Return what a claim attaches; one without a volume counts under a name of its own, by its class."""
        claim = self._objects.claim(key)
        if claim is None:
            return None
        volume = self._objects.volume(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            source = volume.spec.csi
            return Disk(source.driver, source.volume_handle) if source is not None else in_tree(volume.spec)
        found = self._objects.storage_class(claims.class_of(claim))
        if found is None or not found.provisioner:
            return None
        driver = migrated_driver(found.provisioner)
        handle = f"claim {key}"
        return Disk(driver, handle, found.provisioner) if driver else Disk(found.provisioner, handle)
