"""How many feasible nodes are enough, for those who ask for fewer than all.

Looking at all nodes is cheap here, so sampling is off unless a percentage is asked for; the peers' adaptive rule is known to `adaptive`.
"""

from __future__ import annotations


def enough(nodes: int, minimum: int, percentage: int) -> int:
    """Return after how many feasible nodes a search may stop."""
    if nodes <= minimum or percentage <= 0 or percentage >= 100:
        return nodes
    return max(minimum, nodes * percentage // 100)


def adaptive(nodes: int, minimum_percentage: int) -> int:
    """Return the percentage that the peers use when none is given: half the nodes, less in larger clusters."""
    return max(minimum_percentage, 50 - nodes // 125)
