"""Nodes as columns: one integer matrix per kind of sum, one row per node, rows in the order of node names.

A row without a Node object (a pod names a node that is not there) lies behind the others: it keeps its pods' sums and is in no view.
Rows move only in `arrange`, between cycles; whoever keeps vectors over nodes compares `structure`, `static` and the log of changed rows.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from pumice.model import totals
from pumice.model.attributes import Attributes
from pumice.model.records import NodeRecord as NodeRecord  # noqa: PLC0414  it stands where its tasks do
from pumice.model.resources import PODS, Matrix, Vector, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pumice.api import core
    from pumice.model.constraints import Constraints
    from pumice.model.shape import Shape

V = TypeVar("V")
Rows = npt.NDArray[np.int64]
Place = int | slice | Rows | tuple[slice | int, Rows | int]
EVERY = slice(None)
LOG_LIMIT = 1 << 18
SUMS = ("allocatable", "used", "releasing", "pipelined", "foreign", "fixed")


class Amounts:
    """What nodes offer and hold, as matrices, and what follows from them; `at` chooses rows, or rows and columns."""

    __slots__ = ()

    allocatable: Matrix
    used: Matrix
    releasing: Matrix
    pipelined: Matrix

    def idle_at(self, at: Place) -> Matrix:
        """Return what is free now."""
        return self.allocatable[at] - self.used[at]

    def future_idle_at(self, at: Place) -> Matrix:
        """Return what is free once everything that is being released is gone and everything pipelined has come."""
        return self.after_release(self.idle_at(at), at)

    def after_release(self, idle: Matrix, at: Place) -> Matrix:
        """Return what is free then, from what is free now."""
        return idle + self.releasing[at] - self.pipelined[at]


class Nodes(Amounts):
    """A view of nodes that filters and scores are asked about: amounts as arrays, `index` the rows they belong to.

    The amounts of a view may run ahead of the table (as if some more pods were placed), so functions that declare to read only columns must take
    every amount from here; `steps` says by how many of the pods that are asked about, if it is known. `released` says that pods which are being released count as gone.
    """

    __slots__ = (
        "_kept",
        "allocatable",
        "index",
        "non_zero",
        "pipelined",
        "released",
        "releasing",
        "steps",
        "table",
        "used",
    )

    def __init__(
        self,
        table: NodeTable,
        index: Rows,
        used: Matrix,
        non_zero: Matrix,
        pipelined: Matrix,
        *,
        whole: bool = False,
        released: bool = False,
    ) -> None:
        self.table = table
        self.index = index
        self.used = used
        self.non_zero = non_zero
        self.pipelined = pipelined
        self.released = released
        self.steps: Vector | None = None
        self._kept: dict[object, Any] | None = None
        count = table.count
        self.allocatable: Matrix = table.allocatable[:count] if whole else table.allocatable[index]
        self.releasing: Matrix = table.releasing[:count] if whole else table.releasing[index]

    def __len__(self) -> int:
        return len(self.index)

    def kept(self, make: Callable[[Nodes], V]) -> V:
        """Return what a function makes of the nodes, made once for the view: whoever is asked about many pods, some at a time, is asked about one view."""
        if self._kept is None:
            self._kept = {}
        if make not in self._kept:
            self._kept[make] = make(self)
        found: V = self._kept[make]
        return found

    @property
    def native(self) -> Matrix:
        """Cpu and memory that the nodes have of their own, without oversubscription."""
        own: Matrix = self.table.native[self.index]
        return own

    @property
    def idle(self) -> Matrix:
        """What is free now."""
        return self.idle_at(EVERY)

    @property
    def future_idle(self) -> Matrix:
        """What is free once everything that is being released is gone and everything pipelined has come."""
        return self.future_idle_at(EVERY)

    @property
    def pods(self) -> Vector:
        """How many pods count as present: placed and pipelined ones, without those being released if they count as gone."""
        present = self.used[:, PODS] + self.pipelined[:, PODS]
        return present - self.releasing[:, PODS] if self.released else present

    def records(self) -> Iterable[NodeRecord]:
        """Go through the nodes of the view as objects; slow, one at a time."""
        return (self.table.records[row] for row in self.index.tolist())


class NodeTable(Amounts):
    """All nodes, as matrices of sums beside the node objects."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.records: list[NodeRecord] = []
        self.by_name: dict[str, NodeRecord] = {}
        self.count = 0
        self.structure = 0
        self.static = 0
        self.claims = 0
        self.rows: Rows = np.arange(0)
        self._disordered = False
        self._attributes: tuple[int, int, Attributes] | None = None
        self._restated: list[int] = []  # rows that say something else than the attributes do
        self._changes: list[int] = []
        self._forgotten = 0
        width = len(vocabulary)
        self.allocatable: Matrix = np.zeros((0, width), dtype=np.int64)
        self.used: Matrix = np.zeros((0, width), dtype=np.int64)
        self.releasing: Matrix = np.zeros((0, width), dtype=np.int64)
        self.pipelined: Matrix = np.zeros((0, width), dtype=np.int64)
        # What pods that belong to no job hold, terminating ones aside; and what static and daemon pods hold, whatever becomes of them.
        self.foreign: Matrix = np.zeros((0, width), dtype=np.int64)
        self.fixed: Matrix = np.zeros((0, width), dtype=np.int64)
        self.fixings = 0
        self.non_zero: Matrix = np.zeros((0, 2), dtype=np.int64)
        # cpu and memory without what oversubscription adds: what Kubernetes' scores go by.
        self.native: Matrix = np.zeros((0, 2), dtype=np.int64)
        self._totals = {name: totals.Totals(self, name) for name in totals.AMOUNTS}

    def total(self, name: str) -> Vector:
        """Return a sum over all nodes: what is `offered`, what is `taken`, or what foreign pods leave of it."""
        return self._totals[name].vector()

    # -- rows --------------------------------------------------------------------------------------------------

    def record(self, name: str) -> NodeRecord:
        """Return the record of a name, making a placeholder for a node nobody has seen yet."""
        record = self.by_name.get(name)
        if record is None:
            row = len(self.records)
            if row == len(self.used):
                self._reshape(max(64, 2 * row), len(self.vocabulary))
            record = self.by_name[name] = NodeRecord(name, row)
            self.records.append(record)
            self._disordered = True
        return record

    def register(
        self, record: NodeRecord, node: core.Node, allocatable: Mapping[str, int], native: tuple[int, int]
    ) -> bool:
        """Give a record its Node object and tell whether the vocabulary grew."""
        grew = self.vocabulary.offer(name for name, units in allocatable.items() if units)
        if grew:
            self._reshape(len(self.used), len(self.vocabulary))
            self.structure += 1
        if record.object is None:
            self._disordered = True
        record.object = node
        row = self.vocabulary.vector(allocatable)
        if (self.allocatable[record.row] != row).any() or tuple(self.native[record.row]) != native:
            self.allocatable[record.row] = row
            self.native[record.row] = native
            self.touch(record.row)
        return grew

    def unregister(self, name: str) -> None:
        """Take the Node object away; a record that still has tasks keeps their sums."""
        record = self.by_name.get(name)
        if record is not None:
            record.object = None
            self.allocatable[record.row] = 0
            self._disordered = True

    def restate(self, row: int | None = None) -> None:
        """Note that labels, taints, conditions or images of a node changed, or without a row that something did which verdicts about all nodes follow from."""
        self.static += 1
        if row is not None:
            self._restated.append(row)

    def restate_claims(self) -> None:
        """Note that a claim, a volume, a storage class, a driver or a device changed: verdicts about pods with volumes or claims are void."""
        self.claims += 1

    def stated(self, constraints: Constraints) -> int:
        """Return a number that grows whenever the objects change from which verdicts about such pods follow."""
        concerned = constraints.has_volumes or constraints.resource_claims
        return self.static + self.claims if concerned else self.static

    def arrange(self) -> None:
        """Sort rows by name, nodes without an object behind, and drop records that nothing refers to."""
        if not self._disordered:
            return
        self._disordered = False
        present = sorted((r for r in self.records if r.object is not None), key=lambda r: r.name)
        absent = sorted((r for r in self.records if r.object is None and r.tasks), key=lambda r: r.name)
        kept = present + absent
        order = np.array([record.row for record in kept], dtype=np.int64)
        size = max(64, len(kept))
        for attribute in (*SUMS, "non_zero", "native"):
            old = getattr(self, attribute)
            new = np.zeros((size, old.shape[1]), dtype=np.int64)
            new[: len(kept)] = old[order]
            setattr(self, attribute, new)
        for row, record in enumerate(kept):
            record.row = row
        self.records = kept
        self.by_name = {record.name: record for record in kept}
        self.count = len(present)
        self.rows = np.arange(self.count)
        self.structure += 1

    def _reshape(self, rows: int, width: int) -> None:
        for attribute in SUMS:
            old = getattr(self, attribute)
            new = np.zeros((rows, width), dtype=np.int64)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, attribute, new)
        for attribute in ("non_zero", "native"):
            old = getattr(self, attribute)
            new = np.zeros((rows, 2), dtype=np.int64)
            new[: len(old)] = old
            setattr(self, attribute, new)

    # -- the log of changed rows -------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The end of the log; what is read now is up to date with it."""
        return self._forgotten + len(self._changes)

    def amounts(self, rows: Rows | slice | int) -> Matrix:
        """Return all amounts of a row, or of some, side by side: nodes with equal ones take and score pods alike, as far as amounts decide."""
        side_by_side: Matrix = np.concatenate(
            (
                self.allocatable[rows],
                self.used[rows],
                self.releasing[rows],
                self.pipelined[rows],
                self.non_zero[rows],
                self.native[rows],
            ),
            axis=-1,
        )
        return side_by_side

    def more(self, requests: Matrix, non_zero: Matrix) -> Matrix:
        """Return what pods add to all amounts of the row they are placed on, a row for each pod."""
        width = len(self.vocabulary)
        added: Matrix = np.zeros((len(requests), 4 * width + 4), dtype=np.int64)
        added[:, width : 2 * width] = requests
        added[:, 4 * width : 4 * width + 2] = non_zero
        return added

    def imagined(self, rows: Rows, amounts: Matrix) -> Nodes:
        """Return rows as they would be with other amounts, of which only those may differ that placing a pod changes."""
        width = len(self.vocabulary)
        used, pipelined = amounts[:, width : 2 * width], amounts[:, 3 * width : 4 * width]
        return Nodes(self, rows, used, amounts[:, 4 * width : 4 * width + 2], pipelined)

    def state(self, row: int) -> bytes:
        """Return all amounts of a row as one key."""
        return self.amounts(row).tobytes()

    def touch(self, row: int) -> None:
        """Log one changed row."""
        self._changes.append(row)
        self._trim()

    def touch_all(self, rows: Iterable[int]) -> None:
        """Log changed rows."""
        self._changes.extend(rows)
        self._trim()

    def _trim(self) -> None:
        if len(self._changes) > LOG_LIMIT:
            self._forgotten += len(self._changes)
            self._changes.clear()

    def rows_since(self, position: int) -> list[int] | None:
        """Return the rows that changed after a position, or None if the log does not reach back so far."""
        if position < self._forgotten:
            return None
        rows = sorted(set(self._changes[position - self._forgotten :]))  # each many times
        return rows[: bisect.bisect_left(rows, self.count)]

    def changed_since(self, position: int) -> Rows | None:
        """Return the same as an array."""
        rows = self.rows_since(position)
        return None if rows is None else np.array(rows, dtype=np.int64)

    # -- views -------------------------------------------------------------------------------------------------

    @property
    def attributes(self) -> Attributes:
        """What the Node objects say, as columns; kept until one of them changes."""
        known = self._attributes
        if known is None or known[:2] != (self.structure, self.static):
            if known is not None and known[0] == self.structure and len(self._restated) < self.count // 8:
                made = known[2].patched(self._restated)
            else:
                made = Attributes(self.records, self.count)
            self._restated = []
            known = self._attributes = (self.structure, self.static, made)
        return known[2]

    def view(self, rows: Rows | None = None, *, released: bool = False) -> Nodes:
        """Return some nodes, or all of them, as they are."""
        if rows is None:
            n = self.count
            return Nodes(
                self, self.rows, self.used[:n], self.non_zero[:n], self.pipelined[:n], whole=True, released=released
            )
        return Nodes(self, rows, self.used[rows], self.non_zero[rows], self.pipelined[rows], released=released)

    def ahead(self, rows: Rows, steps: Vector, shape: Shape, *, waiting: bool) -> Nodes:
        """Return rows as they would be with `steps` more pods of a shape placed there, or waiting for release there."""
        more = steps[:, None] * shape.request.vector
        used, pipelined, non_zero = self.used[rows], self.pipelined[rows], self.non_zero[rows]
        if waiting:
            nodes = Nodes(self, rows, used, non_zero, pipelined + more, released=True)
        else:
            non_zero = non_zero + steps[:, None] * np.array(shape.non_zero, dtype=np.int64)
            nodes = Nodes(self, rows, used + more, non_zero, pipelined)
        nodes.steps = steps
        return nodes
