"""What was otherwise before each of the last moments, bounded in time and in bytes: the oldest is forgotten first."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

from pumice.api import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is remembered: for how long, of how many bytes of rows and of objects, and of how many samples of use."""

    memory: int = duration.HOUR
    rows: int = 64 << 20
    objects: int = 64 << 20
    samples: int = 360


HOUR: Final = Bounds()
"""The last hour, as a process that goes on can afford it."""


class Past(Generic[T]):
    """Keeps with each moment what was there before it."""

    def __init__(self, memory: int, most_bytes: int) -> None:
        self._memory, self._most_bytes = memory, most_bytes
        self._steps: deque[tuple[int, T, int]] = deque()
        self.size = 0
        self.first = 0
        """The earliest moment that is known, if there were others before it."""

    def remember(self, now: int, before: T, size: int) -> None:
        """Keep what was there before now, which takes so many bytes."""
        self._steps.append((now, before, size))
        self.size += size
        while self._steps and (self.size > self._most_bytes or self._steps[0][0] < now - self._memory):
            self.first, _, gone = self._steps.popleft()
            self.size -= gone

    def since(self, moment: int) -> Iterator[T]:
        """Walk back from now to a moment."""
        for time, before, _ in reversed(self._steps):
            if time <= moment:
                return
            yield before
