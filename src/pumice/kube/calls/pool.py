"""Connections to one server that are kept for the next request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    from pumice.kube.calls.dialling import Dialler
    from pumice.kube.calls.http_answers import Answer
    from pumice.kube.calls.wire import Wire

KEPT: Final = 60.0  # seconds for which a connection is kept that nobody uses
CONNECT_LIMIT: Final = 10.0


class Pool:
    """Sends requests over connections that it keeps; the one that was used last is used first."""

    def __init__(self, dialler: Dialler, kept: float = KEPT) -> None:
        self._dialler = dialler
        self._kept_for = kept
        self._idle: list[Wire] = []
        self._cleaning: asyncio.TimerHandle | None = None
        self._streaming: set[Wire] = set()

    def close(self) -> None:
        """End all connections that nobody uses, and all streams."""
        if self._cleaning is not None:
            self._cleaning.cancel()
        for wire in (*self._idle, *self._streaming):
            wire.close()
        self._idle.clear()

    async def exchange(self, request: bytes, answer: Answer, context: ssl.SSLContext | None, limit: float) -> None:
        """Send a request and return when its answer is whole; raise `TimeoutError` after so many seconds."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        kept = self._kept(context)
        wire = kept or await self._dialler.open(context, min(CONNECT_LIMIT, limit / 2))
        timer = loop.call_at(started + limit, wire.cut, TimeoutError())
        try:
            await wire.ask(request, answer)
        finally:
            timer.cancel()
        if not wire.closed:
            if kept is None:
                self._dialler.remember(wire)
            self._keep(loop, wire)

    async def stream(
        self, request: bytes, answer: Answer, context: ssl.SSLContext | None, silence: float
    ) -> AsyncGenerator[bytes, None]:
        """Send a request and yield its answer as it arrives, the first time as soon as its head is there; raise `TimeoutError` after so many seconds of silence."""
        wire = await self._dialler.open(context, CONNECT_LIMIT)
        self._streaming.add(wire)
        clock = _SilenceClock(asyncio.get_running_loop(), wire, silence)
        try:
            await wire.begin(request, answer)
            yield b""
            while data := await wire.more(answer):
                clock.heard()
                yield data
                clock.heard()
        finally:
            clock.stop()
            wire.close()
            self._streaming.discard(wire)

    def _kept(self, context: ssl.SSLContext | None) -> Wire | None:
        """Take a connection that is open still and was made with the same certificates."""
        while self._idle:
            wire = self._idle.pop()
            if wire.closed:
                continue
            if wire.context is context:
                return wire
            wire.close()
        return None

    def _keep(self, loop: asyncio.AbstractEventLoop, wire: Wire) -> None:
        wire.used_at = loop.time()
        self._idle.append(wire)
        if self._cleaning is None:
            self._cleaning = loop.call_later(self._kept_for, self._clean, loop)

    def _clean(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close what nobody has used for a while."""
        self._cleaning = None
        now = loop.time()
        for wire in self._idle:
            if now >= wire.used_at + self._kept_for:
                wire.close()
        self._idle = [wire for wire in self._idle if not wire.closed]
        if self._idle:
            self._cleaning = loop.call_at(self._idle[0].used_at + self._kept_for, self._clean, loop)


class _SilenceClock:
    """Cuts a connection on which nothing was heard for too long; one timer for many parts of a stream."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wire: Wire, silence: float) -> None:
        self._loop = loop
        self._wire = wire
        self._silence = silence
        self._heard_at = loop.time()
        self._timer = loop.call_later(silence, self._look)

    def heard(self) -> None:
        """Note that something has come, or that somebody is ready to hear more."""
        self._heard_at = self._loop.time()

    def stop(self) -> None:
        """Listen no more."""
        self._timer.cancel()

    def _look(self) -> None:
        due = self._heard_at + self._silence
        if self._loop.time() >= due:
            self._wire.cut(TimeoutError())
        else:
            self._timer = self._loop.call_at(due, self._look)
