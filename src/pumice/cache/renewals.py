"""When the numbers in what is written of a group or pod are written anew, though its reason is the same: a minute after they were found to be others, a bounded number at a time.

Whoever asks gets the next free place, and is remembered by name only; what is true by then is written, if it differs from what is there.
"""

from __future__ import annotations

from typing import Final

WAIT: Final = 60_000_000
"""So long numbers may be old, at the least, and so seldom those of one name are written; in microseconds."""
GRID: Final = 10_000_000
"""Those who are due come together, so that they need one cycle:"""
AT_ONCE: Final = 100
"""so many at most."""


class Renewals:
    """Names whose numbers are old, in the order in which they are due."""

    __slots__ = ("_due", "_last", "_let", "_taken")

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        self._last = 0  # the place that was given last,
        self._taken = 0  # and to how many
        self._let: dict[str, None] = {}  # who may be written in this cycle

    def ask(self, name: str, now: int) -> None:
        """Have the numbers of a name written anew, unless that is to be done already."""
        if name in self._due:
            return
        first = -(-(now + WAIT) // GRID) * GRID
        if first > self._last:
            self._last, self._taken = first, 0
        elif self._taken == AT_ONCE:
            self._last, self._taken = self._last + GRID, 0
        self._taken += 1
        self._due[name] = self._last

    def due(self, now: int) -> list[str]:
        """Return, once, the names whose time has come; they may be written until this is over."""
        found = []
        for name, time in self._due.items():
            if time > now:
                break
            found.append(name)
        for name in found:
            del self._due[name]
        self._let.update(dict.fromkeys(found))
        return found

    def may_write(self, name: str) -> bool:
        """Tell whether it is time for a name."""
        return name in self._let

    def is_over(self) -> None:
        """End the time of those who were due."""
        self._let.clear()

    def next_wake(self) -> int | None:
        """Return when the next one is due."""
        return next(iter(self._due.values()), None)

    def forget(self, name: str) -> None:
        """Drop a name that is gone."""
        self._due.pop(name, None)
        self._let.pop(name, None)
