"""A token bucket: so many requests a second, so many at once, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque


class TokenBucket:
    """The arithmetic of the limit, given the time; times of release are exact, nothing adds up to an error.

    Kept as the moment at which the bucket was last full and how many tokens have been taken since.
    """

    def __init__(self, rate: float, burst: int) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"a limit needs a rate above 0 and a burst of at least 1, not {rate:g}/s and {burst}")
        self._rate = rate
        self._burst = burst
        self._full_at = float("-inf")
        self._taken = 0

    def take(self, now: float) -> float:
        """Take a token and return 0, or return how many seconds from now the next one is there."""
        if now >= self._full_at + self._taken / self._rate:
            self._full_at, self._taken = now, 0
        due = self._full_at + (self._taken + 1 - self._burst) / self._rate
        if now < due:
            return due - now
        self._taken += 1
        return 0.0

    def give_back(self) -> None:
        """Take back that a token was taken."""
        self._taken = max(0, self._taken - 1)


class Limiter:
    """Lets requests through in the order in which they asked; a rate of 0 or below is no limit."""

    def __init__(self, rate: float, burst: int) -> None:
        self._bucket = TokenBucket(rate, burst) if rate > 0 else None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return sum(not turn.done() for turn in self._waiting)

    async def acquire(self) -> None:
        """Wait for this request's turn; one that is cancelled while it waits takes no token."""
        if self._bucket is None:
            return
        loop = asyncio.get_running_loop()
        if not self._waiting and not self._bucket.take(loop.time()):
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if self._timer is None:
            self._admit()
        await turn

    def _admit(self) -> None:
        """Let in whoever may come, and set the timer for the next."""
        assert self._bucket is not None  # noqa: S101  only a limiter with a bucket has anybody waiting
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._waiting:
            if self._waiting[0].done():
                self._waiting.popleft()
                continue
            wait = self._bucket.take(loop.time())
            if wait:
                self._timer = loop.call_later(wait, self._admit)
                return
            self._waiting.popleft().set_result(None)
