"""Topology domains: which nodes share a value of a label, and which of them take part in a count.

Everything here follows from Node objects alone and is kept until one of them changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from pumice.api import names
from pumice.model import selectors, tolerations

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.selectors import Mask
    from pumice.model.shape import ConstraintClass

V = TypeVar("V", bound=np.generic)

# A topology in which every node is a domain of its own, whatever its labels say.
NODE = ""
KEPT = 256
_BLOCKING = (names.TAINT_NO_SCHEDULE, names.TAINT_NO_EXECUTE)


class Division(msgspec.Struct, frozen=True, cache_hash=True):
    """How nodes are divided, and which of them count: all, or those that have some labels, suit a class, and are tolerated by it."""

    topology: str
    labels: tuple[str, ...] = ()
    suiting: bytes = b""
    tolerated: bytes = b""


class Domains:
    """Nodes divided by a label. `codes` has each node's domain, -1 for none; vectors over domains have one place more, for those."""

    __slots__ = ("_fellows", "_places", "alone", "codes", "counted", "listed", "number", "size", "some_missing")

    def __init__(self, codes: npt.NDArray[np.int32], size: int, counted: Mask | None) -> None:
        self.codes = codes
        self.size = size
        # Every node is the only one of its domain, and domains stand in the order of nodes.
        self.alone = size == len(codes)
        self.some_missing = not self.alone and bool((codes < 0).any())
        self._places = np.where(codes < 0, size, codes).astype(np.intp)
        self.counted = counted
        self._fellows: dict[int, Rows] = {}
        among = codes if counted is None else codes[counted]
        # Domains with at least one node that counts.
        self.listed: Mask = np.bincount(among + 1, minlength=size + 1)[1:] > 0
        self.number = int(np.count_nonzero(self.listed))

    def per_node(self, vector: npt.NDArray[V]) -> npt.NDArray[V]:
        """Give every node what a vector over domains holds for its own; the last place is for nodes without a domain."""
        return vector[:-1] if self.alone else vector.take(self._places)

    def counts(self, row: int) -> bool:
        """Tell whether what is on a node is counted in some domain."""
        return bool(self.codes[row] >= 0) and (self.counted is None or bool(self.counted[row]))

    def fellows(self, row: int) -> Rows:
        """Return the nodes of a node's domain, itself among them; none if it lies in no domain."""
        if self.alone:
            return np.array([row], dtype=np.int64)
        code = int(self.codes[row])
        if code < 0:
            return np.zeros(0, dtype=np.int64)
        found = self._fellows.get(code)
        if found is None:
            found = self._fellows[code] = np.flatnonzero(self.codes == code)
        return found

    def spanned(self, rows: Rows) -> int:
        """Count the domains that some nodes lie in, those without the label as one."""
        if self.alone:
            return len(rows)
        return int(np.count_nonzero(np.bincount(self._places.take(rows))))

    def of_rows(self, vector: npt.NDArray[V], rows: Rows) -> npt.NDArray[V]:
        """Give some nodes what a vector over domains holds for their own."""
        return vector.take(rows if self.alone else self._places.take(rows))


class Topology:
    """Finds and keeps divisions of the nodes of a table."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.state = (-1, -1)
        self._kept: dict[Division, Domains] = {}

    def domains(self, division: Division, constraint_class: ConstraintClass | None = None) -> Domains:
        """Return the domains of a division; the class is the one whose key it names, if it names one."""
        state = (self.table.structure, self.table.static)
        if state != self.state or len(self._kept) >= KEPT:
            self._kept.clear()
            self.state = state
        found = self._kept.get(division)
        if found is None:
            found = self._kept[division] = self._divide(division, constraint_class)
        return found

    def _divide(self, division: Division, constraint_class: ConstraintClass | None) -> Domains:
        columns = self.table.attributes
        if division.topology == NODE:
            codes, size = np.arange(columns.count, dtype=np.int32), columns.count
        else:
            codes, values = columns.codes(division.topology)
            size = len(values)
        masks: list[Mask] = [columns.codes(label)[0] >= 0 for label in division.labels]
        if constraint_class is not None and division.suiting:
            suiting = selectors.node_mask(constraint_class.constraints, columns)
            if suiting is not None:
                masks.append(suiting)
        if constraint_class is not None and division.tolerated:
            sets, kinds = columns.taints
            tolerated = constraint_class.constraints.tolerations
            answers = [tolerations.tolerates_all(tolerated, taints, _BLOCKING) for taints in sets]
            masks.append(np.array(answers, dtype=np.bool_)[kinds])
        return Domains(codes, size, np.logical_and.reduce(masks) if masks else None)
