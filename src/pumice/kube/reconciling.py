"""Controllers on a real cluster: watches tell them what changes, and their writes go through the client, many objects side by side."""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api.meta import KubeObject
from pumice.cache import effects
from pumice.controllers.queueing import engine, requests, running, work_queue
from pumice.kube import errors
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec
from pumice.kube.writes import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.api import decoding, kinds
    from pumice.api.meta import ObjectMeta
    from pumice.cache.reflector import EventType
    from pumice.controllers.queueing.controller import Controller
    from pumice.controllers.queueing.requests import Answer, Code, Request
    from pumice.kube.calls.client import Client
    from pumice.kube.writes.eventing import EventRecorder

Manifest = dict[str, Any]
WORKERS: Final = 16
_EXISTS: Final = "AlreadyExists"
_INVALID: Final = 422


class ApiWorld:
    """Performs requests through a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def perform(self, request: Request) -> Answer:
        """Send a request and say what became of it; whatever it fails with is an answer."""
        try:
            return requests.Answer(object=await self._sent(request))
        except errors.ApiError as error:
            return requests.Answer(code=_code(request, error), message=error.message)
        except errors.KubeError as error:
            code: Code = error.code
            return requests.Answer(code=code, message=str(error))

    async def _sent(self, request: Request) -> Manifest | None:
        match request:
            case effects.Create():
                return await self._client.create(request.kind, request.manifest)
            case effects.Patch():
                where = (request.namespace, request.name)
                return await writing.patch_only(
                    self._client, request.kind, request.uid, where, request.body, subresource=request.subresource
                )
            case requests.Apply():
                where = (request.namespace, request.name)
                return await self._client.apply(
                    request.kind, *where, request.document, manager=request.manager, subresource=request.subresource
                )
            case requests.Delete():
                await self._client.delete(
                    request.kind, request.namespace, request.name, uid=request.uid, policy=request.policy
                )
                return None
            case effects.Read() | requests.Confirm():
                return await self._client.get(request.kind, request.namespace, request.name)


class Observer:
    """Is told of what is heard and what is done; does nothing with it."""

    def noticed(self, kind: kinds.Kind, event_type: EventType, manifest: Mapping[str, Any]) -> None:
        """Take note of a change of what is watched."""

    def performed(self, request: Request, answer: Answer, seconds: float) -> None:
        """Take note of a request that was answered."""


class Reconciler:
    """Runs controllers until cancelled."""

    def __init__(
        self,
        client: Client,
        controllers: Sequence[Controller],
        *,
        events: EventRecorder | None = None,
        complain: Callable[[str], None] = lambda _: None,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
        workers: int = WORKERS,
        trim: Callable[[kinds.Kind, Manifest], Manifest] | None = None,
        packed: Sequence[kinds.Kind] = (),
        narrowed: Mapping[kinds.Kind, str] | None = None,
        observer: Observer | None = None,
        wanted: Callable[[], bool] = lambda: True,
        longest_pause: int = work_queue.LONGEST_PAUSE,
    ) -> None:
        """Put them together; `narrowed` gives label selectors of kinds of which not all is wanted, `trim` and `packed` say what is kept of an object.

        While they are not `wanted` nothing is written.
        """
        self._observer = observer if observer is not None else Observer()
        self._events = events
        self._to_say = asyncio.Event()
        self._packed = frozenset(packed)
        self.engine = engine.Engine(
            controllers, tell=self._tell, complain=complain, trim=trim, packed=packed, longest_pause=longest_pause
        )
        self.runner = running.Runner(
            self.engine,
            ApiWorld(client),
            lambda: requests.Moment(now()),
            workers=workers,
            performed=self._observer.performed,
            complain=complain,
            wanted=wanted,
        )
        self.specs = [
            WatchSpec(
                kind,
                label_selector=(narrowed or {}).get(kind) or self.engine.selector(kind),
                keep_raw=True,
                squeeze=functools.partial(self._squeezed, kind) if kind in packed else None,
            )
            for kind in self.engine.watched
        ]
        self.informers = Informers(client, self.specs, self)

    def _squeezed(self, kind: kinds.Kind, raw: bytes) -> bytes:
        """Give what is kept of an object, as JSON."""
        return msgspec.json.encode(self.engine.trimmed(kind, msgspec.json.decode(raw)))

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change of what is watched."""
        metadata = found.metadata
        packed = kind in self._packed
        if packed and event_type == "ADDED" and self._is_echo(kind, metadata):
            return
        if raw:
            manifest: Manifest = msgspec.json.decode(raw)
            manifest["metadata"].pop("managedFields", None)  # nobody reads them, and they are large
        else:
            named = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
            manifest = {"metadata": {**named, "resourceVersion": metadata.resource_version}}
        self._observer.noticed(kind, event_type, manifest)
        # One that was squeezed is read as no more than an object with metadata.
        squeezed = packed and type(found) is KubeObject
        self.take_in(kind, event_type, manifest, trimmed=squeezed)

    def take_in(
        self, kind: kinds.Kind, event_type: EventType, manifest: Mapping[str, Any], *, trimmed: bool = False
    ) -> None:
        """Take a change as an object, `trimmed` if that is what is kept of it already."""
        self.engine.feed(kind, event_type, manifest, trimmed=trimmed)
        self.runner.stir()

    def _is_echo(self, kind: kinds.Kind, metadata: ObjectMeta) -> bool:
        """Tell whether an event says only what the answer to our own creation has said: so do most, where there are many."""
        known = self.engine.observed
        return known.echoed(kind, metadata.namespace, metadata.name, metadata.resource_version)

    async def run(self) -> None:
        """Follow the cluster, and take turns once every list is complete."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.informers.run())
            await self.informers.wait_synced()
            tasks.create_task(self.work())

    async def work(self) -> None:
        """Take turns until cancelled; start it once every list is complete, and it is our turn to write."""
        if self._events is None:
            await self.runner.work()
            return
        async with asyncio.TaskGroup() as working:
            saying = working.create_task(self._say(self._events))
            await self.runner.work()
            saying.cancel()

    def _tell(self, note: effects.Note) -> None:
        if self._events is not None:
            self._events.put(note)
            self._to_say.set()

    async def _say(self, events: EventRecorder) -> None:
        """Send what there is to be said, after the writes that it is about."""
        while True:
            told = events.take()
            if told is None:
                self._to_say.clear()
                await self._to_say.wait()
            else:
                await events.send(told)


def _code(request: Request, error: errors.ApiError) -> Code:
    """Say what an answer means; to the server the uid of an applied object is a wish to change it, and invalid if it is another."""
    if error.status == 409 and error.reason == _EXISTS:
        return "exists"
    another = isinstance(request, requests.Apply) and error.status == _INVALID and "metadata.uid:" in error.message
    return "conflict" if another else error.failure.code
