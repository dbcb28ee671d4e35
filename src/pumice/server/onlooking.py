"""Somebody who looks on while a scheduler works, such as the page: told what the watches bring, the policy in force, and how the process itself is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.framework.configuration import Catalog, Configuration
    from pumice.kube.watches.watching import WatchSpec

REMEMBERED: Final = 512
"""Cycles of which it is known how long they took."""


class SelfReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a scheduler is doing: times of its last cycles in milliseconds, breakdowns by plugin, and what is wrong."""

    leading: bool
    decided: int
    skipped: int
    median: float | None = None
    longest: float | None = None
    last: float | None = None
    breakdowns: dict[str, int] = {}
    troubles: tuple[str, ...] = ()
    silence: float = 0.0


class CycleTimes:
    """Remembers how long the last cycles took; written by the deciding thread."""

    def __init__(self) -> None:
        self._ring = [0] * REMEMBERED
        self._count = 0

    def add(self, microseconds: int) -> None:
        """Take note of a cycle."""
        self._ring[self._count % REMEMBERED] = microseconds
        self._count += 1

    def told(self) -> dict[str, float]:
        """Give the median, the longest and the last, in milliseconds; nothing before the first cycle."""
        count = self._count
        if not count:
            return {}
        known = sorted(self._ring[:count])
        last = self._ring[(count - 1) % REMEMBERED]
        return {"median": known[len(known) // 2] / 1000, "longest": known[-1] / 1000, "last": last / 1000}


class Around(msgspec.Struct, frozen=True):
    """What an onlooker is told of its process."""

    catalog: Catalog
    policy: Callable[[], Configuration | None]
    report: Callable[[], SelfReport]


class Onlooker(Protocol):
    """Whoever looks on; runs on the event loop of input and output, and must not hold it up."""

    @property
    def specs(self) -> Sequence[WatchSpec]:
        """What it wants to be watched beside what a scheduler watches; the cache never hears of it."""

    @property
    def raw(self) -> Sequence[kinds.Kind]:
        """Kinds whose JSON it wants."""

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change."""

    async def run(self, around: Around) -> None:
        """Look on until cancelled."""
