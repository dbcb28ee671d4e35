"""The choice among the nodes that are left where most of them are like others: one node of each kind is looked at.

Nodes that score the same by their own amounts and that every follower treats alike are of one kind. They stay so until one of them is chosen, which is a
kind of its own from then on; the first by name stands for the others. Gangs behind services on 5,000 nodes (`bench/affinity.py`) are chosen for 1.6 times as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.framework.followers import Alike
from pumice.framework.foresight import PRECISION

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.followers import Followers
    from pumice.model.nodes import Rows

# From how many tasks on it pays to find kinds, and how many nodes must be of each on average.
WORTHWHILE = 8
ALIKE = 4
_MOST = 2**62


def find(plain: Floats, fixed: Mask, followers: Followers, count: int) -> KindChoice | None:
    """Return the choice by kinds for so many tasks; None if some follower cannot say what it treats alike, or nodes differ too much."""
    if count < WORTHWHILE:
        return None
    rows = np.flatnonzero(fixed)
    columns = [plain[rows]]
    for each in (*followers.refusing, *followers.rating):
        if not isinstance(each, Alike):
            return None
        columns += [column[rows] for column in each.alike()]
    kinds = sorted_by_kind(columns)
    if kinds is None or ALIKE * len(kinds[1]) > len(rows):
        return None
    order, begins = kinds
    return KindChoice(plain, rows[order], begins, followers, count)


def sorted_by_kind(columns: Sequence[npt.NDArray[Any]]) -> tuple[Rows, Rows] | None:
    """Return places in an order in which those that are equal in all columns stand together, each kind in its own order, and where kinds begin.

    None where there are too many values to tell apart.
    """
    size = len(columns[0])
    marks, values = np.zeros(size, dtype=np.int64), 1
    for column in columns:
        if column.dtype.kind == "f":
            found, numbers = np.unique(column, return_inverse=True)
            span = len(found)
        else:
            low = int(column.min(initial=0))
            numbers, span = column - low if low else column, int(column.max(initial=0)) - low + 1
        if values * span * max(size, 1) >= _MOST:
            return None
        marks, values = marks * span + numbers, values * span
    packed = marks * size + np.arange(size)
    packed.sort()
    marks = packed // size if size else packed
    begins = np.flatnonzero(np.append(True, marks[1:] != marks[:-1])) if size else packed
    return packed - marks * size, begins


class KindChoice:
    """The choice among kinds of nodes."""

    __slots__ = (
        "_alive",
        "_chosen",
        "_followers",
        "_live",
        "_nexts",
        "_plain",
        "_rows",
        "_sizes",
        "_sorted",
        "number",
    )

    def __init__(self, plain: Floats, ordered: Rows, begins: Rows, followers: Followers, count: int) -> None:
        self._followers = followers
        self._sorted = ordered
        number = self.number = len(begins)
        # There is room for every row that is chosen and so becomes a kind of its own.
        room = number + count
        self._nexts: list[int] = (begins + 1).tolist()
        self._rows: Rows = np.zeros(room, dtype=np.int64)
        self._sizes: Rows = np.zeros(room, dtype=np.int64)
        self._plain: Floats = np.zeros(room)
        self._alive: Mask = np.zeros(room, dtype=np.bool_)
        self._rows[:number] = ordered[begins]
        self._sizes[:number] = np.diff(begins, append=len(ordered))
        self._plain[:number] = plain[self._rows[:number]]
        self._alive[:number] = True
        self._live: Rows | None = None
        self._chosen = -1

    def best(self) -> int | None:
        """Return the row with the highest score, the first among equals; None if no row is left."""
        live = self._live
        if live is None:
            live = self._live = self._look()
        if not len(live):
            return None
        rows = self._rows[live]
        scores = self._plain[live]
        for follower in self._followers.rating:
            scores += follower.points(rows, self._sizes[live])
        scores *= PRECISION
        np.rint(scores, out=scores)
        ties = (scores == scores[scores.argmax()]).nonzero()[0]
        place = ties[rows[ties].argmin()] if len(ties) > 1 else ties[0]
        self._chosen = int(live[place])
        return int(rows[place])

    def _look(self) -> Rows:
        """Find the kinds that take the next task."""
        live = self._alive[: self.number].nonzero()[0]
        refused = self._followers.refuses(self._rows[live])
        return live if refused is None else live[~refused]

    def place(self, row: int, points: float | None) -> None:
        """Put a task on the row that was chosen last, which scores so much from then on; None if it takes no more."""
        kind = self._chosen
        if self._sizes[kind] > 1:
            self._rows[kind] = self._sorted[self._nexts[kind]]
            self._nexts[kind] += 1
            self._sizes[kind] -= 1
            if points is not None:
                kind = self.number
                self.number += 1
                self._rows[kind], self._sizes[kind], self._alive[kind] = row, 1, True
                self._live = None
        elif points is None:
            self._alive[kind] = False
            self._live = None
        if points is not None:
            self._plain[kind] = points
        for score in self._followers.rating:
            score.place(row)
        for filter_ in self._followers.refusing:
            if filter_.place(row) is not None:
                self._live = None
