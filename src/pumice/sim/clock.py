"""Virtual time: it moves only when told to, and what is due happens in order on the way."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z, in microseconds since the epoch


class VirtualClock:
    """A clock with timers; time never goes back."""

    def __init__(self, start: int = START) -> None:
        self._now = start
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._registered = 0

    def now(self) -> int:
        """Give the present instant."""
        return self._now

    def call_at(self, instant: int, callback: Callable[[], None]) -> None:
        """Have a callback run when time reaches an instant; one in the past is due at the next advance, even by nothing."""
        self._registered += 1
        heapq.heappush(self._timers, (max(instant, self._now), self._registered, callback))

    def next_due(self) -> int | None:
        """Say when the next callback is due, None if nothing waits."""
        return self._timers[0][0] if self._timers else None

    def advance(self, duration: int) -> None:
        """Let a duration in microseconds pass."""
        if duration < 0:
            raise ValueError(f"time cannot go back: advance by {duration} microseconds")
        self.advance_to(self._now + duration)

    def advance_to(self, instant: int) -> None:
        """Run everything due at or before an instant, in time order and then in the order of registration."""
        if instant < self._now:
            raise ValueError(f"time cannot go back: from {self._now} to {instant} microseconds")
        while self._timers and self._timers[0][0] <= instant:
            self._now, _, callback = heapq.heappop(self._timers)
            callback()
        self._now = instant
