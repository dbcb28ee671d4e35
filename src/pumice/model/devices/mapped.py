"""Which resources device classes stand for, and on which nodes: where the node itself offers one (a device plugin), it is the node's, elsewhere it is had by a claim.

Of a resource that some node offers itself, the others offer as many as they have devices: no more fit there, and how many really do is found with the devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import quantity
from pumice.model.devices import extended

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import core, resource
    from pumice.model.devices.offers import Slice
    from pumice.model.nodes import NodeRecord, NodeTable
    from pumice.model.resources import Vocabulary

_UNIT: Final = 1000  # a whole one, in the units of the columns
NOTHING: Final[frozenset[str]] = frozenset()


class MappedResources:
    """Resources that classes stand for."""

    def __init__(self, nodes: NodeTable, vocabulary: Vocabulary) -> None:
        self._nodes = nodes
        self._vocabulary = vocabulary
        self.classes: dict[str, str] = {}  # resource -> the class that stands for it
        self.mixed: tuple[str, ...] = ()  # those that some node has offered itself
        self._natives: dict[str, tuple[core.Node, frozenset[str]]] = {}
        self._devices: dict[str, int] = {}  # by node, how many devices slices list for it
        self._anywhere = 0  # how many they list for more than one node

    def update(self, classes: Iterable[resource.DeviceClass], slices: Iterable[Slice]) -> bool:
        """Find out anew what stands for what and how many devices nodes have; tells whether pods are to be looked at again."""
        before = (self.classes, self.mixed)
        self.classes = extended.classes_by_resource(classes)
        self.mixed = tuple(name for name in sorted(self.classes) if name in self._vocabulary.columns)
        self._natives = {}
        if self.mixed or before[1]:
            self._count(slices)
            for record in self._nodes.records:
                if record.object is not None:
                    self._lend(record, {*before[1], *self.mixed})
        return before != (self.classes, self.mixed)

    def _count(self, slices: Iterable[Slice]) -> None:
        self._devices, self._anywhere = {}, 0
        for each in slices:
            node = each.object.spec.node_name
            if node:
                self._devices[node] = self._devices.get(node, 0) + len(each.devices)
            else:
                self._anywhere += len(each.devices)

    def _lend(self, record: NodeRecord, names: Iterable[str]) -> None:
        """Let a node offer what it has devices for; what no class stands for any more it offers no longer."""
        table, lent = self._nodes, self._units(record.name)
        for name in names:
            column = self._vocabulary.columns[name]
            units = lent if name in self.classes else 0
            if record.object is None or _offers(record.object, name):
                continue
            if table.allocatable[record.row, column] != units:
                table.allocatable[record.row, column] = units
                table.touch(record.row)

    def _units(self, node: str) -> int:
        return (self._devices.get(node, 0) + self._anywhere) * _UNIT

    def offered(self, node: core.Node, allocatable: Mapping[str, int]) -> Mapping[str, int]:
        """Return what a node offers, with what it has devices for."""
        lent = {name: self._units(node.metadata.name) for name in self.mixed if not allocatable.get(name)}
        return {**allocatable, **lent} if lent else allocatable

    def natives(self, record: NodeRecord | None) -> frozenset[str]:
        """Return the resources of these that a node offers itself."""
        if not self.mixed or record is None or record.object is None:
            return NOTHING
        known = self._natives.get(record.name)
        if known is None or known[0] is not record.object:
            found = frozenset(name for name in self.mixed if _offers(record.object, name))
            known = self._natives[record.name] = (record.object, found)
        return known[1]


def _offers(node: core.Node, name: str) -> bool:
    try:
        return quantity.parse(node.status.allocatable.get(name, 0)) > 0
    except quantity.QuantityError:
        return False
