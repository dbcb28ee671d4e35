"""What nodes will answer by their own amounts with more equal tasks on them, and how scores are rounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pumice.framework.evaluation import Evaluation
    from pumice.framework.vectors import Floats, Mask
    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.shape import Shape

# Scores are rounded to thousandths before ties are broken, so that floating-point noise never decides.
PRECISION = 1000
TABLE_LIMIT = 1 << 18
# How many rows are looked at together, at the least and at the most, and how many steps of one row.
BATCH = 64
LARGE_BATCH = 512
DEPTH = 64


def rounded(scores: Floats) -> npt.NDArray[np.int64]:
    """Return scores in whole thousandths."""
    return np.rint(scores * PRECISION).astype(np.int64)


def capacity(table: NodeTable, rows: Rows, shape: Shape, limit: int, *, released: bool) -> npt.NDArray[np.int64]:
    """Return how many more tasks of a shape each row has room for, at most `limit`."""
    request = shape.request
    free = table.idle_at(rows)
    later = table.after_release(free, rows)
    room = later if released else np.minimum(free, later)
    positive = request.asked[request.needed > 0]
    if not len(positive):
        return np.full(len(rows), limit, dtype=np.int64)
    fits = (room[:, positive] // request.vector[positive]).min(axis=1)
    clipped: npt.NDArray[np.int64] = np.minimum(np.maximum(fits, 0), limit)
    return clipped


class Foresight:
    """What nodes answer by their own amounts with one, two, three more of these tasks on them."""

    __slots__ = ("_allowed", "_batch", "_capacity", "_evaluation", "_known", "_released", "_table", "_taken")

    def __init__(
        self,
        evaluation: Evaluation,
        table: NodeTable,
        allowed: Mask,
        likely: Rows,
        count: int,
        *,
        steps: int,
        released: bool,
    ) -> None:
        self._evaluation = evaluation
        self._table = table
        self._allowed = allowed
        self._released = released
        self._batch = min(max(BATCH, count // 8), LARGE_BATCH)
        self._taken: dict[int, int] = {}
        self._capacity: dict[int, int] = {}
        self._known: dict[
            int, list[float | None]
        ] = {}  # scores with one, two, three more, as far as they were looked at
        self._look_around(likely, steps)

    def take(self, row: int) -> float | None:
        """Put one more task on a row; returns its score from then on, None if it takes no more."""
        taken = self._taken[row] = self._taken.get(row, 0) + 1
        known = self._known.get(row)
        if known is None:
            self._look_around(self._neighbours(row))
            known = self._known[row]
        if taken > len(known):
            if taken >= self._capacity[row]:
                return None
            self._look_deeper(row, taken)
        return known[taken - 1]

    def _look_deeper(self, row: int, taken: int) -> None:
        """Look further ahead on a row, and one step on those that may be next: what comes to one comes to those that are like it."""
        others = [
            other
            for other in self._after(row)
            if len(self._known.get(other, ())) == taken - 1 and self._capacity.get(other, 0) > taken
        ]
        lengths = np.ones(1 + len(others), dtype=np.int64)
        lengths[0] = min(DEPTH, self._capacity[row] - taken)
        self._look(np.array([row, *others], dtype=np.int64), taken, lengths)

    def _neighbours(self, row: int) -> Rows:
        """Return a row that turned out to be chosen and some that may be next: many nodes alike are chosen in the order of names."""
        return np.array([row, *(other for other in self._after(row) if other not in self._known)], dtype=np.int64)

    def _after(self, row: int) -> list[int]:
        rows: list[int] = (np.flatnonzero(self._allowed[row + 1 : row + 1 + self._batch]) + row + 1).tolist()
        return rows

    def _look_around(self, rows: Rows, steps: int = 1) -> None:
        """Look some steps ahead on rows, as far as they have room."""
        room = capacity(self._table, rows, self._evaluation.subject.shape, TABLE_LIMIT, released=self._released)
        self._capacity.update(zip(rows.tolist(), room.tolist(), strict=True))
        self._look(rows, 1, np.clip(room - 1, 0, steps))

    def _look(self, rows: Rows, first: int, lengths: Rows) -> None:
        """Look at each row with so many more tasks on it and with more, one by one, as many times as is said beside it."""
        ends = np.cumsum(lengths)
        scores: list[float | None] = []
        if ends.any():
            starts = np.repeat(ends - lengths - first, lengths)
            points, passed = self._evaluation.foreseen(
                np.repeat(rows, lengths), np.arange(len(starts)) - starts, released=self._released
            )
            scores = points.tolist()
            if passed is not None:
                scores = [score if fits else None for score, fits in zip(scores, passed.tolist(), strict=True)]
        begin = 0
        for row, end in zip(rows.tolist(), ends.tolist(), strict=True):
            self._known.setdefault(row, []).extend(scores[begin:end])
            begin = end


def likely_rows(plain: Floats, allowed: Mask, count: int) -> Rows:
    """Return the rows with the best scores, some more than are asked for."""
    rows = np.flatnonzero(allowed)
    count = max(BATCH, count)
    if len(rows) <= count:
        return rows
    keys = rounded(plain[rows]) * len(rows) + np.arange(len(rows) - 1, -1, -1)
    likely: Rows = rows[np.argpartition(keys, len(rows) - count)[len(rows) - count :]]
    return likely
