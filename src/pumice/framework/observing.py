"""Whoever wants to know how long the steps of a cycle take, and what came of them.

The core has no clock: an observer brings one. This one wants to know nothing, and costs nothing.
"""

from __future__ import annotations


class Observer:
    """The hooks; a server overrides those it has a use for. They are called by the deciding thread and must not fail."""

    def mark(self) -> int:
        """Return a moment to measure from."""
        return 0

    def spent(self, stage: str, label: str, since: int) -> None:
        """Take note of the time since a mark: `open`, `plugin open`, `action`, `plugin close`, `predicate` and `scoring`."""

    def sought(self, action: str) -> None:
        """Take note that an action looks for victims."""

    def evicted(self, action: str, victims: int) -> None:
        """Take note that an action evicts some pods, as one plan."""

    def took(self, reason: str, queue: str, claimant_queue: str) -> None:
        """Take note of one pod that is evicted: by which action, from which queue, and for which; empty if for nobody."""

    def retreated(self, way: str, error: Exception) -> None:
        """Take note that a fast way was left because of an exception, and the long one is gone instead: `rounds`, `blocks`, `letting in` or `task order`."""


NOBODY = Observer()
