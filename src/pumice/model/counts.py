"""Counts of pods per node and per topology domain, kept up to date as pods come, go, and start to go.

A count holds only the nodes that have something to count, so thousands of them are cheap. What is asked for is also kept as vectors over domains
(a domain count), which follow every change; there is a bound on how many are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from pumice.model.domains import Division, Domains
    from pumice.model.nodes import NodeRecord
    from pumice.model.pickers import Picker
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class Counted(Protocol):
    """Pods that are counted alike (`kinship.Kin`)."""

    members: dict[str, Task]
    counts: dict[Count, None]


class DomainCount:
    """A count by domains, terminating pods apart; the last place of a vector is for nodes without a domain and stays 0."""

    __slots__ = ("_going", "_going_total", "_some_went", "_staying", "_staying_total", "domains", "state")

    def __init__(self, domains: Domains, state: tuple[int, int]) -> None:
        self.domains = domains
        self.state = state
        self._staying: Vector = np.zeros(domains.size + 1, dtype=np.int64)
        self._going: Vector = np.zeros(domains.size + 1, dtype=np.int64)
        self._staying_total = 0
        self._going_total = 0
        self._some_went = False

    def add(self, row: int, amount: int, *, going: bool) -> None:
        """Add to the domain of a node."""
        domains = self.domains
        if row >= len(domains.codes) or (domains.counted is not None and not domains.counted[row]):
            return
        code = domains.codes[row]
        if code < 0:
            return
        if going:
            self._going[code] += amount
            self._going_total += amount
            self._some_went = True
        else:
            self._staying[code] += amount
            self._staying_total += amount

    def present(self, *, released: bool) -> Vector:
        """Return what counts in each domain: everybody, or everybody who is not terminating."""
        if released or not self._some_went:
            return self._staying
        everybody: Vector = self._staying + self._going
        return everybody

    def total(self, *, released: bool) -> int:
        """Return what counts in all domains together."""
        return self._staying_total if released else self._staying_total + self._going_total


class Count:
    """Pods by node, apart from those that are terminating there; `amount` may stand for a weight."""

    __slots__ = ("asked", "by_division", "going", "kins", "pickers", "staying")

    def __init__(self, pickers: tuple[Picker, ...]) -> None:
        # A pod is meant if every picker picks it.
        self.pickers = pickers
        self.staying: dict[NodeRecord, int] = {}
        self.going: dict[NodeRecord, int] = {}
        self.kins: dict[Counted, None] = {}
        self.by_division: dict[Division, DomainCount] = {}
        self.asked = True

    @property
    def anybody(self) -> bool:
        """Tell whether anything is counted anywhere."""
        return bool(self.staying or self.going)

    def add(self, record: NodeRecord, amount: int, *, going: bool) -> None:
        """Add on a node."""
        sums = self.going if going else self.staying
        total = sums.get(record, 0) + amount
        if total:
            sums[record] = total
        else:
            sums.pop(record, None)
        for known in self.by_division.values():
            known.add(record.row, amount, going=going)


class DomainCounts:
    """Makes counts by domains and bounds how many are kept, the ones asked for longest ago going first."""

    def __init__(self, limit: int = 512) -> None:
        self._limit = limit
        self._kept: dict[tuple[Count, Division], None] = {}

    def of(self, count: Count, division: Division, domains: Domains, state: tuple[int, int]) -> DomainCount:
        """Return the count by the domains of a division, made anew if nodes changed since."""
        key = (count, division)
        known = count.by_division.get(division)
        if known is None or known.state != state:
            known = count.by_division[division] = DomainCount(domains, state)
            for sums, going in ((count.staying, False), (count.going, True)):
                for record, amount in sums.items():
                    known.add(record.row, amount, going=going)
        self._kept.pop(key, None)
        self._kept[key] = None
        if len(self._kept) > self._limit:
            oldest, part = next(iter(self._kept))
            self._drop(oldest, part)
        return known

    def _drop(self, count: Count, division: Division) -> None:
        self._kept.pop((count, division), None)
        count.by_division.pop(division, None)

    def forget(self, count: Count) -> None:
        """Drop everything by domains of a count."""
        for division in list(count.by_division):
            self._drop(count, division)
