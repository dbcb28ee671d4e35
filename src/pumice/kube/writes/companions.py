"""The companion controller on a real cluster: it hears what the watches bring, and its writes go through the client.

What it decides is `controllers.podgroups`, the same code as in the simulated cluster. A write that fails is wanted again after a pause that doubles
each time, for its object alone. Without the lease nothing is written.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from pumice.api import names
from pumice.cache import effects
from pumice.controllers import podgroups
from pumice.kube.writes import slimming, updating, writing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType

WATCHED = podgroups.WATCHED
"""The kinds whose watches must keep the JSON of their objects."""

_AT_ONCE = 16
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 300.0

_Object = tuple[str, str, str]


class Companions:
    """Gives every pod of ours that has no group one of its own, or of its owner."""

    def __init__(
        self,
        client: writing.Api,
        *,
        fence: Callable[[], bool],
        scheduler_names: Sequence[str] = (names.SCHEDULER,),
        inherit: bool = True,
        first_pause: float = _FIRST_PAUSE,
    ) -> None:
        self._api = writing.FencedApi(client, fence)
        self._objects = updating.ApiObjects(self._api)
        self._updater = updating.ApiUpdater(self._api, time.monotonic)
        self._names = tuple(scheduler_names)
        self._groups = podgroups.CompanionGroups(self._names, inherit=inherit)
        self._first_pause = first_pause
        self._known: dict[_Object, None] = {}
        self._failures: dict[_Object, int] = {}
        self._paused: dict[_Object, None] = {}  # whose pause is over, until it is known whether they are wanted still
        self._stirred = asyncio.Event()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.written = 0
        self.failed = 0

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
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            chains: dict[tuple[str, str], list[podgroups.Request]] = {}
            for request in self._groups.reconcile():
                chains.setdefault(_group(request), []).append(request)
                self._paused.pop(_object(request), None)
            for key in self._paused:
                self._failures.pop(key, None)
            self._paused.clear()
            await asyncio.gather(*(self._write(chain) for chain in chains.values()))

    async def _write(self, chain: list[podgroups.Request]) -> None:
        """Send the writes about one group one after another: no pod may name a group that could not be created."""
        missing: effects.Failure | None = None
        async with self._slots:
            for request in chain:
                failure = missing or await self._failure(request)
                self._settle(request, failure)
                if isinstance(request, effects.Create):
                    missing = failure

    async def _failure(self, request: podgroups.Request) -> effects.Failure | None:
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
        key = _object(request)
        if failure is None or failure.code == "notfound":
            self._failures.pop(key, None)
            self.written += failure is None
            self._groups.settled(request, failure)
            return
        self.failed += 1
        tries = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(self._first_pause * 2.0 ** min(tries - 1, 30), _LONGEST_PAUSE)
        asyncio.get_running_loop().call_later(pause, self._again, request, failure)

    def _again(self, request: podgroups.Request, failure: effects.Failure) -> None:
        self._groups.settled(request, failure)
        self._paused[_object(request)] = None
        self._stirred.set()


def _object(request: podgroups.Request) -> _Object:
    if isinstance(request, effects.Create):
        metadata = request.manifest["metadata"]
        return request.kind.plural, metadata["namespace"], metadata["name"]
    return request.kind.plural, request.namespace, request.name


def _group(request: podgroups.Request) -> tuple[str, str]:
    """Give the namespace and name of the group a write is about; that of a pod's annotation if it is of a pod."""
    if isinstance(request, effects.Patch):
        annotations = request.body.get("metadata", {}).get("annotations", {})
        return request.namespace, annotations.get(names.GROUP_NAME, request.name)
    _, namespace, name = _object(request)
    return namespace, name
