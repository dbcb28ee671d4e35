"""Sums of resources for things that come and go: one row each for jobs and for queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pumice.model.resources import Matrix, Vector, Vocabulary


class Sums:
    """Rows of three sums: the requests of allocated, of pending and of pipelined tasks."""

    __slots__ = ("_free", "_used", "_vocabulary", "allocated", "pending", "pipelined")

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._free: list[int] = []
        self._used = 0
        self.allocated: Matrix = np.zeros((64, len(vocabulary)), dtype=np.int64)
        self.pending: Matrix = np.zeros((64, len(vocabulary)), dtype=np.int64)
        self.pipelined: Matrix = np.zeros((64, len(vocabulary)), dtype=np.int64)

    def take(self) -> int:
        """Return a row of zeros."""
        if self._free:
            return self._free.pop()
        row = self._used
        self._used += 1
        if row == len(self.allocated):
            self._reshape(2 * row)
        return row

    def give_back(self, row: int) -> None:
        """Clear a row for the next one who needs it."""
        for matrix in (self.allocated, self.pending, self.pipelined):
            matrix[row] = 0
        self._free.append(row)

    def widen(self) -> None:
        """Follow the vocabulary, and start counting anew."""
        self._reshape(len(self.allocated))
        for matrix in (self.allocated, self.pending, self.pipelined):
            matrix[:] = 0

    def held(self, row: int) -> Vector:
        """Return what counts as taken in the middle of a cycle: allocated, or waiting for room that is being released."""
        taken: Vector = self.allocated[row] + self.pipelined[row]
        return taken

    def _reshape(self, rows: int) -> None:
        for attribute in ("allocated", "pending", "pipelined"):
            old: Matrix = getattr(self, attribute)
            new = np.zeros((rows, len(self._vocabulary)), dtype=np.int64)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, attribute, new)


def add_vector(matrix: Matrix, row: int, vector: Vector, times: int) -> None:
    """Add a vector to one row, a number of times."""
    matrix[row] += vector if times == 1 else vector * times
