"""Controllers on a real cluster: watches tell them what changes, and their writes go through the client, many objects side by side."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.cache import effects
from pumice.controllers.queueing import engine, requests
from pumice.kube import errors
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec
from pumice.kube.writes import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.controllers.queueing.engine import Controller, Turn
    from pumice.controllers.queueing.requests import Answer, Code, Request, Step
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
    ) -> None:
        self._world = ApiWorld(client)
        self._events = events
        self._now = now
        self._workers = workers
        self._stirred = asyncio.Event()
        tell = events.put if events is not None else _unsaid
        self.engine = engine.Engine(controllers, tell=tell, complain=complain)
        specs = [WatchSpec(kind, keep_raw=True) for kind in self.engine.watched]
        self.informers = Informers(client, specs, self)

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change of what is watched."""
        metadata = found.metadata
        if raw:
            manifest: Manifest = msgspec.json.decode(raw)
        else:
            named = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
            manifest = {"metadata": {**named, "resourceVersion": metadata.resource_version}}
        self.engine.feed(kind, event_type, manifest)
        self._stirred.set()

    async def run(self) -> None:
        """Follow the cluster, and take turns once every list is complete."""
        async with asyncio.TaskGroup() as running:
            running.create_task(self.informers.run())
            await self.informers.wait_synced()
            for _ in range(self._workers):
                running.create_task(self._work())
            if self._events is not None:
                running.create_task(self._say(self._events))

    async def _work(self) -> None:
        while True:
            turn = self.engine.take(requests.Moment(self._now()))
            if turn is None:
                await self._idle()
                continue
            while turn.left:
                steps = self.engine.next_steps(turn)
                await asyncio.gather(*(self._step(turn, step) for step in steps))
            self.engine.finish(turn, requests.Moment(self._now()))
            self._stirred.set()

    async def _step(self, turn: Turn, step: Step) -> None:
        answer = await self._world.perform(step.request)
        self.engine.answered(turn, step, answer, self._now())

    async def _idle(self) -> None:
        """Wait for an event, for the end of somebody's turn, or until something is due."""
        self._stirred.clear()
        due = self.engine.queue.next_due(self._now())
        limit = None if due is None else max(0.0, (due - self._now()) / 1e6)
        try:
            async with asyncio.timeout(limit):
                await self._stirred.wait()
        except TimeoutError:
            return

    async def _say(self, events: EventRecorder) -> None:
        """Send what there is to be said, after the writes that it is about."""
        while True:
            told = events.take()
            if told is None:
                await asyncio.sleep(0.05)
            else:
                await events.send(told)


def _code(request: Request, error: errors.ApiError) -> Code:
    """Say what an answer means; to the server the uid of an applied object is a wish to change it, and invalid if it is another."""
    if error.status == 409 and error.reason == _EXISTS:
        return "exists"
    another = isinstance(request, requests.Apply) and error.status == _INVALID and "metadata.uid:" in error.message
    return "conflict" if another else error.failure.code


def _unsaid(_: effects.Note) -> None:
    pass
