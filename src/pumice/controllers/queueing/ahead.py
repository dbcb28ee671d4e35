"""Stamps that lie in the future: whoever has written one has a clock ahead of ours, and nobody waits for that clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

MOST: Final = 10_000


class Ahead:
    """Remembers of the latest such stamps when whoever looks at an object has met them first."""

    def __init__(self) -> None:
        self._met: dict[tuple[Hashable, int], int] = {}

    def since(self, reader: Hashable, stamp: int, now: int) -> int:
        """Give the instant of a stamp; of one that lay in the future when it was met first, that time."""
        met = self._met.get((reader, stamp))
        if met is not None:
            return met
        if stamp <= now:
            return stamp
        while len(self._met) >= MOST:
            del self._met[next(iter(self._met))]
        self._met[reader, stamp] = now
        return now
