"""Events that have come in and wait: of one object no more than what it comes to, however many there were.

What two changes of one object come to is what a list would have shown instead of them: the later state. So whoever is slow misses states in between, as after a watch that broke,
and what waits never grows beyond the number of objects. Those that are gone before anybody looked were never there.

| waits | comes | is then |
|---|---|---|
| ADDED | MODIFIED | ADDED, as it is now |
| ADDED | DELETED | nothing |
| MODIFIED | MODIFIED, DELETED | the later one |
| DELETED | ADDED | MODIFIED |
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.api import kinds
    from pumice.cache.reflector import EventType

T = TypeVar("T")
Key = int | tuple[str, str]
"""A number of its own, or the version and the uid of an object."""
Event = tuple["kinds.Kind", "EventType", T]


class Inbox(Generic[T]):
    """Events in the order in which their objects were first heard of; one thread may put what another takes."""

    def __init__(self) -> None:
        self._events: dict[Key, Event[T]] = {}
        self._number = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: Event[T]) -> None:
        """Take an event that stands for itself."""
        with self._lock:
            self._number += 1
            self._events[self._number] = event

    def fold(self, key: Key, event: Event[T]) -> None:
        """Take an event together with the one that waits under that key, if one does."""
        kind, event_type, found = event
        with self._lock:
            waiting = self._events.get(key)
            if waiting is None:
                self._events[key] = event
            elif event_type != "DELETED":
                self._events[key] = (kind, "ADDED" if waiting[1] == "ADDED" else "MODIFIED", found)
            elif waiting[1] == "ADDED":
                del self._events[key]
            else:
                self._events[key] = event

    def take(self) -> Iterable[Event[T]]:
        """Give everything that waits."""
        with self._lock:
            taken, self._events = self._events, {}
        return taken.values()
