"""Whether somebody holds a Lease of an office and lives: followed by watches, judged without a clock of others.

A holder lives for as long as its Lease lasts after this process saw it change.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import msgspec

from pumice.api import kinds
from pumice.kube.rivals import Claim
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.kube.rivals import Office
    from pumice.kube.watches.watching import Source


class LeaseHolders:
    """Follows the Leases of an office in all namespaces, ours and Volcano's."""

    def __init__(
        self,
        client: Source,
        office: Office,
        monotonic: Callable[[], int],
        chance: Callable[[], random.Random] = random.Random,
    ) -> None:
        self._monotonic = monotonic
        ours = WatchSpec(kinds.LEASE, label_selector=f"{office.label}=true", keep_raw=True)
        others = f"metadata.name={office.volcanos}"
        volcanos = WatchSpec(kinds.LEASE, field_selector=others, label_selector=f"{office.label}!=true", keep_raw=True)
        # Apart, for a Lease may pass from one to the other, and nobody says in which order they tell of it.
        self.books = [_Book(office, monotonic), _Book(office, monotonic)]
        specs = zip((ours, volcanos), self.books, strict=True)
        self._informers = [Informers(client, [spec], book, rng=chance()) for spec, book in specs]

    async def run(self) -> None:
        """Follow them until cancelled."""
        await asyncio.gather(*(each.run() for each in self._informers))

    @property
    def synced(self) -> bool:
        """Whether it is known which Leases there are."""
        return all(each.synced for each in self._informers)

    def serve(self, wanted: Iterable[str]) -> bool:
        """Tell whether all of these are served by holders that live."""
        now = self._monotonic()
        served = {name for book in self.books for name in book.served(now)}
        return served.issuperset(wanted)


class _Book:
    """What is known of the Leases that one watch tells of, and when each last changed."""

    def __init__(self, office: Office, monotonic: Callable[[], int]) -> None:
        self._office = office
        self._monotonic = monotonic
        self._claims: dict[str, tuple[Claim, int]] = {}

    def feed(
        self, _kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change of a Lease."""
        place = f"{found.metadata.namespace}/{found.metadata.name}"
        if event_type == "DELETED" or not raw:
            self._claims.pop(place, None)
        else:
            self._claims[place] = Claim.read(msgspec.json.decode(raw), self._office), self._monotonic()

    def served(self, now: int) -> list[str]:
        """Name all that is served by holders that live."""
        alive = [each for each, seen_at in self._claims.values() if each.holder and now < seen_at + each.lasts]
        return [name for each in alive for name in each.serves]
