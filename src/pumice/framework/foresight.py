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
        self._known: dict[tuple[int, int], float | None] = {}
        self._look_around(likely, steps)

    def take(self, row: int) -> float | None:
        """Put one more task on a row; returns its score from then on, None if it takes no more."""
        taken = self._taken[row] = self._taken.get(row, 0) + 1
        if row not in self._capacity:
            self._look_around(self._neighbours(row))
        if taken >= self._capacity[row]:
            return None
        if (row, taken) not in self._known:
            self._look_deeper(row, taken)
        return self._known[row, taken]

    def _look_deeper(self, row: int, taken: int) -> None:
        """Look further ahead on a row, and one step on those that may be next: what comes to one comes to those that are like it."""
        ahead = np.arange(taken, min(taken + DEPTH, self._capacity[row]), dtype=np.int64)
        after = (np.flatnonzero(self._allowed[row + 1 : row + 1 + self._batch]) + row + 1).tolist()
        others = [
            other for other in after if self._capacity.get(other, 0) > taken and (other, taken) not in self._known
        ]
        rows = np.concatenate([np.full(len(ahead), row, dtype=np.int64), np.array(others, dtype=np.int64)])
        self._look(rows, np.concatenate([ahead, np.full(len(others), taken, dtype=np.int64)]))

    def _neighbours(self, row: int) -> Rows:
        """Return a row that turned out to be chosen and some that may be next: many nodes alike are chosen in the order of names."""
        after = np.flatnonzero(self._allowed[row + 1 : row + 1 + self._batch]) + row + 1
        new = [other for other in after.tolist() if other not in self._capacity]
        return np.array([row, *new], dtype=np.int64)

    def _look_around(self, rows: Rows, steps: int = 1) -> None:
        """Look some steps ahead on rows, as far as they have room."""
        room = capacity(self._table, rows, self._evaluation.subject.shape, TABLE_LIMIT, released=self._released)
        self._capacity.update(zip(rows.tolist(), room.tolist(), strict=True))
        lengths = np.clip(room - 1, 0, steps)
        starts = np.cumsum(lengths) - lengths
        repeated = np.repeat(rows, lengths)
        if len(repeated):
            self._look(repeated, np.arange(1, len(repeated) + 1) - np.repeat(starts, lengths))

    def _look(self, rows: Rows, steps: Rows) -> None:
        points, passed = self._evaluation.foreseen(rows, steps, released=self._released)
        scores = points.tolist()
        keys = zip(rows.tolist(), steps.tolist(), strict=True)
        if passed is None:
            self._known.update(zip(keys, scores, strict=True))
        else:
            for key, score, fits in zip(keys, scores, passed.tolist(), strict=True):
                self._known[key] = score if fits else None


def likely_rows(plain: Floats, allowed: Mask, count: int) -> Rows:
    """Return the rows with the best scores, some more than are asked for."""
    rows = np.flatnonzero(allowed)
    count = max(BATCH, count)
    if len(rows) <= count:
        return rows
    keys = rounded(plain[rows]) * len(rows) + np.arange(len(rows) - 1, -1, -1)
    likely: Rows = rows[np.argpartition(keys, len(rows) - count)[len(rows) - count :]]
    return likely
