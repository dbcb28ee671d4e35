"""The rows that are shown, encoded once for all viewers: what is there, what is new since a version, and what was there at a moment of the last hour.

Each row is JSON from the moment it changes; a batch, a whole scene and a step back in time only put such pieces together. What is remembered is bounded in bytes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.api import duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.study.following.scene import JobRow
    from pumice.study.following.tracking import Key, Tracker, Use

MEMORY: Final = duration.HOUR
MOST_BYTES: Final = 64 << 20
"""Of rows as they were; the oldest are forgotten first."""
CATCHING_UP: Final = 8 << 20
"""Bytes of batches that are kept for pages that lost their connection."""
SAMPLES: Final = 360
SAMPLE: Final = 10 * duration.SECOND
MOST_EVICTIONS: Final = 500
MOMENTS: Final = 40
"""Changes of phase that are remembered of one job."""
_ROW: Final = 64  # bytes that keeping a row costs beside its JSON
_POD: Final = 800  # that keeping a pod as it was costs, about
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


class _Step(NamedTuple):
    """What was there before a moment."""

    time: int
    before: dict[Place, bytes | None]
    pods: dict[Key, Use | None]
    size: int


class Board:
    """Follows a tracker; `update` is called now and then, and costs what has changed."""

    def __init__(self, tracker: Tracker, *, memory: int = MEMORY, most_bytes: int = MOST_BYTES) -> None:
        self._tracker = tracker
        self._memory, self._most_bytes = memory, most_bytes
        self._rows: dict[Place, bytes] = {}
        self._facts: dict[str, bytes] = {}
        self._evictions: deque[bytes] = deque(maxlen=MOST_EVICTIONS)
        self._pulse: deque[bytes] = deque(maxlen=SAMPLES)
        self._sampled: int | None = None
        self._stood: dict[str, tuple[str, bool, int]] = {}
        self._lives: dict[str, deque[tuple[int, str]]] = {}
        self._steps: deque[_Step] = deque()
        self._step_bytes = 0
        self._batches: deque[Batch] = deque()
        self._batch_bytes = 0
        self.version = 0
        self.time = 0
        self.first = 0
        """The earliest moment that can be shown."""

    # -- what changes ------------------------------------------------------------------------------------------

    def update(self, now: int, facts: dict[str, Any] | None = None) -> Batch | None:
        """Take what is new; None if nothing is."""
        changed, tracker = self._tracker.changed(), self._tracker
        before: dict[Place, bytes | None] = {}
        for name in changed.queues:
            self._put(before, ("queues", name), tracker.queue(name))
        for key in changed.jobs:
            name, row = f"{key[0]}/{key[1]}", tracker.job(key)
            self._put(before, ("jobs", name), row)
            self._lived(name, row, now)
        for name in changed.nodes:
            self._put(before, ("nodes", name), tracker.node(name))
        told = [(name, msgspec.json.encode(value)) for name, value in (facts or {}).items()]
        news = [(name, data) for name, data in told if self._facts.get(name) != data]
        evictions = [msgspec.json.encode(each) for each in changed.evictions]
        sample = self._sample(now)
        self.time = now
        self.first = self.first or now
        if changed.pods or before:
            self._remember(now, before, changed.pods)
        if not (before or news or evictions or sample):
            return None
        self._facts.update(news)
        self._evictions.extend(evictions)
        self.version += 1
        return self._batch(before, news, evictions, sample)

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

    def _lived(self, name: str, row: JobRow | None, now: int) -> None:
        """Note what has happened to a job: a phase that it entered, room that is held for it, pods that were made again."""
        if row is None:
            self._stood.pop(name, None)
            self._lives.pop(name, None)
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
        if self._sampled is not None and now - self._sampled < SAMPLE:
            return b""
        self._sampled = now
        used, asked = self._tracker.sums()
        data = msgspec.json.encode(
            [now, {name: [used.get(name, 0), asked.get(name, 0), whole] for name, whole in self._tracker.total.items()}]
        )
        self._pulse.append(data)
        return data

    def _remember(self, now: int, before: dict[Place, bytes | None], pods: dict[Key, Use | None]) -> None:
        size = sum(_ROW + len(old or b"") for old in before.values()) + _POD * len(pods)
        self._steps.append(_Step(now, before, pods, size))
        self._step_bytes += size
        while self._steps and (self._step_bytes > self._most_bytes or self._steps[0].time < now - self._memory):
            gone = self._steps.popleft()
            self._step_bytes -= gone.size
            self.first = gone.time

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
        return self._scene(self._rows.items(), self.time)

    def at(self, moment: int) -> Pieces:
        """Give everything as it was; before what is remembered, as it was then."""
        rows: dict[Place, bytes | None] = dict(self._rows)
        for step in reversed(self._steps):
            if step.time <= moment:
                break
            rows.update(step.before)
        return self._scene(((place, row) for place, row in rows.items() if row is not None), moment)

    def pods_at(self, moment: int) -> dict[Key, Use | None]:
        """Give the pods that were otherwise at a moment, as they were; None for one that was not there."""
        pods: dict[Key, Use | None] = {}
        for step in reversed(self._steps):
            if step.time <= moment:
                break
            pods.update(step.pods)
        return pods

    def moments(self, name: str) -> list[tuple[int, str]]:
        """Give what was seen to happen to a job, with when."""
        return list(self._lives.get(name, ()))

    def _scene(self, rows: Iterable[tuple[Place, bytes | None]], time: int) -> Pieces:
        return Pieces(self._head(time), rows, self._facts.items(), self._evictions, self._pulse)

    def _head(self, time: int | None = None) -> Head:
        tracker = self._tracker
        return Head(self.version, time or self.time, self.first, tracker.pods, tracker.total)


def _tables(rows: Iterable[tuple[Place, bytes | None]]) -> bytes:
    """Put rows together by table; a row that is gone is null."""
    tables: dict[str, list[tuple[str, bytes]]] = {"queues": [], "jobs": [], "nodes": []}
    for (table, key), row in rows:
        tables[table].append((key, row or b"null"))
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), _mapping(listed)) for name, listed in tables.items()) + b"}"


def _mapping(entries: Iterable[tuple[str, bytes]]) -> bytes:
    encode = msgspec.json.encode
    return b"{" + b",".join(encode(key) + b":" + value for key, value in entries) + b"}"
