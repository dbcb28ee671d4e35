"""A rank for every node that no set of victims there stays below, worked out for all nodes at once.

The bound is exact where one unit is enough and nobody protects it. Where it takes several, pairs and triples are looked at in a second step, only for the nodes whose
first bound is low enough to matter. A bound may be too low, never too high: whoever is cheapest is found by asking in the order of the bounds.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import unit_columns
from pumice.actions.eviction.unit_columns import DIGIT, join, split

if TYPE_CHECKING:
    from pumice.actions.eviction.unit_columns import Item, UnitColumns
    from pumice.framework.evaluation import Mask
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector

FAR = np.iinfo(np.int64).max
# How many units of a node are put together in threes, how many in twos, and how many sets are looked at together.
THREES = 16
TWOS = 64
TOGETHER = 1 << 20


class Bounds:
    """The bounds of all nodes for one kind of member; `settled` marks those that cannot be made any tighter."""

    def __init__(self, columns: UnitColumns, asked: Vector) -> None:
        self._columns = columns
        self._asked = asked
        size = len(columns.starts)
        self.possible: Mask = np.zeros(size, dtype=np.bool_)
        self.settled: Mask = np.zeros(size, dtype=np.bool_)
        self.priority: Rows = np.zeros(size, dtype=np.int64)
        self.breaks: Mask = np.zeros(size, dtype=np.bool_)
        self.count: Rows = np.zeros(size, dtype=np.int64)
        self.loss: Matrix = np.zeros((size, columns.digits), dtype=np.int64)

    def rank(self, place: int) -> tuple[tuple[int, int], bool, int, int]:
        """Return the bound of one node as a rank."""
        priority = unit_columns.decoded(int(self.priority[place]))
        return priority, bool(self.breaks[place]), int(self.count[place]), join(self.loss[place].tolist())

    def lowest(self, among: Mask, scores: Rows) -> int | None:
        """Return the place of the lowest bound, ties going to the higher score, then to the first name; None if there is none."""
        left = np.flatnonzero(among & self.possible)
        if not len(left):
            return None
        digits = (self.loss[:, digit] for digit in range(self.loss.shape[1]))
        for key in (self.priority, self.breaks, self.count, *digits):
            values = key[left]
            left = left[values == values.min()]
        return int(left[scores[left].argmax()])

    def in_order(self, among: Mask, scores: Rows) -> list[int]:
        """Return places in the order in which `lowest` would give one after the other, down to the first whose bound can be made tighter."""
        left = np.flatnonzero(among & self.possible)
        digits = [self.loss[left, digit] for digit in range(self.loss.shape[1])]
        keys = (self.priority[left], self.breaks[left], self.count[left], *digits, -scores[left])
        ordered = left[np.lexsort(keys[::-1])]
        loose = np.flatnonzero(~self.settled[ordered])
        found: list[int] = ordered[: loose[0] + 1 if len(loose) else None].tolist()
        return found

    # -- one unit ----------------------------------------------------------------------------------------------

    def assess(self, places: Rows, lacking: Matrix, usable: Mask) -> None:
        """Bound nodes by what each lacks and who could go there."""
        if not len(places):
            return
        if len(places) == 1 and self._columns.ends[places[0]] - self._columns.starts[places[0]] <= THREES:
            self._assess_one(int(places[0]), lacking[0], usable)
            return
        c = self._columns
        at, starts, segment = c.spread(places)
        ok, priority, broken, count = usable[at], c.priority[at], c.breaks[at], c.count[at]
        # What no node lacks is no question; one resource at a time is faster than all of them in one matrix.
        short = [lacking[:, place] for place in range(len(self._asked)) if (lacking[:, place] > 0).any()]
        wanted = [column for place, column in enumerate(self._asked.tolist()) if (lacking[:, place] > 0).any()]
        freed = [np.where(ok, c.freed[:, column][at], 0) for column in wanted]
        enough = _running(ok.astype(np.int64), starts, segment) > 0
        covers = ok.copy()
        for given, least in zip(freed, short, strict=True):
            each = least[segment]
            enough &= _running(given, starts, segment) >= each
            covers &= given >= each
        first = np.minimum.reduceat(np.where(enough, np.arange(len(ok)), FAR), starts)
        possible = first < FAR
        highest = np.where(possible, priority[np.where(possible, first, 0)], 0)
        low = ok & (priority <= highest[segment])
        unbroken = low & ~broken
        breaks = ~np.logical_or.reduceat(unbroken, starts)
        for given, least in zip(freed, short, strict=True):
            breaks |= np.add.reduceat(np.where(unbroken, given, 0), starts) < least
        # Where no gang is broken one pod is enough or it takes two; otherwise one of the gangs goes, be it enough or not.
        alone = unbroken & covers & (count == 1)
        gangs = low & broken
        fewest = np.minimum.reduceat(np.where(gangs, count, FAR), starts)
        gangs &= count == fewest[segment]
        chosen = np.where(breaks[segment], gangs, alone)
        loss, cheapest = _least(c.loss[at], chosen, starts, segment)
        single = np.logical_or.reduceat(alone, starts)
        self.possible[places] = possible
        self.priority[places] = highest
        self.breaks[places] = breaks
        self.count[places] = np.where(breaks, fewest, np.where(single, 1, 2))
        self.loss[places] = np.where((breaks | single)[:, None], loss, 0)
        self.settled[places] = np.where(breaks, np.logical_or.reduceat(cheapest & covers, starts), single)

    def _assess_one(self, place: int, lacking: Vector, usable: Mask) -> None:
        """Bound one node in the same way: few units are looked through sooner than columns."""
        c = self._columns
        start, end = int(c.starts[place]), int(c.ends[place])
        listed = [c.items[at] for at, ok in enumerate(usable[start:end].tolist(), start) if ok]
        items = [item for item in listed if item is not None]
        wanted = zip(self._asked.tolist(), lacking.tolist(), strict=True)
        short = [(column, least) for column, least in wanted if least > 0]
        # Pods of one shape give back the same vector.
        known: dict[int, bool] = {}

        def is_enough(item: Item) -> bool:
            key = id(item.freed)
            if key not in known:
                known[key] = are_enough(item)
            return known[key]

        def are_enough(*some: Item) -> bool:
            return bool(some) and all(sum(item.freed[column] for item in some) >= least for column, least in short)

        if items and is_enough(items[0]):
            last: Item | None = items[0]
        else:
            last = next((item for at, item in enumerate(items, 1) if are_enough(*items[:at])), None)
        self.possible[place] = last is not None
        if last is None:
            return
        low = [item for item in items if item.priority <= last.priority]
        unbroken = [item for item in low if not item.breaks]
        alone = [item for item in unbroken if item.count == 1 and is_enough(item)]
        breaks = not alone and not are_enough(*unbroken)
        count = min(item.count for item in low if item.breaks) if breaks else 1 if alone else 2
        chosen = [item for item in low if item.breaks and item.count == count] if breaks else alone
        loss = min((item.loss for item in chosen), default=0)
        self.priority[place] = last.priority
        self.breaks[place] = breaks
        self.count[place] = count
        self.loss[place] = split(loss, c.digits)
        self.settled[place] = any(item.loss == loss and is_enough(item) for item in chosen)

    # -- two or three ------------------------------------------------------------------------------------------

    def tighten(self, places: Rows, lacking: Matrix, usable: Mask) -> None:
        """Look at the sets of two and three units on nodes where one is not enough."""
        c = self._columns
        at, starts, segment = c.spread(places)
        fit = usable[at] & (c.priority[at] <= self.priority[places][segment])
        fit &= ~c.breaks[at] | self.breaks[places][segment]
        numbers = np.add.reduceat(fit.astype(np.int64), starts)
        units = np.flatnonzero(fit) if isinstance(at, slice) else at[fit]
        ends = np.cumsum(numbers)
        for number in np.unique(numbers).tolist():
            same = np.flatnonzero(numbers == number)
            sizes = [size for size in (1, 2, 3) if size <= number <= (TWOS, TWOS, THREES)[size - 1]]
            if not sizes:
                continue
            step = max(1, TOGETHER // sum(len(_combinations(number, size)) for size in sizes))
            for begin in range(0, len(same), step):
                part = same[begin : begin + step]
                table = units[(ends[part] - number)[:, None] + np.arange(number)]
                self._tighten_alike(places[part], table, lacking[part], sizes)
        self.settled[places] = True

    def _tighten_alike(self, places: Rows, table: Matrix, lacking: Matrix, sizes: list[int]) -> None:
        """Bound nodes with equally many units: by the best set of the sizes that are looked at, or by the least that a larger one costs."""
        larger = table.shape[1] > sizes[-1]
        fewest = np.where(self.breaks[places], self.count[places] + sizes[-1], sizes[-1] + 1)
        counts: Rows = np.where(larger, fewest, FAR)
        losses = np.zeros((len(places), self._columns.digits), dtype=np.int64)
        for size in sizes:
            # So many units are at least as many pods: where fewer do, no such set is better.
            open_ = np.flatnonzero(counts >= size)
            if not len(open_):
                break
            least, found = self._best_sets(table[open_], lacking[open_], size)
            better = (least < counts[open_]) | ((least == counts[open_]) & (least < FAR) & _below(found, losses[open_]))
            counts[open_] = np.where(better, least, counts[open_])
            losses[open_] = np.where(better[:, None], found, losses[open_])
        self.possible[places] &= counts < FAR
        self.count[places] = counts
        self.loss[places] = losses

    def _best_sets(self, table: Matrix, lacking: Matrix, size: int) -> tuple[Rows, Matrix]:
        """Return how many pods the best set of so many units has on each of some nodes, and what is lost with it; of nodes where none is enough, a number beyond all."""
        c = self._columns
        sets = table[:, _combinations(table.shape[1], size)]
        fits = np.ones(sets.shape[:2], dtype=np.bool_)
        for place, column in enumerate(self._asked.tolist()):
            least_given = lacking[:, place]
            if (least_given > 0).any():
                fits &= c.freed[:, column][sets].sum(axis=2) >= least_given[:, None]
        number = np.where(fits, c.count[sets].sum(axis=2), FAR)
        loss = _carried(c.loss[sets].sum(axis=2))
        least: Rows = number.min(axis=1)
        keep = fits & (number == least[:, None])
        digits = []
        for digit in range(c.digits):
            values = np.where(keep, loss[:, :, digit], FAR)
            lowest = values.min(axis=1)
            keep &= values == lowest[:, None]
            digits.append(lowest)
        return least, np.stack(digits, axis=1)


def _running(values: Matrix, starts: Rows, segment: Rows) -> Matrix:
    """Add up values along each segment."""
    sums = np.cumsum(values, axis=0)
    before = sums[starts] - values[starts]
    running: Matrix = sums - before[segment]
    return running


def _least(digits: Matrix, among: Mask, starts: Rows, segment: Rows) -> tuple[Matrix, Mask]:
    """Return the least number of each segment, digit by digit, and who has it."""
    found = np.zeros((len(starts), digits.shape[1]), dtype=np.int64)
    keep = among
    for digit in range(digits.shape[1]):
        values = np.where(keep, digits[:, digit], FAR)
        found[:, digit] = np.minimum.reduceat(values, starts)
        keep = keep & (values == found[:, digit][segment])
    return found, keep


def _carried(digits: Matrix) -> Matrix:
    """Bring digits that were added up back below their limit."""
    for digit in range(digits.shape[-1] - 1, 0, -1):
        digits[..., digit - 1] += digits[..., digit] >> DIGIT
        digits[..., digit] &= (1 << DIGIT) - 1
    return digits


def _below(left: Matrix, right: Matrix) -> Mask:
    """Compare numbers digit by digit."""
    below = np.zeros(len(left), dtype=np.bool_)
    equal = np.ones(len(left), dtype=np.bool_)
    for digit in range(left.shape[1]):
        below |= equal & (left[:, digit] < right[:, digit])
        equal &= left[:, digit] == right[:, digit]
    return below


@functools.lru_cache(maxsize=256)
def _combinations(number: int, size: int) -> Matrix:
    return np.array(list(itertools.combinations(range(number), size)), dtype=np.int64).reshape(-1, size)
