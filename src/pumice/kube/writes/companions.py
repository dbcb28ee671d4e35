"""The companion controller on a real cluster: it hears what the watches bring, and its writes go through the client.

What it decides is `controllers.podgroups`, the same code as in the simulated cluster. Writes about one group are sent one after another, those of its pods
and those about different groups side by side. A write that fails is wanted again after a pause that doubles each time, for its object alone.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from typing import TYPE_CHECKING

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.controllers import podgroups
from pumice.kube.writes import slimming, updating, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType

WATCHED = podgroups.WATCHED
"""The kinds whose watches must keep the JSON of their objects."""

_AT_ONCE = 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 300.0
_LOOK = 0.5  # seconds between two looks whether it is wanted again
_TELLING = 10.0  # failures are told of once in so many seconds

_Object = tuple[str, str, str]
_Group = tuple[str, str]


class Companions:
    """Gives every pod of ours that has no group one of its own, or of its owner, while that is wanted; `tell` hears of failures."""

    def __init__(
        self,
        client: writing.Api,
        *,
        wanted: Callable[[], bool] = lambda: True,
        scheduler_names: Sequence[str] = (names.SCHEDULER,),
        inherit: bool = True,
        first_pause: float = _FIRST_PAUSE,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._api = client
        self._wanted = wanted
        self._objects = updating.ApiObjects(client)
        self._updater = updating.ApiUpdater(client, time.monotonic)
        self._names = tuple(scheduler_names)
        self._groups = podgroups.CompanionGroups(self._names, inherit=inherit)
        self._first_pause = first_pause
        self._tell = tell
        self._told_at = -_TELLING
        self._untold = 0
        self._known: dict[_Object, None] = {}
        self._lines: dict[_Group, deque[podgroups.Request]] = {}  # writes that wait for their turn, or are being sent
        self._absent: dict[_Group, None] = {}  # groups that could not be created, until that is tried again
        self._failures: dict[_Object, int] = {}
        self._pausing: dict[_Object, None] = {}
        self._paused: dict[_Object, None] = {}  # whose pause is over, until it is known whether they are wanted still
        self._stirred = asyncio.Event()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.written = 0
        self.failed = 0
        self.held_back = 0  # looks at which it was not wanted

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change of what is watched; call it on the event loop."""
        if kind not in WATCHED:
            return
        metadata = found.metadata
        key = (kind.plural + kind.group, metadata.namespace, metadata.name)
        manifest = None
        if event_type != "DELETED" and slimming.matters(kind, found, self._names, prefix=names.POD_GROUP_PREFIX):
            manifest = slimming.slim(kind, raw)
        if manifest is not None:
            self._known[key] = None
            self._groups.feed(kind, event_type, manifest)
        elif key in self._known:
            del self._known[key]
            gone = {"metadata": {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}}
            self._groups.feed(kind, "DELETED", gone)
        else:
            return
        self._stirred.set()

    async def run(self) -> None:
        """Write what is wanted, until cancelled; start it when every watch has its list, and this process its lease."""
        self._stirred.set()
        async with asyncio.TaskGroup() as writers:
            while True:
                await self._stirred.wait()
                while (
                    not self._wanted()
                ):  # a lease that runs out rings no bell; somebody else may do the work meanwhile
                    self.held_back += 1
                    await asyncio.sleep(_LOOK)
                self._stirred.clear()
                for request in self._groups.reconcile():
                    self._paused.pop(_object(request), None)
                    group = _group(request)
                    line = self._lines.setdefault(group, deque())
                    line.append(request)
                    if len(line) == 1:
                        writers.create_task(self._write(group, line))
                for key in self._paused:
                    self._failures.pop(key, None)
                self._paused.clear()

    async def _write(self, group: _Group, line: deque[podgroups.Request]) -> None:
        """Send the writes about one group: no pod may name a group that could not be created, and pods of one that is there do not wait for each other."""
        while line:
            count = next((at for at, request in enumerate(line) if not _is_of_pod(request)), len(line)) or 1
            await asyncio.gather(*(self._send(group, request) for request in itertools.islice(line, count)))
            for _ in range(count):
                line.popleft()
        del self._lines[group]

    async def _send(self, group: _Group, request: podgroups.Request) -> None:
        # Whoever names a group that could not be created is wanted again when that is tried again.
        if isinstance(request, effects.Create) or group not in self._absent:
            async with self._slots:
                failure = await self._failure(request)
            self._settle(request, failure)

    async def _failure(self, request: podgroups.Request) -> effects.Failure | None:
        if not self._wanted():
            return effects.Failure("unavailable", "companion groups are not wanted now")
        try:
            match request:
                case effects.Create():
                    await self._objects.create(request)
                case effects.Patch():
                    await self._updater.patch(request)
                case podgroups.Delete():
                    await self._api.delete(request.kind, request.namespace, request.name, uid=request.uid)
        except Exception as error:  # noqa: BLE001  whatever it fails with, it is tried again
            return writing.failure_of(error)
        return None

    def _settle(self, request: podgroups.Request, failure: effects.Failure | None) -> None:
        """Take an answer; a failure is told to the controller, which will ask for the write again, after a pause."""
        key, creation = _object(request), isinstance(request, effects.Create)
        if failure is None or (failure.code == "notfound" and not creation):
            self._failures.pop(key, None)
            self.written += failure is None
            self._groups.settled(request, failure)
            return
        if creation:
            self._absent[_group(request)] = None
        self._complain(key, failure)
        if key in self._pausing:
            return
        self._pausing[key] = None
        tries = self._failures[key] = self._failures.get(key, 0) + self._wanted()
        pause = min(self._first_pause * 2.0 ** min(max(0, tries - 1), 30), _LONGEST_PAUSE)
        asyncio.get_running_loop().call_later(pause, self._again, request, failure)

    def _complain(self, key: _Object, failure: effects.Failure) -> None:
        """Count a failure, and tell of it if nobody was told for a while."""
        self.failed += 1
        self._untold += 1
        now = time.monotonic()
        if self._wanted() and now - self._told_at >= _TELLING:
            plural, namespace, name = key
            more = f"; {self._untold} writes failed since this was last told" if self._untold > 1 else ""
            self._tell(f"{plural} {namespace}/{name}: {failure.message}{more}")
            self._told_at, self._untold = now, 0

    def _again(self, request: podgroups.Request, failure: effects.Failure) -> None:
        key = _object(request)
        self._pausing.pop(key, None)
        if isinstance(request, effects.Create):
            self._absent.pop(_group(request), None)
        self._groups.settled(request, failure)
        self._paused[key] = None
        self._stirred.set()


def _object(request: podgroups.Request) -> _Object:
    if isinstance(request, effects.Create):
        metadata = request.manifest["metadata"]
        return request.kind.plural, metadata["namespace"], metadata["name"]
    return request.kind.plural, request.namespace, request.name


def _is_of_pod(request: podgroups.Request) -> bool:
    return isinstance(request, effects.Patch) and request.kind is kinds.POD


def _group(request: podgroups.Request) -> _Group:
    """Give the namespace and name of the group a write is about; that of a pod's annotation if it is of a pod."""
    if isinstance(request, effects.Patch):
        annotations = request.body.get("metadata", {}).get("annotations", {})
        return request.namespace, annotations.get(names.GROUP_NAME, request.name)
    _, namespace, name = _object(request)
    return namespace, name
