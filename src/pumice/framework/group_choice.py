"""The choice among the nodes that are left where all that compares them gives the nodes of a group the same.

Of each group only the highest score counts until a group is chosen; then its nodes are looked at one by one. As long as no other group can have become better, the
next tasks are chosen in the same group without looking at the others. A gang without a topology beside the network plugin (`bench/topology.py`) is chosen for 4.6 times as fast, 2.2 times by the latter alone.
"""

from __future__ import annotations

import bisect
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.foresight import PRECISION
from pumice.framework.node_choice import Choosing

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.followers import Followers, Gaining, Grouped
    from pumice.framework.foresight import Foresight
    from pumice.model.nodes import Rows

GONE = -math.inf
# How many thousandths a group must be ahead to stay so, and how far scores must be apart, so that no rounding matters.
AHEAD = 3
APART = 0.002
# Of how many groups that are equally good the first row is looked for in one after the other.
FEW = 8


class GroupChoice(Choosing):
    """The choice among groups of nodes."""

    __slots__ = (
        "_bounds",
        "_firsts",
        "_highest",
        "_ladders",
        "_places",
        "_rating",
        "_rival",
        "_rows",
        "_scores",
        "_sizes",
        "_sums",
        "_tops",
    )

    def __init__(self, plain: Floats, fixed: Mask, allowed: Mask, followers: Followers, rating: Grouped) -> None:
        super().__init__(plain, fixed, followers)
        self._rating = rating
        # Rows in the order of groups, where each stands in it, and the scores of those that are left.
        self._rows = np.argsort(rating.groups, kind="stable")
        self._places = np.argsort(self._rows, kind="stable")
        self._sizes: Rows = np.bincount(rating.groups, minlength=len(rating.values))
        ends = np.cumsum(self._sizes)
        begins = ends - self._sizes
        self._bounds: list[tuple[int, int]] = list(zip(begins.tolist(), ends.tolist(), strict=True))
        self._scores = np.where(allowed, plain, -np.inf)[self._rows]
        self._tops = np.maximum.reduceat(self._scores, begins) if len(self._rows) else np.zeros(0)
        self._sums = np.zeros(len(self._tops))
        self._firsts = self._rows[begins] if len(self._rows) else self._rows
        # What the best group came to, and the best of the others, in thousandths.
        self._highest = self._rival = GONE
        self._ladders: dict[int, Ladder] = {}

    def best(self) -> int | None:
        """Return the row with the highest score, the first among equals; None if no row is left."""
        group = self._leading()
        return None if group is None else self._first_of(group)

    def _leading(self) -> int | None:
        """Return the group of the row with the highest score, the first among equals; None if no row is left."""
        if not len(self._tops):
            return None
        keys = _keys(self._tops, self._rating.values, self._sums)
        group = int(keys.argmax())
        highest = self._highest = keys[group]
        if highest == GONE:
            return None
        keys[group] = GONE
        self._rival = keys[keys.argmax()]
        if self._rival < highest:
            return group
        keys[group] = highest
        return self._earliest(np.flatnonzero(keys == highest))

    def _earliest(self, groups: Rows) -> int:
        """Return which of several groups that have the highest score has it at the first row."""
        begins = self._firsts[groups]
        best = int(groups[begins.argmin()])
        found = self._first_of(best)
        before = groups[begins < found]
        if len(before) > FEW:
            self._write_down()
            spread = np.repeat(self._rating.values, self._sizes)
            row = self._rows[_keys(self._scores, spread, spread) == self._highest].min()
            return int(self._rating.groups[row])
        first, group = (
            min((self._first_of(group), group) for group in before.tolist()) if len(before) else (found, best)
        )
        return group if first < found else best

    def _first_of(self, group: int) -> int:
        """Return the first row of a group whose score is the highest."""
        ladder = self._ladders.get(group)
        if ladder is not None:
            return ladder.first(float(self._rating.values[group]))[0]
        begin, end = self._bounds[group]
        inside = _keys(self._scores[begin:end], self._rating.values[group])
        return int(self._rows[begin + int((inside == self._highest).argmax())])

    def reconsider(self, row: int, *, fits: bool) -> None:
        """Take over a changed score of a row, and whether it takes more."""
        self._scores[self._places[row]] = self._plain[row] if fits else -np.inf
        self._look_again(int(self._rating.groups[row]))

    def refuse(self, rows: Rows, refused: Mask) -> None:
        """Take over changed verdicts of rows."""
        self._scores[self._places[rows]] = np.where(refused, -np.inf, self._plain[rows])
        for group in np.unique(self._rating.groups[rows]).tolist():
            self._look_again(group)

    def _look_again(self, group: int) -> None:
        begin, end = self._bounds[group]
        self._tops[group] = self._scores[begin:end].max()

    # -- many in one group -------------------------------------------------------------------------------------

    def choose(self, rating: Gaining, foresight: Foresight, count: int) -> list[int]:
        """Return the rows for up to `count` tasks, in order, where there is nothing else to follow."""
        chosen: list[int] = []
        while len(chosen) < count and (group := self._leading()) is not None:
            ladder = self._ladders.get(group)
            if ladder is None:
                begin, end = self._bounds[group]
                ladder = self._ladders[group] = Ladder(self._rows[begin:end], self._scores[begin:end])
            chosen += self._go_on(rating, group, ladder, foresight, count - len(chosen))
            self._tops[group] = ladder.top
        return chosen

    def _write_down(self) -> None:
        """Take over the scores that rows have on their ladders."""
        for ladder in self._ladders.values():
            self._scores[self._places[list(ladder.moved)]] = list(ladder.moved.values())
            ladder.moved.clear()

    def _go_on(self, rating: Gaining, group: int, ladder: Ladder, foresight: Foresight, count: int) -> list[int]:
        """Return the rows of the group that was chosen for the next tasks, at least one, until another group may be better."""
        points, rival = float(rating.values[group]), float(self._rival)
        chosen: list[int] = []
        while ladder.top > GONE and len(chosen) < count:
            is_ahead = ladder.key(points) > rival + AHEAD
            if chosen and not is_ahead:
                break
            # A group that is ahead stays so as long as its points rise by what those of others do, or more; what comes after the last task does not matter to it.
            most = min(count - len(chosen), rating.rising(group) + 1) if is_ahead else 1
            rows = ladder.climb(points, most, foresight)
            chosen += rows
            own, others = rating.advance(group, len(rows))
            points += own
            rival += others * PRECISION
        rating.settle()
        return chosen


class Ladder:
    """The rows of a group that are left, by their scores: those that score the same stand on one rung."""

    __slots__ = ("_rungs", "_scores", "moved")

    def __init__(self, rows: Rows, scores: Floats) -> None:
        self._rungs: dict[float, list[int]] = {}
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            self._rungs.setdefault(score, []).append(row)
        self._rungs.pop(GONE, None)
        self._scores = sorted(self._rungs)
        # The scores of rows that were chosen, minus infinity of those that take no more.
        self.moved: dict[int, float] = {}

    @property
    def top(self) -> float:
        """The highest score, minus infinity if no row is left."""
        return self._scores[-1] if self._scores else GONE

    def key(self, points: float) -> int:
        """Return the highest score with the points of the group, in thousandths."""
        return round((self._scores[-1] + points) * PRECISION)

    def climb(self, points: float, most: int, foresight: Foresight) -> list[int]:
        """Choose rows that come one after the other however the points of the group rise meanwhile, at least one; the scores that they have from then on are looked up."""
        top = self._scores[-1]
        if len(self._scores) > 1 and self._scores[-2] > top - APART:
            row, score = self.first(points)
            self._rungs[score].remove(row)
            self._put(row, foresight.take(row))
            self._clear(score)
            return [row]
        rung = self._rungs[top]
        rung.sort()
        chosen: list[int] = []
        left = 0
        for row in rung[:most]:
            after: float | None = top
            while after == top and len(chosen) < most:
                # One that scores the same with the task on it comes first again.
                chosen.append(row)
                after = foresight.take(row)
            left += 1
            self._put(row, after)
            if len(chosen) == most or (after is not None and after > top - APART):
                break
        del rung[:left]
        self._clear(top)
        return chosen

    def first(self, points: float) -> tuple[int, float]:
        """Return the first of the rows that have the highest score when it is rounded with the points of the group, and its score."""
        key = self.key(points)
        alike = itertools.takewhile(lambda s: round((s + points) * PRECISION) == key, reversed(self._scores))
        return min((min(self._rungs[score]), score) for score in alike)

    def _put(self, row: int, score: float | None) -> None:
        """Put a row on the rung of its score; None if it takes no more."""
        self.moved[row] = GONE if score is None else score
        if score is None:
            return
        if score not in self._rungs:
            self._rungs[score] = []
            bisect.insort(self._scores, score)
        self._rungs[score].append(row)

    def _clear(self, score: float) -> None:
        """Take a rung away if nobody stands on it."""
        if not self._rungs[score]:
            del self._rungs[score]
            self._scores.pop(bisect.bisect_left(self._scores, score))


def _keys(scores: Floats, points: Floats, out: Floats | None = None) -> Floats:
    """Return sums in whole thousandths, as floats."""
    sums = np.add(scores, points, out=out)
    sums *= PRECISION
    return np.rint(sums, out=sums)
