"""Histograms that cost those who measure next to nothing: values are counted when somebody scrapes, or when many have come.

A bound pod is measured half a dozen times. Appending a number to a queue takes a tenth of what finding its bucket under a lock does, and can be done by any thread.
"""

from __future__ import annotations

import bisect
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from pumice.server.metrics import series

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST: Final = 512  # values that wait to be counted


class Histogram:
    """The distribution of one measured quantity."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._waiting: deque[float] = deque()
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Take note of a value, from any thread."""
        waiting = self._waiting
        waiting.append(value)
        if len(waiting) >= MOST:
            self._count()

    def _count(self) -> None:
        with self._lock:
            for _ in range(len(self._waiting)):  # nobody else takes any
                value = self._waiting.popleft()
                self._counts[bisect.bisect_left(self._bounds, value)] += 1
                self._sum += value

    def totals(self) -> tuple[list[int], float]:
        """Return how many values are at most each bound, the last of which is infinite, and their sum."""
        self._count()
        with self._lock:
            running, cumulative = 0, []
            for count in self._counts:
                running += count
                cumulative.append(running)
            return cumulative, self._sum


class Histograms:
    """All histograms of a table, by name and labels; one without labels is there from the start."""

    def __init__(self, table: Sequence[series.Series]) -> None:
        self._table = {each.name: each for each in table if each.type == "histogram"}
        self._bounds = {name: series.bounds(each) for name, each in self._table.items()}
        self._made: dict[str, dict[tuple[str, ...], Histogram]] = {name: {} for name in self._table}
        for name, each in self._table.items():
            if not each.labels:
                self.find(name)

    def find(self, name: str, *labels: str) -> Histogram:
        """Return the histogram of a name and labels, made if need be."""
        if len(labels) != len(self._table[name].labels):
            raise ValueError(
                f"{name} has the labels {', '.join(self._table[name].labels) or 'none'}, not {len(labels)}"
            )
        return self._made[name].setdefault(labels, Histogram(self._bounds[name]))

    def all(self) -> Iterator[tuple[series.Series, Sequence[float], list[tuple[tuple[str, ...], Histogram]]]]:
        """Give each series with its bounds and the histograms that were made of it, by their labels."""
        for name, each in self._table.items():
            yield each, self._bounds[name], list(self._made[name].items())
