"""Nodes as columns: one integer matrix per kind of sum, one row per node, rows in the order of node names.

A row without a Node object (a pod names a node that is not there) lies behind the others: it keeps its pods' sums and is in no view.
Rows move only in `arrange`, between cycles; whoever keeps vectors over nodes compares `structure`, `static` and the log of changed rows.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from pumice.model import totals
from pumice.model.resources import PODS, Matrix, Vector, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from pumice.api import core
    from pumice.model.shape import Constraints, Shape
    from pumice.model.task import Task

V = TypeVar("V")
Rows = npt.NDArray[np.int64]
Place = int | slice | Rows | tuple[slice | int, Rows | int]
EVERY = slice(None)
LOG_LIMIT = 1 << 18
SUMS = ("allocatable", "used", "releasing", "pipelined", "foreign", "fixed")


class NodeRecord:
    """One node: its object, if there is one, and the tasks that are on it or on their way to it."""

    __slots__ = (
        "images",
        "labels",
        "name",
        "object",
        "port_users",
        "ready",
        "row",
        "taints",
        "tasks",
        "unschedulable",
        "volume_users",
        "volume_version",
    )

    def __init__(self, name: str, row: int) -> None:
        self.name = name
        self.row = row
        self.object: core.Node | None = None
        self.labels: Mapping[str, str] = {}
        self.taints: tuple[core.Taint, ...] = ()
        self.unschedulable = False
        self.ready = True
        self.tasks: dict[str, Task] = {}
        self.port_users: dict[str, Task] = {}
        self.volume_users: dict[str, Task] = {}
        self.volume_version = 0  # counts what may have changed the volumes in use here
        self.images: dict[str, int] = {}  # name -> bytes

    def state(self, known: core.Node | None, node: core.Node) -> bool:
        """Take over what a node says of itself besides amounts, and tell whether that is news; `known` is what it said before."""
        ready = all(c.status == "True" for c in node.status.conditions if c.type == "Ready")
        stated = (node.metadata.labels, tuple(node.spec.taints), node.spec.unschedulable, ready)
        fetched = known is None or known.status.images != node.status.images
        if fetched:
            self.images = {name: max(0, i.size_bytes) for i in node.status.images for name in i.names}
        if not fetched and stated == (self.labels, self.taints, self.unschedulable, self.ready):
            return False
        self.labels, self.taints, self.unschedulable, self.ready = stated
        return True

    def list_as(self, uids: Sequence[str]) -> None:
        """Bring the tasks back into an order in which they were before."""
        for users in (self.tasks, self.port_users, self.volume_users):
            known = [uid for uid in uids if uid in users]
            ordered = {uid: users[uid] for uid in (*known, *users)}
            users.clear()
            users.update(ordered)

    def __repr__(self) -> str:
        return f"<node {self.name} with {len(self.tasks)} tasks>"


class Attributes:
    """What Node objects say, as columns: labels as integer codes (one column per key that was asked for), taints, states."""

    __slots__ = ("_columns", "_images", "_names", "_records", "cordoned", "count", "derived", "not_ready", "taints")

    def __init__(self, records: list[NodeRecord], count: int) -> None:
        self._records = records
        self.count = count
        self._columns: dict[str, tuple[npt.NDArray[np.int32], list[str]]] = {}
        self._images: dict[str, Vector | None] = {}
        self.derived: dict[Hashable, Any] = {}  # what others worked out from these columns, and which ends with them
        self._names: dict[str, int] = {records[row].name: row for row in range(count)}
        present = records[:count]
        self.not_ready = np.array([not record.ready for record in present], dtype=np.bool_)
        self.cordoned = np.array([record.unschedulable for record in present], dtype=np.bool_)
        self.taints = self._taints()

    def _taints(self) -> tuple[list[tuple[core.Taint, ...]], npt.NDArray[np.int32]]:
        """Return the distinct sets of taints, and the number of each node's set."""
        sets: dict[tuple[core.Taint, ...], int] = {}
        present = self._records[: self.count]
        codes = np.array([sets.setdefault(record.taints, len(sets)) for record in present], dtype=np.int32)
        return list(sets), codes

    def patched(self, rows: Iterable[int]) -> Attributes:
        """Return the same columns with some rows read anew; they are what they would be if all rows were."""
        made = copy.copy(self)
        made.read_again([row for row in dict.fromkeys(rows) if row < self.count])
        return made

    def read_again(self, rows: Sequence[int]) -> None:
        """Read some rows anew, into columns of our own."""
        self.derived = {}
        self.not_ready, self.cordoned = self.not_ready.copy(), self.cordoned.copy()
        for row in rows:
            self.not_ready[row] = not self._records[row].ready
            self.cordoned[row] = self._records[row].unschedulable
        sets, numbers = self.taints
        if any(sets[numbers[row]] != self._records[row].taints for row in rows):
            self.taints = self._taints()
        self._columns = {key: column for key, column in self._columns.items() if self._holds(key, column, rows)}
        self._images = {name: self._image(name, column, rows) for name, column in self._images.items()}

    def _holds(self, key: str, column: tuple[npt.NDArray[np.int32], list[str]], rows: Sequence[int]) -> bool:
        """Tell whether a column still says what the labels of some rows say."""
        codes, values = column
        said = ((values[codes[row]] if codes[row] >= 0 else None, self._records[row].labels.get(key)) for row in rows)
        return all(before == now for before, now in said)

    def _image(self, name: str, column: Vector | None, rows: Sequence[int]) -> Vector | None:
        """Return the column of an image with some rows read anew."""
        sizes = [self._records[row].images.get(name, -1) for row in rows]
        if column is None:
            if max(sizes, default=-1) < 0:
                return None
            column = np.full(self.count, -1, dtype=np.int64)
        made = column.copy()
        made[list(rows)] = sizes
        return made if (made >= 0).any() else None

    def codes(self, key: str) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Return each node's code of a label, -1 where it is missing, and the values that the codes stand for."""
        column = self._columns.get(key)
        if column is None:
            values: dict[str, int] = {}
            codes = np.full(self.count, -1, dtype=np.int32)
            for row in range(self.count):
                value = self._records[row].labels.get(key)
                if value is not None:
                    codes[row] = values.setdefault(value, len(values))
            column = self._columns[key] = (codes, list(values))
        return column

    def mask(self, key: str, holds: Callable[[str | None], bool]) -> npt.NDArray[np.bool_]:
        """Ask a question once per value of a label, and answer it for all nodes."""
        codes, values = self.codes(key)
        answers = np.array([*(holds(value) for value in values), holds(None)], dtype=np.bool_)
        return answers[codes]

    def image(self, name: str) -> Vector | None:
        """Return the bytes of an image on each node, -1 where it is missing; None if no node has it."""
        if name not in self._images:
            column = np.array([self._records[row].images.get(name, -1) for row in range(self.count)], dtype=np.int64)
            self._images[name] = column if (column >= 0).any() else None
        return self._images[name]

    def named(self, name: str) -> npt.NDArray[np.bool_]:
        """Mark the node of one name."""
        mask = np.zeros(self.count, dtype=np.bool_)
        row = self._names.get(name)
        if row is not None:
            mask[row] = True
        return mask


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
    every amount from here. `released` says that pods which are being released count as gone.
    """

    __slots__ = ("_kept", "allocatable", "index", "non_zero", "pipelined", "released", "releasing", "table", "used")

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
        """Note that a claim, a volume, a storage class or a driver changed: verdicts about pods with volumes are void."""
        self.claims += 1

    def stated(self, constraints: Constraints) -> int:
        """Return a number that grows whenever the objects change from which verdicts about such pods follow."""
        return self.static + self.claims if constraints.has_volumes else self.static

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

    def state(self, row: int) -> bytes:
        """Return all amounts of a row as one key: nodes with equal keys take and score pods alike, as far as amounts decide."""
        return b"".join(
            (
                self.allocatable[row].tobytes(),
                self.used[row].tobytes(),
                self.releasing[row].tobytes(),
                self.pipelined[row].tobytes(),
                self.non_zero[row].tobytes(),
                self.native[row].tobytes(),
            )
        )

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

    def changed_since(self, position: int) -> Rows | None:
        """Return the rows that changed after a position, or None if the log does not reach back so far."""
        if position < self._forgotten:
            return None
        rows = sorted(set(self._changes[position - self._forgotten :]))
        return np.array([row for row in rows if row < self.count], dtype=np.int64)

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
            return Nodes(self, rows, used, non_zero, pipelined + more, released=True)
        non_zero = non_zero + steps[:, None] * np.array(shape.non_zero, dtype=np.int64)
        return Nodes(self, rows, used + more, non_zero, pipelined)
