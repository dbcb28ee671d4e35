"""How much of what is left of a node's cards is of no use: to each of the kinds that pods usually are, weighted by how usual it is.

All sums are exact: weights are counts of pods, and everything is multiplied by their sum.
"""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Final

from pumice.plugins.fragmentation.points import Points
from pumice.plugins.fragmentation.typical import allows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.plugins.fragmentation.typical import Kind

Left = tuple[int, ...]
"""What is left of each card of a node, in thousandths."""


_MOST: Final = 1 << 18


class Fragments:
    """The fragments of nodes, worked out once for nodes that are alike.

    Of a node's cpu it only matters for which kinds it is enough: its `level` is how many of the amounts that kinds ask for it has, by size. Models matter by the kinds that may use them.
    """

    def __init__(self, kinds: Iterable[tuple[Kind, int]]) -> None:
        self._kinds = sorted((kind, count) for kind, count in kinds)
        self.cpus = sorted({cpu for (cpu, _, _, _), _ in self._kinds})
        self.total = sum(count for _, count in self._kinds)
        self.points = Points(self.total)
        self._classes: dict[tuple[bool, ...], int] = {}
        self._known: dict[tuple[Left, int], list[int]] = {}
        self._useful: list[list[tuple[int, int, int, int]]] = []  # by class of models: level, milli, cards, count

    def model_class(self, model: str | None) -> int:
        """Return a number that models have in common which the same kinds may use; None is a node that does not say its model."""
        allowed = tuple(allows(models, model) for (_, _, _, models), _ in self._kinds)
        found = self._classes.setdefault(allowed, len(self._classes))
        if found == len(self._useful):
            self._useful.append(
                [
                    (bisect.bisect_right(self.cpus, cpu), milli, cards, count)
                    for ((cpu, milli, cards, _), count), may in zip(self._kinds, allowed, strict=True)
                    if milli and may
                ]
            )
        return found

    def level(self, cpu: int) -> int:
        """Return the level of an amount of cpu."""
        return bisect.bisect_right(self.cpus, cpu)

    def of(self, left: Left, models: int, level: int) -> int:
        """Return the fragments of a node, times `total`; the order of its cards does not matter."""
        key = (tuple(sorted(left)), models)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[key] = self._at_all_levels(*key)
        return known[level]

    def _at_all_levels(self, left: Left, models: int) -> list[int]:
        """Take from everything that is left what each kind can use, beginning with the kinds that ask for the least cpu."""
        below = [0, *itertools.accumulate(left)]  # what all the smaller ones have together
        usable = [0] * (len(self.cpus) + 1)
        for level, milli, cards, count in self._useful[models]:
            smaller = bisect.bisect_left(left, milli)
            if len(left) - smaller >= cards:
                usable[level] += count * (below[-1] - below[smaller])
        return [self.total * below[-1] - sum(usable[: level + 1]) for level in range(len(usable))]
