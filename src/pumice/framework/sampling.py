"""How many feasible nodes are enough, for those who ask for fewer than all.

Looking at all nodes is cheap here, so sampling is off unless a percentage is asked for; the peers' adaptive rule is known to `adaptive`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pumice.model.nodes import Rows


def enough(nodes: int, minimum: int, percentage: int) -> int:
    """Return after how many feasible nodes a search may stop."""
    if nodes <= minimum or percentage <= 0 or percentage >= 100:
        return nodes
    return max(minimum, nodes * percentage // 100)


class Sampler:
    """Cuts candidates down to enough of them, starting where the last search stopped."""

    __slots__ = ("_minimum", "_percentage", "_start")

    def __init__(self, minimum: int = 100, percentage: int = 0) -> None:
        self._minimum = minimum
        self._percentage = percentage
        self._start = 0

    def sample(self, candidates: Rows, nodes: int) -> Rows:
        """Return the first candidates, counted from where the last search stopped, in the order of names."""
        wanted = enough(nodes, self._minimum, self._percentage)
        if wanted >= len(candidates):
            return candidates
        first = int(np.searchsorted(candidates, self._start))
        taken = np.concatenate([candidates[first:], candidates[:first]])[:wanted]
        self._start = (int(taken[-1]) + 1) % nodes
        taken.sort()
        return taken


def adaptive(nodes: int, minimum_percentage: int) -> int:
    """Return the percentage that the peers use when none is given: half the nodes, less in larger clusters."""
    return max(minimum_percentage, 50 - nodes // 125)
