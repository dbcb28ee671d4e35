"""All that a scheduler knows, once its configuration was brought to life anew: its cache, its reservations, the number of its cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from pumice.cache import inputs
from pumice.cache.cache import Cache
from pumice.framework.record import CycleRecord, Verdict
from pumice.recording import graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import World
    from pumice.framework.reservations import Reservations
    from pumice.recording.effects import Ledger
    from pumice.recording.redaction import Redaction
    from pumice.scheduler import Scheduler

# What a cache is joined to, and what waits to be taken in: the former is joined anew, the latter comes again as input.
_LEFT_OUT: Final[dict[type, frozenset[str]]] = {
    Cache: frozenset({"world", "inputs", "is_given_up", "_events", "_outcomes", "failures"}),
    CycleRecord: frozenset({"_lines"}),
}


class Known:
    """What was known: everything that a scheduler is made of anew."""

    def __init__(self, cache: Cache, reservations: Reservations, cycles: int) -> None:
        self.cache = cache
        self.reservations = reservations
        self.cycles = cycles


def capture(scheduler: Scheduler, ledger: Ledger, redaction: Redaction | None) -> graph.Table:
    """Write down a scheduler between two cycles; a copy that nobody else sees needs no redaction."""
    swap: dict[type, Callable[[Any], Any]] = {Verdict: lambda found: structs.replace(found, said=found.text)}
    if redaction is not None:
        swap[dict] = redaction.annotations
    encoder = graph.Encoder(swap, _LEFT_OUT, (lambda found: found) if redaction is None else redaction.clean)
    return encoder.encode(
        [scheduler.cache, scheduler.reservations, scheduler.cycles, ledger.sent, ledger.open, ledger.again]
    )


def restore(table: graph.Table, world: World, ledger: Ledger) -> Known:
    """Make what was known anew; raises `StateError` if this version cannot."""
    cache, reservations, cycles, sent, waiting, again = graph.Decoder(table).decode()
    ledger.restore(sent, waiting, again)
    fresh = Cache(world)
    for name in ("_events", "_outcomes", "failures"):
        setattr(cache, name, getattr(fresh, name))
    cache.world, cache.inputs, cache.is_given_up = world, inputs.NOBODY, reservations.is_given_up
    cache.record._lines = []  # noqa: SLF001  begun anew by every cycle
    return Known(cache, reservations, cycles)
