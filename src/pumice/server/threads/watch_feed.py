"""What the watches bring, handed to everybody who follows it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pumice.api import kinds
from pumice.server.threads import urgency

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.cache import Cache
    from pumice.cache.reflector import EventType
    from pumice.kube.grouping import Grouping
    from pumice.server.onlooking import Onlooker
    from pumice.server.threads.mailbox import Mailbox


PAUSE: Final = 1.0


class WhenWanted:
    """Something that runs from when it is first wanted; from then on it asks by itself."""

    def __init__(self, run: Callable[[], Awaitable[None]], wanted: Callable[[], bool]) -> None:
        self._run = run
        self._wanted = wanted

    async def run(self) -> None:
        """Wait until it is wanted, then run it."""
        while True:
            if self._wanted():
                break
            await asyncio.sleep(PAUSE)
        await self._run()


class WatchFeed:
    """Feeds the cache, whoever groups pods, and whoever watches the watching."""

    def __init__(
        self,
        cache: Cache,
        groups: Grouping,
        noticed: Callable[[kinds.Kind, EventType, KubeObject | decoding.Malformed], None],
        box: Mailbox,
    ) -> None:
        self._urgency = urgency.Urgency(cache.cluster, cache.shadows)
        self._fold = cache.fold
        self._groups = groups
        self._noticed = noticed
        self._box = box
        self.onlooker: Onlooker | None = None

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change."""
        if self.onlooker is not None:
            self.onlooker.feed(kind, event_type, found, raw)
            if kind is kinds.EVENT:
                return  # which nobody else asked for
        self._fold(kind, event_type, found)
        if raw or event_type == "DELETED":
            self._groups.feed(kind, event_type, found, raw)
        self._noticed(kind, event_type, found)
        if wait := self._urgency.wait(event_type, found):
            self._box.hint(wait)
        else:
            self._box.ring()
