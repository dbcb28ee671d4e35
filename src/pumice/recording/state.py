"""All that a scheduler knows, once its configuration was brought to life anew: its cache, its reservations, the number of its cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.cache import inputs
from pumice.cache.cache import Cache
from pumice.cache.effects import Answerable
from pumice.framework.record import CycleRecord, Verdict
from pumice.framework.reservations import Reservations
from pumice.model.attributes import Attributes
from pumice.recording import classes, graph, graph_reading

if TYPE_CHECKING:
    from pumice.cache.effects import World
    from pumice.recording.effects import Ledger
    from pumice.recording.redaction import Redaction
    from pumice.scheduler import Scheduler

# What a cache is joined to, and what waits to be taken in: the former is joined anew, the latter comes again as input.
_LEFT_OUT: Final[dict[type, frozenset[str]]] = {
    Cache: frozenset({"world", "inputs", "is_given_up", "_events", "_outcomes", "failures"}),
    CycleRecord: frozenset({"_lines"}),
    Attributes: frozenset({"derived"}),  # plugins work it out again, and it may be of classes of anybody's
}
_PARTS: Final = (Cache, Reservations, int, int, dict, dict)


class Known:
    """What was known: everything that a scheduler is made of anew."""

    def __init__(self, cache: Cache, reservations: Reservations, cycles: int) -> None:
        self.cache = cache
        self.reservations = reservations
        self.cycles = cycles


def capture(scheduler: Scheduler, ledger: Ledger, redaction: Redaction | None) -> graph.Captured:
    """Copy a scheduler between two cycles; a copy that nobody else sees needs no redaction."""
    rules = graph.Rules(left_out=_LEFT_OUT, later={(Verdict, "said"): lambda verdict: verdict.text})
    if redaction is not None:
        rules.secret_key, rules.conceal, rules.clean = names.LAST_APPLIED, redaction.checksum, redaction.clean
    waiting = [ledger.sent, dict(ledger.open), dict(ledger.again)]
    return graph.capture([scheduler.cache, scheduler.reservations, scheduler.cycles, *waiting], rules)


def restore(table: graph.Table, world: World, ledger: Ledger) -> Known:
    """Make what was known anew; raises `StateError` if this version cannot."""
    cache, reservations, cycles, sent, waiting, again = _checked(graph_reading.Reader(table).root())
    ledger.restore(sent, waiting, again)
    fresh = Cache(world)
    for name in ("_events", "_outcomes", "failures"):
        setattr(cache, name, getattr(fresh, name))
    cache.world, cache.inputs, cache.is_given_up = world, inputs.NOBODY, reservations.is_given_up
    cache.record._lines = []  # noqa: SLF001  begun anew by every cycle
    columns = cache.cluster.nodes._attributes  # noqa: SLF001  as above
    if columns is not None:
        columns[2].derived = {}
    return Known(cache, reservations, cycles)


def _checked(root: Any) -> Any:
    """Return what a state consists of, each part of the class that it has to be."""
    if type(root) is not list or len(root) != len(_PARTS):
        raise classes.StateError(f"a state has {len(_PARTS)} parts")
    for part, kind in zip(root, _PARTS, strict=True):
        if type(part) is not kind:
            raise classes.StateError(f"a {type(part).__name__} stands where a {kind.__name__} belongs")
    waiting, again = root[4:]
    effects = all(type(key) is int and isinstance(each, Answerable) for key, each in waiting.items())
    if not effects or not all(type(key) is type(count) is int for key, count in again.items()):
        raise classes.StateError("what was sent and not answered cannot be read")
    return root
