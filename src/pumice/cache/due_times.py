"""When something is to be done about each of many, so that whoever looks pays for those that are due and not for all."""

from __future__ import annotations

import heapq
from typing import Final

SPARE: Final = 64
"""So many times that count no longer may be kept beside twice as many as do."""


class DueTimes:
    """A time for each name."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []  # among them some that count no longer

    def put(self, name: str, time: int) -> None:
        """Give a name its time, instead of the one it had."""
        if self._times.get(name) == time:
            return
        self._times[name] = time
        heapq.heappush(self._heap, (time, name))
        if len(self._heap) > 2 * len(self._times) + SPARE:
            self._heap = [(time, name) for name, time in self._times.items()]
            heapq.heapify(self._heap)

    def drop(self, name: str) -> None:
        """Forget a name."""
        self._times.pop(name, None)
        if not self._times:
            self._heap.clear()

    def due(self, now: int) -> list[str]:
        """Return the names whose time has come, the earliest first; they keep it until they are put or dropped."""
        found: dict[str, int] = {}
        while self._heap and self._heap[0][0] <= now:
            time, name = heapq.heappop(self._heap)
            if self._times.get(name) == time:
                found[name] = time
        for name, time in found.items():
            heapq.heappush(self._heap, (time, name))
        return list(found)

    def next(self) -> int | None:
        """Return the earliest time; None if there is none."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
