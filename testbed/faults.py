"""What can go wrong between a client and an API server, one class for each way; `testbed.proxy` applies them."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Protocol

from aiohttp import web

_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Exchange(Protocol):
    """One request that is being served, as faults see it."""

    async def forward(self) -> web.StreamResponse:
        """Pass the request on and its answer back; a watch until it ends."""
        ...

    async def forward_silently(self) -> None:
        """Pass the request on and keep its answer."""
        ...

    async def relay(self, lines: int) -> web.StreamResponse:
        """Pass a watch on and back, up to so many lines."""
        ...

    async def never(self) -> web.StreamResponse:
        """Keep the connection open and say nothing until the client hangs up or the proxy ends."""
        ...

    def hang_up(self) -> web.StreamResponse:
        """End the connection in the middle of whatever it is in."""
        ...


class Fault(Protocol):
    """Something that happens to a request."""

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Happen."""
        ...


class Answer:
    """The server refuses, and the request never reaches it."""

    def __init__(self, status: int, *, retry_after: int | None = None, message: str = "the proxy says no") -> None:
        self._status = status
        self._retry_after = retry_after
        self._message = message

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Answer with a `Status` object."""
        del exchange
        reason = _REASONS.get(self._status, "")
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body |= {"message": self._message, "reason": reason, "code": self._status}
        headers = {} if self._retry_after is None else {"Retry-After": str(self._retry_after)}
        return web.Response(
            status=self._status, body=json.dumps(body), content_type="application/json", headers=headers
        )


class Pass:
    """Nothing goes wrong; for rules that only count."""

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Pass on."""
        return await exchange.forward()


class Cut:
    """The connection breaks before the request has reached the server."""

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Hang up."""
        return exchange.hang_up()


class Lose:
    """The request is served, and its answer is lost."""

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Pass on, then hang up."""
        await exchange.forward_silently()
        return exchange.hang_up()


class Slow:
    """The request is served at once, and its answer takes so many seconds: longer than anybody waits, if wanted."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Pass on, and answer late."""
        await exchange.forward_silently()
        await asyncio.sleep(self._seconds)
        return exchange.hang_up()


class Late:
    """The request reaches the server only after so many seconds, whether or not anybody still waits for it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Wait, then pass on."""
        await asyncio.sleep(self._seconds)
        return await exchange.forward()


class Hold:
    """Requests wait until they are let go, which ends as another fault says: by default well."""

    def __init__(self, then: Fault | None = None) -> None:
        self._then = then or Pass()
        self._open = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.held = 0

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Wait to be let go."""
        self._loop = asyncio.get_running_loop()
        self.held += 1
        await self._open.wait()
        return await self._then.befall(exchange)

    def release(self) -> None:
        """Let go of everything that waits, and of everything that comes later; from any thread."""
        if self._loop is None:
            self._open.set()
        else:
            self._loop.call_soon_threadsafe(self._open.set)


class CutWatch:
    """A watch breaks after so many lines."""

    def __init__(self, lines: int) -> None:
        self._lines = lines

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Pass so many lines on, then hang up."""
        await exchange.relay(self._lines)
        return exchange.hang_up()


class SilenceWatch:
    """A watch stays open after so many lines, and nothing comes any more."""

    def __init__(self, lines: int) -> None:
        self._lines = lines

    async def befall(self, exchange: Exchange) -> web.StreamResponse:
        """Pass so many lines on, then say nothing."""
        await exchange.relay(self._lines)
        return await exchange.never()
