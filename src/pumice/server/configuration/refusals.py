"""Tells whoever looks at the ConfigMap that it was refused, by an event about it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from pumice.cache.effects import Note
from pumice.kube.writes import eventing

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.writes.writing import Api
    from pumice.server.configuration.sources import Source

REASON: Final = "ConfigurationRefused"
PATIENCE: Final = 5.0  # seconds that an event may take; a process that cannot start must not wait for it longer


class Refusals:
    """Writes events about the object that holds the configuration; a file has none.

    They do not go the way of other events: the first may be the last thing that a process does, before it leads and before there is a cycle.
    """

    def __init__(self, client: Api, now: Callable[[], int], component: str) -> None:
        self._events = eventing.EventRecorder(client, now, component)

    async def tell(self, source: Source, consequence: str, problem: str) -> None:
        """Write what is wrong with a configuration and what follows; a failure is not worth more than the event."""
        holder = source.holder
        if holder is None:
            return
        self._events.put(
            Note(
                kind=holder.kind,
                namespace=holder.namespace,
                name=holder.name,
                uid=holder.uid,
                type="Warning",
                reason=REASON,
                message=f"{consequence}: {problem}",
            )
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while (told := self._events.take()) is not None:
                    await self._events.send(told)
