"""Events about objects, as the API server keeps them.

The same thing said again about the same object within a while counts up the event that is there already, in the queue as well as on the server.
The queue and the memory are bounded; what finds no room is dropped and counted. Events are for people to read, so nothing is tried twice.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from pumice.api import kinds, printable, timestamp
from pumice.cache.effects import Note  # noqa: TC001  msgspec reads the annotations at run time
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.writes.writing import Api

_Key = tuple[str, str, str, str, str]

_MISSING = 404
_SECOND = 1_000_000
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 253
_NAMESPACE = "default"  # of events about objects that have none
_REPEATED_WITHIN = 600 * _SECOND


class Told(msgspec.Struct, kw_only=True):
    """An event: what was said, how often, whether it waits or is on its way, and whether the server has it."""

    note: Note
    name: str
    first: int
    last: int
    count: int = 1
    queued: bool = True
    sent: bool = False


class EventRecorder:
    """Queues events and sends them one by one, when it is told to."""

    def __init__(
        self, api: Api, now: Callable[[], int], component: str, *, capacity: int = 10_000, memory: int = 4_096
    ) -> None:
        self._api = api
        self._now = now
        self._component = component
        self._capacity = capacity
        self._memory = memory
        self._queue: deque[Told] = deque()
        self._told: OrderedDict[_Key, Told] = OrderedDict()
        self._named = 0
        self.sent = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many events wait to be sent."""
        return len(self._queue)

    def put(self, note: Note) -> None:
        """Queue an event, or count up the one that says the same."""
        now = self._now()
        if (message := _cut(note.message)) is not note.message:
            # Here already: what waits and what is remembered must not be as long as others may write.
            note = structs.replace(note, message=message)
        key = (note.uid or f"{note.kind.plural}/{note.name}", note.namespace, note.type, note.reason, note.message)
        told = self._told.get(key)
        if told is not None and now - told.last <= _REPEATED_WITHIN:
            self._told.move_to_end(key)
            if told.queued or self._has_room():
                told.count += 1
                told.last = now
                self._enqueue(told)
        elif self._has_room():
            told = Told(note=note, name=self._name(note, now), first=now, last=now, queued=False)
            self._told[key] = told
            self._told.move_to_end(key)
            if len(self._told) > self._memory:
                self._told.popitem(last=False)
            self._enqueue(told)

    def take(self) -> Told | None:
        """Give the oldest event that waits."""
        return self._queue.popleft() if self._queue else None

    async def send(self, told: Told) -> None:
        """Write an event, or its new count; a failure drops it. What was said again meanwhile is sent later."""
        count = told.count
        try:
            if not told.sent or not await self._count_up(told):
                await self._api.create(kinds.EVENT, self._manifest(told))
                told.sent = True
        except Exception:  # noqa: BLE001  no event is worth the worker that sends it
            self.dropped += 1
            if not told.sent:
                # It may be there all the same: the next attempt must not meet it.
                told.name = self._name(told.note, self._now())
        else:
            self.sent += 1
        finally:
            told.queued = False
        if told.count > count and self._has_room():
            self._enqueue(told)

    def clear(self) -> None:
        """Drop everything that waits."""
        self.dropped += len(self._queue)
        self._queue.clear()

    def _has_room(self) -> bool:
        if len(self._queue) < self._capacity:
            return True
        self.dropped += 1
        return False

    def _enqueue(self, told: Told) -> None:
        if not told.queued:
            told.queued = True
            self._queue.append(told)

    async def _count_up(self, told: Told) -> bool:
        """Raise the count of an event on the server; False if it has expired there."""
        body = {"count": told.count, "lastTimestamp": _seconds(told.last)}
        try:
            await self._api.patch(kinds.EVENT, told.note.namespace or _NAMESPACE, told.name, body)
        except errors.ApiError as error:
            if error.status != _MISSING:
                raise
            return False
        return True

    def _name(self, note: Note, now: int) -> str:
        """Name an event after its object, the time and a number, as no other event is named."""
        self._named += 1
        suffix = f".{now:x}{self._named & 0xFFFF:04x}"
        return note.name[: _LONGEST_NAME - len(suffix)].rstrip(".-") + suffix

    def _manifest(self, told: Told) -> dict[str, Any]:
        note = told.note
        involved = {"apiVersion": note.kind.api_version, "kind": note.kind.name, "name": note.name}
        if note.namespace:
            involved["namespace"] = note.namespace
        if note.uid:
            involved["uid"] = note.uid
        return {
            "apiVersion": kinds.EVENT.api_version,
            "kind": kinds.EVENT.name,
            "metadata": {"name": told.name, "namespace": note.namespace or _NAMESPACE},
            "involvedObject": involved,
            "type": note.type,
            "reason": note.reason,
            "message": note.message,
            "count": told.count,
            "firstTimestamp": _seconds(told.first),
            "lastTimestamp": _seconds(told.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }


def _seconds(now: int) -> str:
    return timestamp.format_timestamp(now - now % _SECOND)


def _cut(message: str) -> str:
    """Make a message fit to be read, and cut it to what an event may hold, between two characters."""
    message = printable.printable(message)
    data = message.encode()
    if len(data) <= _LONGEST_MESSAGE:
        return message
    return data[: _LONGEST_MESSAGE - 3].decode(errors="ignore") + "…"
