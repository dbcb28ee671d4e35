"""Sums over all nodes, brought up to date by the rows that changed: on a large cluster a pass over all of them in every cycle would be what a quiet cycle costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pumice.model.resources import Matrix, Vector

CHUNK = 512


class Columns(Protocol):
    """The columns of all nodes, with a log of the rows that changed."""

    allocatable: Matrix
    used: Matrix
    foreign: Matrix
    count: int
    structure: int

    @property
    def position(self) -> int:
        """Where the log is."""

    def changed_since(self, position: int) -> npt.NDArray[np.int64] | None:
        """Return the rows that changed after a position, or None if the log does not reach back so far."""


def _left(table: Columns, rows: slice) -> Matrix:
    """Return what nodes offer less what foreign pods hold there, never below 0."""
    left: Matrix = np.maximum(table.allocatable[rows] - table.foreign[rows], 0)
    return left


AMOUNTS: dict[str, Callable[[Columns, slice], Matrix]] = {
    "offered": lambda table, rows: table.allocatable[rows],
    "taken": lambda table, rows: table.used[rows],
    "left by foreigners": _left,
}


class Totals:
    """The sum of one of the amounts over all nodes, kept in chunks of rows."""

    __slots__ = ("_chunks", "_of", "_position", "_structure", "_table", "_total")

    def __init__(self, table: Columns, of: str) -> None:
        self._table = table
        self._of = of
        self._structure = -1
        self._position = -1
        self._chunks: Matrix = np.zeros((0, 0), dtype=np.int64)
        self._total: Vector = np.zeros(0, dtype=np.int64)

    def vector(self) -> Vector:
        """Return the sum as it is now."""
        table = self._table
        if self._structure == table.structure and self._position == table.position:
            return self._total.copy()
        rows = table.changed_since(self._position) if self._is_near() else None
        if rows is None or len(rows) * CHUNK > table.count:
            self._chunks = self._sums()
        else:
            for chunk in np.flatnonzero(np.bincount(rows // CHUNK)).tolist():
                self._chunks[chunk] = self._sum(chunk * CHUNK)
        self._structure, self._position = table.structure, table.position
        self._total = self._chunks.sum(axis=0)
        return self._total.copy()

    def _is_near(self) -> bool:
        """Tell whether the log of changed rows is worth reading: a long one costs more than the sum of all."""
        table = self._table
        return self._structure == table.structure and (table.position - self._position) * 8 <= table.count

    def _sums(self) -> Matrix:
        """Add every chunk up."""
        amounts = AMOUNTS[self._of](self._table, slice(self._table.count))
        if not len(amounts):
            return np.zeros((1, amounts.shape[1]), dtype=np.int64)
        sums: Matrix = np.add.reduceat(amounts, range(0, len(amounts), CHUNK), axis=0)
        return sums

    def _sum(self, start: int) -> Vector:
        rows = slice(start, min(start + CHUNK, self._table.count))
        found: Vector = AMOUNTS[self._of](self._table, rows).sum(axis=0)
        return found
