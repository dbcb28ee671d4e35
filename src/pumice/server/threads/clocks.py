"""The clocks of a process."""

from __future__ import annotations

import time
from typing import Final

_AWAKE_OR_NOT: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall() -> int:
    """Return the time in microseconds since the epoch."""
    return time.time_ns() // 1000


def monotonic() -> int:
    """Return a clock that only goes forward, in microseconds, and does so while the machine sleeps: a lease does not wait for it to wake up."""
    return time.clock_gettime_ns(_AWAKE_OR_NOT) // 1000
