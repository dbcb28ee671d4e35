"""The events of the store, kept for a while so that watches can follow it.

Every write has a version of its own and leaves exactly one event, so the versions kept and the events kept are the same number. A
poll costs what it delivers: a watch remembers its place in the log of its kind.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pumice.sim import errors, structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import kinds

WatchEventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
LIMIT = 100_000
BOOKMARK_EVERY = 1_000


class WatchEvent(NamedTuple):
    """One event of a watch, with what the object was before; that of a bookmark holds only a resourceVersion."""

    version: int
    type: WatchEventType
    object: Mapping[str, Any]
    previous: Mapping[str, Any] | None = None


class _Log:
    """The events of one kind that are still kept, and how many were dropped before them."""

    __slots__ = ("dropped", "events")

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []
        self.dropped = 0

    def after(self, version: int) -> int:
        """Give the place of the first event newer than a version, counted from the very first event."""
        return self.dropped + bisect_right(self.events, version, key=lambda event: event.version)

    def drop(self, version: int) -> None:
        """Forget the events up to and including a version."""
        count = self.after(version) - self.dropped
        del self.events[:count]
        self.dropped += count


class History:
    """Events by kind, at most `limit` of them in all."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.version = 0
        self.floor = 0
        self._limit = limit
        self._logs: dict[kinds.Kind, _Log] = {}

    def start(self, version: int) -> None:
        """Begin at the version that an earlier run has reached; nothing before it is known."""
        self.version = self.floor = version

    def append(self, kind: kinds.Kind, event: WatchEvent) -> None:
        """Add the event of a write; beyond the limit the older half is compacted."""
        self.log(kind).events.append(event)
        if self.version - self.floor > self._limit:
            self.compact(self.version - self._limit // 2)

    def compact(self, before: int) -> None:
        """Forget every event older than a version."""
        self.floor = max(self.floor, min(before - 1, self.version))
        for log in self._logs.values():
            log.drop(self.floor)

    def log(self, kind: kinds.Kind) -> _Log:
        """Give the log of a kind."""
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = _Log()
        return log


class Watch:
    """Follows one kind from a version on."""

    def __init__(self, history: History, kind: kinds.Kind, version: int, *, bookmarks: bool = False) -> None:
        if not history.floor <= version <= history.version:
            raise errors.GoneError(
                f"{kind.plural}: cannot watch from version {version}, "
                f"the history kept is {history.floor} to {history.version}; list again"
            )
        self.kind = kind
        self._history = history
        self._log = history.log(kind)
        self._next = self._log.after(version)
        self._bookmarks = bookmarks
        self._told = version
        self._asked = -1  # the version of the history when it was last asked

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing at all has been written since the events were last taken."""
        return self._asked == self._history.version

    def poll(self) -> list[WatchEvent]:
        """Give the events since the last poll, as copies that the caller may change."""
        return [event._replace(object=structure.copied(event.object)) for event in self.take()]

    def take(self) -> list[WatchEvent]:
        """Give the events since the last poll without copying: their objects are the store's own, to be read and never changed."""
        log = self._log
        if self._next < log.dropped:
            raise errors.GoneError(
                f"{self.kind.plural}: {log.dropped - self._next} events after version {self._told} were compacted; list again"
            )
        self._asked = self._history.version
        events = log.events[self._next - log.dropped :]
        if events:
            self._next += len(events)
            self._told = events[-1].version
        if self._bookmarks and self._history.version - self._told >= BOOKMARK_EVERY:
            events.append(self.bookmark())
        return events

    def bookmark(self) -> WatchEvent:
        """Give a bookmark: everything up to its version has been delivered."""
        log = self._log
        place = max(0, self._next - log.dropped)
        version = log.events[place].version - 1 if place < len(log.events) else self._history.version
        self._told = version
        metadata = {"resourceVersion": str(version)}
        manifest = {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": metadata}
        return WatchEvent(version, "BOOKMARK", manifest)
