"""Real time for what runs on simulated nodes: stamps are the wall clock's, and what lasts may pass faster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pumice.server.threads import clocks
from pumice.sim.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable


def wall() -> int:
    """Return the time in microseconds since the epoch; it never goes back."""
    return clocks.forward()


def whole_seconds() -> int:
    """Return the time as objects state it: in whole seconds, as microseconds since the epoch."""
    return wall() // 1_000_000 * 1_000_000


class WallClock(VirtualClock):
    """The clock of kubelets and controllers: what is due in a minute comes after a second at a speed of 60."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__(wall())
        self.speed = speed
        self._loop = asyncio.get_running_loop()

    def now(self) -> int:
        """Give the present instant."""
        return wall()

    def call_at(self, instant: int, callback: Callable[[], None]) -> None:
        """Have a callback run when an instant is reached, at this clock's speed."""
        self._loop.call_later(max(0, instant - wall()) / 1e6 / self.speed, callback)
