"""Opens a watch and reads its lines."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from pumice.kube import errors
from pumice.kube.watches import arrivals
from pumice.kube.watches.lists import CHUNK

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from pumice.kube.watches.arrivals import Line
    from pumice.kube.watches.watching import Surroundings, WatchSpec

_SHORTEST: Final = 1.0


@contextlib.asynccontextmanager
async def opened(
    around: Surroundings, spec: WatchSpec, query: Mapping[str, str], heard: Callable[[], None]
) -> AsyncIterator[AsyncIterator[Line]]:
    """Open a watch that the server ends after some minutes and give its events; `heard` is called for each line.

    A watch that ends sooner than in a second and brought nothing is a failure, so that a server which ends them all does not keep us busy.
    """
    settings, rng = around.settings, around.rng
    asked = {**spec.query, **query, "allowWatchBookmarks": "true"}
    asked["timeoutSeconds"] = str(rng.randint(*settings.watch_seconds))
    lines = around.source.stream(spec.kind, query=asked, silence=settings.silence * rng.uniform(1.0, 1.1))
    started, reading = around.now(), _Reading(lines, heard)
    async with contextlib.aclosing(reading.events()) as events:
        yield events
    if not reading.lines and around.now() - started < _SHORTEST:
        raise errors.BrokenConnectionError("the watch ended at once and brought nothing")


class _Reading:
    """Reads lines as events, and lets others have a turn now and then: lines that are there already do not wait for anything."""

    def __init__(self, source: AsyncGenerator[bytes, None], heard: Callable[[], None]) -> None:
        self.lines = 0
        self._source = source
        self._heard = heard

    async def events(self) -> AsyncGenerator[Line, None]:
        """Give one event for each line, and close the source in the end."""
        try:
            async for data in self._source:
                self.lines += 1
                self._heard()
                yield arrivals.line(data)
                if self.lines % CHUNK == 0:
                    await asyncio.sleep(0)
        finally:
            await self._source.aclose()
