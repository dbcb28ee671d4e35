"""Changes as they come, as server-sent events: one encoding for all viewers, and nothing kept for a slow one but where it stands."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from pumice.web import guarding

if TYPE_CHECKING:
    from pumice.web.guarding import Looker
    from pumice.web.views import Views

MOST_VIEWERS: Final = 200
PATIENCE: Final = 20.0
"""Seconds in which a viewer has to take what is sent."""
QUIET: Final = 15.0
"""Seconds after which a viewer is told that nothing is new."""
_HEADERS: Final = {
    **guarding.HEADERS,
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",  # an ingress hands on what comes, when it comes
}


class Stream:
    """Sends what is new to whoever watches, as far as they may see it."""

    def __init__(self, views: Views, *, patience: float = PATIENCE, most: int = MOST_VIEWERS) -> None:
        self._views = views
        self.patience, self.most = patience, most
        self._news = asyncio.Event()
        self.watchers: set[object] = set()
        """Their connections."""

    @property
    def viewers(self) -> int:
        """How many pages watch."""
        return len(self.watchers)

    def tell(self) -> None:
        """Wake whoever watches."""
        self._news.set()
        self._news = asyncio.Event()

    async def watch(self, request: web.Request, looker: Looker) -> web.StreamResponse:
        """Send changes until the viewer goes, or does not take them."""
        if self.viewers >= self.most:
            return guarding.refused(HTTPStatus.SERVICE_UNAVAILABLE, f"{self.viewers} pages watch already; close one")
        seen = _seen(request)
        if seen is None:
            return guarding.refused(HTTPStatus.BAD_REQUEST, "since: a version of the scene is a whole number")
        response = web.StreamResponse(headers=_HEADERS)
        connection: object = request.protocol
        self.watchers.add(connection)
        try:
            await response.prepare(request)
            await self._send(response, looker, seen)
        except (ConnectionError, TimeoutError):
            # Whoever does not read is cut off; the page says so, connects again and catches up.
            if request.transport is not None:
                request.transport.abort()
        finally:
            self.watchers.discard(connection)
        return response

    async def _send(self, response: web.StreamResponse, looker: Looker, seen: int) -> None:
        await self._write(response, b"retry: 2000\n\n")
        sight = looker.sight()
        while True:
            news = self._news
            batches = self._views.since(seen, sight)
            # Who may see more or less by now begins anew, as who was away for too long; who has signed out is told so when they do.
            if batches is None or not looker.is_there() or looker.sight() != sight:
                await self._write(response, b"event: reset\ndata: {}\n\n")
                return
            for version, data in batches:
                await self._write(response, b"id: %d\ndata: %s\n\n" % (version, data))
                seen = version
            try:
                async with asyncio.timeout(QUIET):
                    await news.wait()
            except TimeoutError:
                await self._write(response, b"event: quiet\ndata: {}\n\n")

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(self.patience):
            await response.write(data)


def _seen(request: web.Request) -> int | None:
    text = request.headers.get("Last-Event-ID") or request.query.get("since", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else None
