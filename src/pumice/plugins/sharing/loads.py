"""How busy nodes are, as columns: what the last answer of the source of metrics said of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.api import duration, kinds, quantity, usage
from pumice.model.task import instant

if TYPE_CHECKING:
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.nodes import NodeTable
    from pumice.model.resources import Vector

FRESH = 5 * 60_000_000  # older answers say nothing about now
DEFAULT_INTERVAL = 30_000_000
FULL = 100_000  # a whole node, in thousandths of a percent
UNKNOWN = -1


class Loads(msgspec.Struct, frozen=True):
    """Thousandths of a percent of each node's cpu and memory, and when that was measured; `UNKNOWN` where nobody has."""

    cpu: Vector
    memory: Vector
    time: Vector
    interval: int = DEFAULT_INTERVAL

    def fresh(self, now: int) -> Mask:
        """Mark nodes whose measurement is not too old."""
        fresh: Mask = (self.time >= 0) & (self.time + FRESH > now)
        return fresh

    def stale_at(self, now: int) -> int | None:
        """Return when the next measurement that still counts will be too old."""
        ends = self.time[self.fresh(now)] + FRESH
        return int(ends.min()) if len(ends) else None


def of_nodes(session: Session) -> Loads | None:
    """Return what is known of the nodes' load; None if nobody has ever measured any."""
    known = session.cluster.objects.get(kinds.NODE_USAGE.name)
    found = next((each for each in known.values() if isinstance(each, usage.NodeUsage)), None) if known else None
    if found is None:
        return None
    table = session.cluster.nodes
    derived = table.attributes.derived
    kept = derived.get(__name__)
    if kept is None or kept[0] is not found:
        kept = derived[__name__] = (found, _columns(found, table))
    columns: Loads = kept[1]
    return columns


def _columns(found: usage.NodeUsage, table: NodeTable) -> Loads:
    cpu, memory, time = (np.full(table.count, UNKNOWN, dtype=np.int64) for _ in range(3))
    measured = instant(found.time or found.metadata.creation_timestamp)
    for name, load in found.nodes.items():
        record = table.by_name.get(name)
        if record is None or record.row >= table.count:
            continue
        try:
            percents = quantity.milli(load.cpu), quantity.milli(load.memory)
        except quantity.QuantityError:
            continue  # of that node nothing is known; who made the object was told when it came
        if min(percents) >= 0:
            cpu[record.row], memory[record.row] = percents
            time[record.row] = instant(load.time) if load.time else measured
    return Loads(cpu, memory, time, _interval(found.interval))


def _interval(text: str) -> int:
    try:
        return max(0, duration.parse(text))
    except duration.DurationError:
        return DEFAULT_INTERVAL
