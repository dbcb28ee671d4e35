"""When a write may be told: at once in memory, or when it is on disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from pumice.apiserver import statuses

if TYPE_CHECKING:
    from pumice.api import kinds


class Durability(Protocol):
    """Knows which versions are safe."""

    async def wait(self, version: int) -> None:
        """Return when everything up to a version is safe, or say why it is not."""

    def check_writable(self) -> None:
        """Refuse a write that could not be kept."""


class InMemory:
    """Everything is as safe as it will ever be."""

    async def wait(self, version: int) -> None:
        """Return at once."""

    def check_writable(self) -> None:
        """Refuse nothing."""


class OnDisk:
    """Waits for a journal that commits in groups; `committed` and `failed` are called by its thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._safe = 0
        self._problem = ""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def start(self, version: int) -> None:
        """Say what an earlier run has kept."""
        self._safe = version

    async def wait(self, version: int) -> None:
        """Return when a version is on disk."""
        if version > self._safe:
            if self._problem:
                raise self._refusal()
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((version, future))
            await future

    def check_writable(self) -> None:
        """Refuse writes while the last ones could not be kept."""
        if self._problem:
            raise self._refusal()

    def committed(self, version: int) -> None:
        """Hear that a version is on disk."""
        self._loop.call_soon_threadsafe(self._settle, version, "")

    def failed(self, problem: str) -> None:
        """Hear that nothing can be kept now."""
        self._loop.call_soon_threadsafe(self._settle, self._safe, problem)

    def _settle(self, version: int, problem: str) -> None:
        self._safe = max(self._safe, version)
        self._problem = problem
        waiting, self._waiting = self._waiting, []
        for wanted, future in waiting:
            if future.done():
                continue
            if wanted <= self._safe:
                future.set_result(None)
            elif problem:
                future.set_exception(self._refusal())
            else:
                self._waiting.append((wanted, future))

    def _refusal(self) -> statuses.Problem:
        return statuses.Problem(
            500, f"the write cannot be kept: {self._problem}; nothing is written until this is cured"
        )


class Bells:
    """Wake whoever waits for something new of a kind, in the order in which they came."""

    def __init__(self) -> None:
        self._sleepers: dict[kinds.Kind, dict[asyncio.Future[None], None]] = {}

    def ring(self, kind: kinds.Kind) -> None:
        """Wake those who wait for a kind."""
        for future in self._sleepers.pop(kind, ()):
            if not future.done():
                future.set_result(None)

    def ring_all(self) -> None:
        """Wake everybody."""
        for kind in list(self._sleepers):
            self.ring(kind)

    async def wait(self, kind: kinds.Kind, seconds: float) -> None:
        """Sleep until a kind's bell rings, at most so long."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        sleepers = self._sleepers.setdefault(kind, {})
        sleepers[future] = None
        timer = loop.call_later(max(0.0, seconds), _wake, future)
        try:
            await future
        finally:
            timer.cancel()
            sleepers.pop(future, None)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
