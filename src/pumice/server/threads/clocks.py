"""The clocks of a process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_AWAKE_OR_NOT: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall() -> int:
    """Return the time in microseconds since the epoch."""
    return time.time_ns() // 1000


def monotonic() -> int:
    """Return a clock that only goes forward, in microseconds, and does so while the machine sleeps: a lease does not wait for it to wake up."""
    return time.clock_gettime_ns(_AWAKE_OR_NOT) // 1000


class Forward:
    """A clock that never goes back, in microseconds: whatever waits until a moment would wait for as long as the wall clock was set back.

    Where that one is behind what was told, time goes on nine tenths as fast as it passes, until the wall clock has caught up: what lasts a minute takes hardly longer, and an hour is made up for within ten.
    """

    def __init__(self, wall: Callable[[], int], monotonic: Callable[[], int]) -> None:
        self._wall = wall
        self._monotonic = monotonic
        # What the wall clock said when it was ahead last, and when that was: one value, as threads read and write it.
        self._ahead = (0, monotonic())

    def __call__(self) -> int:
        """Return the time since the epoch."""
        said, since = self._ahead
        at, now = self._monotonic(), self._wall()
        least = said + (at - since) * 9 // 10
        if now < least:
            return least
        self._ahead = (now, at)
        return now


forward: Final = Forward(wall, monotonic)
