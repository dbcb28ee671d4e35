"""Events about objects, as the API server keeps them.

Whatever is said about an object for the same cause (type and reason) within a while is one event: its count rises and its message is the latest, in the queue
as well as on the server. Who tells deeds rather than verdicts, as controllers do, has one event for each: that a Job was aborted is not to be forgotten
when it is resumed. What may be said of one object, and of all together, has a budget; the queue and the memory are bounded. What is beyond is dropped and
counted, never queued, and shows in the count of the next event that is sent. Events are for people to read, so nothing is tried twice.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from pumice.api import kinds, printable, timestamp
from pumice.cache.budgets import Budget, Spending
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
_DEED = "Normal"
_NAMESPACE = "default"  # of events about objects that have none
_REPEATED_WITHIN = 600 * _SECOND

OF_ONE_OBJECT: Final = Budget(burst=25, pause=60 * _SECOND)
OVERALL: Final = Budget(burst=20_000, pause=_SECOND // 500)


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
        self,
        api: Api,
        now: Callable[[], int],
        component: str,
        *,
        capacity: int = 10_000,
        memory: int = 16_384,
        of_one_object: Budget = OF_ONE_OBJECT,
        overall: Budget = OVERALL,
        deeds: bool = False,
    ) -> None:
        self._api = api
        self._now = now
        self._component = component
        self._capacity = capacity
        self._memory = memory
        self._deeds = deeds
        self._queue: deque[Told] = deque()
        self._told: OrderedDict[_Key, Told] = OrderedDict()
        self._of_objects = Spending(of_one_object, memory)
        self._of_all = Spending(overall)
        self._named = 0
        self.sent = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many events wait to be sent."""
        return len(self._queue)

    def put(self, note: Note) -> None:
        """Queue an event, or count up the one of the same cause; what is beyond a budget only counts."""
        now = self._now()
        if (message := _cut(note.message)) is not note.message:
            # Here already: what waits and what is remembered must not be as long as others may write.
            note = structs.replace(note, message=message)
        about = note.uid or f"{note.kind.plural}/{note.name}"
        key = (about, note.namespace, note.type, note.reason, message if self._deeds and note.type == _DEED else "")
        told = self._told.get(key)
        if told is not None and now - told.last <= _REPEATED_WITHIN:
            self._told.move_to_end(key)
            told.note, told.last = note, now
            told.count += 1
            if not told.queued and self._is_within_budget(about, now):
                self._enqueue(told)
        elif self._is_within_budget(about, now):
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

    def _is_within_budget(self, about: str, now: int) -> bool:
        """Spend one event about an object, unless there is no room or no budget for it."""
        if not self._has_room():
            return False
        if self._of_objects.take(about, now) and self._of_all.take("", now):
            return True
        self.dropped += 1
        return False

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
        body = {"count": told.count, "lastTimestamp": _seconds(told.last), "message": told.note.message}
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
