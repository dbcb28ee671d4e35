"""Asks the source that the configuration names, as often as it says, and feeds the answers to the cache like any other event."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pumice.api import duration, meta, timestamp, usage
from pumice.server.usage import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME: Final = "cluster"  # of the one object that answers become
_LOOK: Final = 5.0  # seconds between two looks at the configuration


class Poller:
    """Keeps what is known of the nodes' load up to date; a source that is away is told of once, and what it said last grows old."""

    def __init__(
        self,
        client: sources.Requester,
        wanted: Callable[[], Mapping[str, str]],
        feed: Callable[[usage.NodeUsage], None],
        complain: Callable[[str], None],
        now: Callable[[], int],
        *,
        look: float = _LOOK,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._feed = feed
        self._complain = complain
        self._now = now
        self._look = look
        self._told = ""
        self.failures = 0

    async def run(self) -> None:
        """Ask until cancelled; whoever is named anew is asked at once."""
        clock = asyncio.get_running_loop().time
        asked: Mapping[str, str] = {}
        due = 0.0
        while True:
            metrics = self._wanted()
            source = sources.make(metrics, self._client)
            if source is not None and (metrics != asked or clock() >= due):
                asked, due = metrics, clock() + sources.interval(metrics) / duration.SECOND
                await self.ask(source, metrics)
            await asyncio.sleep(min(self._look, max(0.0, due - clock())) if source is not None else self._look)

    async def ask(self, source: sources.Source, metrics: Mapping[str, str]) -> None:
        """Ask once; a failure is told, and the last answer stays."""
        try:
            loads = await source.read()
        except sources.SourceError as error:
            self.failures += 1
            self._tell(f"{source.name}: {error}")
            return
        self._tell("" if loads else f"{source.name}: no node has both averages; are its names those of the nodes?")
        self._feed(
            usage.NodeUsage(
                metadata=meta.ObjectMeta(name=NAME),
                time=timestamp.format_timestamp(self._now()),
                interval=metrics.get("interval") or sources.INTERVAL,
                nodes=loads,
            )
        )

    def _tell(self, problem: str) -> None:
        if problem and problem != self._told:
            self._complain(problem)
        self._told = problem
