"""The rows that are shown, encoded once for all viewers: what is there, what is new since a version, and what was there at a moment of the last hour.

Each row is JSON from the moment it changes; a batch, a whole scene and a step back in time only put such pieces together. What is remembered is bounded in bytes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.api import duration
from pumice.web import past
from pumice.web.past import Past

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.study.following.scene import JobRow
    from pumice.study.following.tallies import Key, Use
    from pumice.study.following.tracking import Tracker

CATCHING_UP: Final = 8 << 20
"""Bytes of batches that are kept for pages that lost their connection."""
SAMPLE: Final = 10 * duration.SECOND
PULSE: Final = duration.HOUR
"""Of which use is shown."""
MOST_EVICTIONS: Final = 500
"""That are shown at a moment."""
MOST_REMEMBERED: Final = 20_000
"""Evictions, for moments that are past."""
WORKED_OUT: Final = frozenset({"queues", "hyperNodes", "sharesProblem"})
"""Facts that are worked out when somebody asks; of a moment that is past they are worked out anew."""
MOMENTS: Final = 40
"""Changes of phase that are remembered of one job."""
_ROW: Final = 64  # bytes that keeping a row costs beside its JSON
_POD: Final = 800  # that keeping a pod as it was costs, about
_MOMENT: Final = 80  # and a moment of a life
HELD, RESTARTED = "HeldRoom", "Restarted"
"""What is noted of a job beside the phases that it enters."""

Place = tuple[str, str]


class Batch(NamedTuple):
    """What is new with a version: encoded for who may see everything, and in its pieces."""

    version: int
    data: bytes
    places: tuple[Place, ...] = ()
    facts: tuple[str, ...] = ()
    evictions: tuple[bytes, ...] = ()
    sample: bytes = b""


class Head(NamedTuple):
    """What stands before all rows."""

    version: int
    time: int
    first: int
    pods: int
    total: dict[str, int]


class Pieces(NamedTuple):
    """What a page is told, not yet put together: rows (None for one that is gone), facts, evictions and samples, each of them JSON."""

    head: Head
    rows: Iterable[tuple[Place, bytes | None]]
    facts: Iterable[tuple[str, bytes]]
    evictions: Iterable[bytes]
    pulse: Iterable[bytes]

    def data(self) -> bytes:
        """Put them together."""
        parts = [
            *(b'"%s":%s' % (name.encode(), msgspec.json.encode(each)) for name, each in self.head._asdict().items()),
            b'"rows":' + _tables(self.rows),
            b'"facts":' + _mapping(self.facts),
            b'"evictions":[' + b",".join(self.evictions) + b"]",
            b'"pulse":[' + b",".join(self.pulse) + b"]",
        ]
        return b"{" + b",".join(parts) + b"}"


class _Offer(msgspec.Struct):
    """What a node has to give."""

    allocatable: dict[str, int]


_OFFERS: Final = msgspec.json.Decoder(_Offer)


class _Before(NamedTuple):
    """What was there before a moment: rows, pods and facts that were otherwise, and the lives of jobs that ended with it."""

    rows: dict[Place, bytes | None]
    pods: dict[Key, Use | None]
    facts: dict[str, bytes]
    lives: dict[str, deque[tuple[int, str]]]

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep this."""
        rows = sum(_ROW + len(old or b"") for old in self.rows.values())
        facts = sum(_ROW + len(old) for old in self.facts.values())
        lives = sum(_ROW + _MOMENT * len(life) for life in self.lives.values())
        return rows + facts + lives + _POD * len(self.pods)


class Board:
    """Follows a tracker; `update` is called now and then, and costs what has changed."""

    def __init__(self, tracker: Tracker, bounds: past.Bounds = past.HOUR) -> None:
        self._tracker = tracker
        self._rows: dict[Place, bytes] = {}
        self._facts: dict[str, bytes] = {}
        self._evictions: deque[tuple[int, bytes]] = deque(maxlen=MOST_REMEMBERED)
        self._pulse: deque[tuple[int, bytes]] = deque(maxlen=bounds.samples)
        self._stood: dict[str, tuple[str, bool, int]] = {}
        self._lives: dict[str, deque[tuple[int, str]]] = {}
        self._past: Past[_Before] = Past(bounds.memory, bounds.rows)
        self._batches: deque[Batch] = deque()
        self._batch_bytes = 0
        self._began = 0
        self.version = 0
        self.time = 0

    @property
    def first(self) -> int:
        """The earliest moment that can be shown."""
        return max(self._began, self._past.first)

    # -- what changes ------------------------------------------------------------------------------------------

    def update(self, now: int, facts: dict[str, Any] | None = None) -> Batch | None:
        """Take what is new; None if nothing is."""
        changed, tracker = self._tracker.changed(), self._tracker
        before = _Before({}, changed.pods, {}, {})
        for name in changed.queues:
            self._put(before.rows, ("queues", name), tracker.queue(name))
        for key in changed.jobs:
            name, row = f"{key[0]}/{key[1]}", tracker.job(key)
            self._put(before.rows, ("jobs", name), row)
            self._lived(before.lives, name, row, now)
        for name in changed.nodes:
            self._put(before.rows, ("nodes", name), tracker.node(name))
        news = self._learned(before.facts, facts or {})
        evictions = [(each.time, msgspec.json.encode(each)) for each in changed.evictions]
        sample = self._sample(now)
        self.time = now
        if self._began and any(before):
            self._past.remember(now, before, before.size)
        self._began = self._began or now
        if not (before.rows or news or evictions or sample):
            return None
        self._evictions.extend(evictions)
        self.version += 1
        return self._batch(before.rows, news, [data for _, data in evictions], sample)

    def _learned(self, before: dict[str, bytes], facts: dict[str, Any]) -> list[tuple[str, bytes]]:
        """Take facts, and give those that are new; one that was not known before was not otherwise either."""
        told = [(name, msgspec.json.encode(value)) for name, value in facts.items()]
        news = [(name, data) for name, data in told if self._facts.get(name) != data]
        before |= {name: self._facts[name] for name, _ in news if name in self._facts and name not in WORKED_OUT}
        self._facts.update(news)
        return news

    def _put(self, before: dict[Place, bytes | None], place: Place, row: Any) -> None:
        old = self._rows.get(place)
        new = None if row is None else msgspec.json.encode(row)
        if new == old:
            return
        before[place] = old
        if new is None:
            del self._rows[place]
        else:
            self._rows[place] = new

    def _lived(self, ended: dict[str, deque[tuple[int, str]]], name: str, row: JobRow | None, now: int) -> None:
        """Note what has happened to a job: a phase that it entered, room that is held for it, pods that were made again."""
        if row is None:
            self._stood.pop(name, None)
            if (lived := self._lives.pop(name, None)) is not None:
                ended[name] = lived
            return
        stands, stood = (row.phase, bool(row.nominated), row.restarts), self._stood.get(name)
        if stands == stood:
            return
        self._stood[name] = stands
        if stood is None:
            return
        life = self._lives.setdefault(name, deque(maxlen=MOMENTS))
        if row.phase != stood[0]:
            life.append((now, row.phase))
        if row.nominated and not stood[1]:
            life.append((now, HELD))
        if row.restarts > stood[2]:
            life.append((now, RESTARTED))

    def _sample(self, now: int) -> bytes:
        """Note now and then how much is in use and waited for."""
        if self._pulse and now - self._pulse[-1][0] < SAMPLE:
            return b""
        used, asked = self._tracker.sums()
        data = msgspec.json.encode(
            [now, {name: [used.get(name, 0), asked.get(name, 0), whole] for name, whole in self._tracker.total.items()}]
        )
        self._pulse.append((now, data))
        return data

    def _batch(
        self, before: Iterable[Place], news: list[tuple[str, bytes]], evictions: list[bytes], sample: bytes
    ) -> Batch:
        places = tuple(before)
        rows = ((place, self._rows.get(place)) for place in places)
        pieces = Pieces(self._head(), rows, news, evictions, [sample] if sample else [])
        batch = Batch(self.version, pieces.data(), places, tuple(name for name, _ in news), tuple(evictions), sample)
        self._batches.append(batch)
        self._batch_bytes += len(batch.data)
        while self._batch_bytes > CATCHING_UP and len(self._batches) > 1:
            self._batch_bytes -= len(self._batches.popleft().data)
        return batch

    # -- what is asked -----------------------------------------------------------------------------------------

    def since(self, version: int) -> list[Batch] | None:
        """Give what is new since a version; None if that is too long ago to say."""
        if version == self.version:
            return []
        if version > self.version or not self._batches or version < self._batches[0].version - 1:
            return None
        return [batch for batch in self._batches if batch.version > version]

    def gathered(self, batches: Iterable[Batch]) -> Pieces:
        """Give what is new with some batches in one piece, as it is by now."""
        listed = list(batches)
        places = dict.fromkeys(place for batch in listed for place in batch.places)
        facts = dict.fromkeys(name for batch in listed for name in batch.facts)
        return Pieces(
            self._head(),
            ((place, self._rows.get(place)) for place in places),
            ((name, self._facts[name]) for name in facts),
            [each for batch in listed for each in batch.evictions],
            [batch.sample for batch in listed if batch.sample],
        )

    def whole(self) -> Pieces:
        """Give everything as it is."""
        evictions = [data for _, data in self._evictions][-MOST_EVICTIONS:]
        return Pieces(self._head(), self._rows.items(), self._facts.items(), evictions, self._use(self.time))

    def at(self, moment: int) -> Pieces:
        """Give everything as it was at the nearest moment that is known."""
        moment = self.nearest(moment)
        rows: dict[Place, bytes | None] = dict(self._rows)
        facts = {name: data for name, data in self._facts.items() if name not in WORKED_OUT}
        for before in self._past.since(moment):
            rows.update(before.rows)
            facts.update(before.facts)
        total: dict[str, int] = {}
        for (table, _), row in rows.items():
            if table == "nodes" and row is not None:
                for name, amount in _OFFERS.decode(row).allocatable.items():
                    total[name] = total.get(name, 0) + amount
        pods = self._tracker.pods + sum(self.pods_more(moment).values())
        head = Head(self.version, moment, self.first, pods, total)
        there = ((place, row) for place, row in rows.items() if row is not None)
        evictions = [data for time, data in self._evictions if time <= moment][-MOST_EVICTIONS:]
        return Pieces(head, there, facts.items(), evictions, self._use(moment))

    def nearest(self, moment: int) -> int:
        """Give the moment that is known which is nearest to one."""
        return min(max(moment, self.first), self.time)

    def _use(self, moment: int) -> list[bytes]:
        """Give samples of the hour before a moment."""
        return [data for time, data in self._pulse if moment - PULSE < time <= moment]

    def pods_at(self, moment: int) -> dict[Key, Use | None]:
        """Give the pods that were otherwise at a moment, as they were; None for one that was not there."""
        pods: dict[Key, Use | None] = {}
        for before in self._past.since(moment):
            pods.update(before.pods)
        return pods

    def pods_more(self, moment: int) -> dict[str, int]:
        """Say how many pods more than now each namespace had at a moment."""
        return self._tracker.pods_more(self.pods_at(moment))

    def moments(self, name: str, moment: int | None = None) -> list[tuple[int, str]]:
        """Give what was seen to happen to a job, up to a moment, with when."""
        if moment is None:
            return list(self._lives.get(name, ()))
        lived = self._lives.get(name, deque())
        for before in self._past.since(moment):
            lived = before.lives.get(name, lived)  # the one that ended first after the moment
        return [each for each in lived if each[0] <= moment]

    def _head(self) -> Head:
        return Head(self.version, self.time, self.first, self._tracker.pods, self._tracker.total)


def _tables(rows: Iterable[tuple[Place, bytes | None]]) -> bytes:
    """Put rows together by table; a row that is gone is null."""
    tables: dict[str, list[tuple[str, bytes]]] = {"queues": [], "jobs": [], "nodes": []}
    for (table, key), row in rows:
        tables[table].append((key, row or b"null"))
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), _mapping(listed)) for name, listed in tables.items()) + b"}"


def _mapping(entries: Iterable[tuple[str, bytes]]) -> bytes:
    encode = msgspec.json.encode
    return b"{" + b",".join(encode(key) + b":" + value for key, value in entries) + b"}"
