"""What Node objects say, as columns beside the sums of the table."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from pumice.api import core
    from pumice.model.resources import Vector


class Stated(Protocol):
    """What one Node object says."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[core.Taint, ...]
    unschedulable: bool
    ready: bool
    images: dict[str, int]


class Attributes:
    """What Node objects say, as columns: labels as integer codes (one column per key that was asked for), taints, states."""

    __slots__ = ("_columns", "_images", "_names", "_records", "cordoned", "count", "derived", "not_ready", "taints")

    def __init__(self, records: Sequence[Stated], count: int) -> None:
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
