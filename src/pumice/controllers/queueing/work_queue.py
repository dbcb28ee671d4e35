"""Keys that wait for their turn: each with one worker at a time, later again if it failed, and never forgotten."""

from __future__ import annotations

import heapq
from typing import Final, Generic, TypeVar

from pumice.api import duration

K = TypeVar("K")
FIRST_PAUSE: Final = 50 * duration.MILLISECOND
LONGEST_PAUSE: Final = 30 * duration.SECOND


class WorkQueue(Generic[K]):
    """A queue without a clock: whoever takes says what time it is. Times are in microseconds.

    ```
      add ──▶ ready ──take──▶ busy ──done──▶ (idle, resting, or ready if it was added meanwhile)
                ▲               └──failed──▶ pausing ──▶ ready    an event does not cut a pause short, `forgive` does
                └── resting, if it was added meanwhile ◀─ what is large is not looked at for each event of many
    ```
    """

    def __init__(self, first_pause: int = FIRST_PAUSE, longest_pause: int = LONGEST_PAUSE) -> None:
        self._first, self._longest = first_pause, longest_pause
        self._ready: dict[K, None] = {}
        self._busy: dict[K, bool] = {}  # whether it was added meanwhile
        self._pausing: dict[K, int] = {}  # until when
        self._resting: dict[K, tuple[int, bool]] = {}  # until when, and whether it was added meanwhile
        self._wakes: dict[K, int] = {}
        self._timers: list[tuple[int, int, K]] = []
        self._failures: dict[K, int] = {}
        self._registered = 0

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def load(self) -> int:
        """How many keys are ready or busy."""
        return len(self._ready) + len(self._busy)

    def waiting(self) -> list[K]:
        """Give the keys that are ready."""
        return list(self._ready)

    def drop(self, key: K) -> None:
        """Want a key that is ready looked at no longer."""
        del self._ready[key]

    def add(self, key: K) -> None:
        """Want a key looked at."""
        if key in self._busy:
            self._busy[key] = True
        elif key in self._resting:
            until, wanted = self._resting[key]
            if not wanted:
                self._resting[key] = (until, True)
                self._push(until, key)
        elif key not in self._pausing:
            self._ready[key] = None

    def add_at(self, key: K, instant: int) -> None:
        """Want a key looked at when a time has come; of several times the earliest counts."""
        if instant < self._wakes.get(key, instant + 1):
            self._wakes[key] = instant
            self._push(instant, key)

    def forgive(self, key: K) -> None:
        """Forget how often a key has failed, and end its pause or rest."""
        self._failures.pop(key, None)
        paused, rested = self._pausing.pop(key, None), self._resting.pop(key, None)
        if paused is not None or (rested is not None and rested[1]):
            self._ready[key] = None

    def take(self, now: int) -> K | None:
        """Give a key whose turn it is; it is busy until it is done or has failed."""
        self._wake(now)
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._busy[key] = False
        return key

    def done(self, key: K, rest_until: int | None = None) -> None:
        """End a turn that went well; before its rest is over the key has no other."""
        self._failures.pop(key, None)
        again = self._busy.pop(key, False)
        if rest_until is not None:
            self._resting[key] = (rest_until, False)
            self._push(rest_until, key)
            if again:
                self.add(key)
        elif again:
            self._ready[key] = None

    def failed(self, key: K, now: int) -> int:
        """End a turn that failed: the next comes after a pause that doubles each time; gives the pause."""
        self._busy.pop(key, None)
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = self.pause(count)
        self._pausing[key] = now + pause
        self._push(now + pause, key)
        return pause

    def pause(self, count: int) -> int:
        """Give how long to wait after so many failures in a row."""
        return min(self._longest, self._first << min(count - 1, 40)) if count else 0

    def next_due(self, now: int) -> int | None:
        """Say when the next key is ready, None if nothing waits."""
        if self._ready:
            return now
        while self._timers and not self._is_live(self._timers[0]):
            heapq.heappop(self._timers)
        return max(now, self._timers[0][0]) if self._timers else None

    def _push(self, instant: int, key: K) -> None:
        self._registered += 1
        heapq.heappush(self._timers, (instant, self._registered, key))

    def _is_live(self, timer: tuple[int, int, K]) -> bool:
        instant, _, key = timer
        rests = self._resting.get(key, (None, False))
        return self._wakes.get(key) == instant or self._pausing.get(key) == instant or rests == (instant, True)

    def _wake(self, now: int) -> None:
        while self._timers and self._timers[0][0] <= now:
            instant, _, key = heapq.heappop(self._timers)
            rested = self._resting.get(key)
            if rested is not None and rested[0] <= now:
                del self._resting[key]
                if rested[1]:
                    self._ready[key] = None
            if self._wakes.get(key) == instant:
                del self._wakes[key]
                self.add(key)
            if self._pausing.get(key) == instant:
                del self._pausing[key]
                self._ready[key] = None
