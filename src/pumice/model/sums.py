"""Sums of resources for things that come and go: one row each for jobs and for queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pumice.model.resources import Matrix, Vector, Vocabulary


def add_times(total: Vector, vector: Vector, times: int) -> None:
    """Add a vector to another, in place, a number of times; asked for every step of every task, mostly once or minus once."""
    if times == 1:
        total += vector
    elif times == -1:
        total -= vector
    else:
        total += vector * times


class Sums:
    """Rows of four sums: the requests of allocated, of pending and of pipelined tasks, and of those whose eviction was sent and not heeded yet."""

    __slots__ = ("_free", "_used", "_vocabulary", "allocated", "evicting", "pending", "pipelined")

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._free: list[int] = []
        self._used = 0
        self.allocated: Matrix = np.zeros((64, len(vocabulary)), dtype=np.int64)
        self.pending: Matrix = np.zeros((64, len(vocabulary)), dtype=np.int64)
        self.pipelined: Matrix = np.zeros((64, len(vocabulary)), dtype=np.int64)
        self.evicting: Matrix = np.zeros((64, len(vocabulary)), dtype=np.int64)

    def take(self) -> int:
        """Return a row that nobody has."""
        if self._free:
            return self._free.pop()
        row = self._used
        self._used += 1
        if row == len(self.allocated):
            self._reshape(2 * row)
        return row

    def give_back(self, row: int) -> None:
        """Leave a row to the next one who needs it: whoever had it has nothing left, so that it comes to zeros with what is still to be entered."""
        self._free.append(row)

    def widen(self) -> None:
        """Follow the vocabulary, and start counting anew."""
        self._reshape(len(self.allocated))
        for matrix in (self.allocated, self.pending, self.pipelined, self.evicting):
            matrix[:] = 0

    def held(self, row: int) -> Vector:
        """Return what counts as taken in the middle of a cycle: allocated, or waiting for room that is being released."""
        taken: Vector = self.allocated[row] + self.pipelined[row]
        return taken

    def _reshape(self, rows: int) -> None:
        for attribute in ("allocated", "pending", "pipelined", "evicting"):
            old: Matrix = getattr(self, attribute)
            new = np.zeros((rows, len(self._vocabulary)), dtype=np.int64)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, attribute, new)


class QueueSums(Sums):
    """Sums by the name of a queue; a name has a row while anybody uses it: the queue itself, or a job that names it, whether or not it exists."""

    __slots__ = ("_users", "changes", "rows")

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.rows: dict[str, int] = {}
        self._users: dict[str, int] = {}
        # The rows that steps of the cycle have changed, in order: whoever derives something from the sums follows it from where it last looked.
        self.changes: list[int] = []

    def join(self, name: str) -> int:
        """Use a name once more, and return its row."""
        self._users[name] = self._users.get(name, 0) + 1
        if name not in self.rows:
            self.rows[name] = self.take()
        return self.rows[name]

    def part(self, name: str) -> None:
        """Use a name once less; the last one gives its row back."""
        self._users[name] -= 1
        if not self._users[name]:
            del self._users[name]
            self.give_back(self.rows.pop(name))

    def carry(self, name: str, other: Sums, row: int, sign: int) -> None:
        """Add a row of other sums to those of a queue, or take it away."""
        own = self.rows[name]
        self.allocated[own] += sign * other.allocated[row]
        self.pending[own] += sign * other.pending[row]
        self.pipelined[own] += sign * other.pipelined[row]
        self.evicting[own] += sign * other.evicting[row]
