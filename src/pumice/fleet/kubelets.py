"""The kubelets of a fleet: what watches tell of pods on their nodes is looked at as in any other cluster, in real time, and written through the client."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from pumice.api import core, decoding, duration, kinds, timestamp
from pumice.kube import errors
from pumice.kube.watches.watching import WatchSpec
from pumice.sim.kubelets import pod_life

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.api import meta
    from pumice.cache.reflector import EventType
    from pumice.kube.calls.client import Client

WATCHED: Final = WatchSpec(kinds.POD, field_selector="spec.nodeName!=", keep_raw=True)
LOOK: Final = 0.8  # seconds after which a worker turns though there is nothing to do
RETRY = 1.0
_MANNER: Final = pod_life.Manner()


class Counts(msgspec.Struct):
    """What the kubelets have done."""

    started: int = 0
    finished: int = 0
    removed: int = 0
    failed: int = 0


class _Planned(NamedTuple):
    """What comes next for a pod, and the pod as JSON."""

    cause: Any
    pod: bytes


class Kubelets:
    """Fed with events of `WATCHED`, they act through a number of workers; `nodes` gives the addresses of theirs by name, and `run` never ends by itself."""

    def __init__(
        self, client: Client, nodes: Mapping[str, str], *, workers: int = 32, now: Callable[[], float] = time.time
    ) -> None:
        self.counts = Counts()
        self._client = client
        self._nodes = nodes
        self._workers = workers
        self._now = now
        self._work: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._planned: dict[str, _Planned] = {}  # by uid
        self._idle = 0
        self.turns = 0  # of workers; there is one every second unless all are at work

    @property
    def is_held(self) -> bool:
        """Tell whether no turn can be expected: everybody is at work."""
        return self._idle == 0

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: meta.KubeObject | decoding.Malformed, raw: bytes
    ) -> None:
        """Take a watch event."""
        uid = found.metadata.uid
        ours = kind is kinds.POD and isinstance(found, core.Pod) and found.spec.node_name in self._nodes
        if event_type == "DELETED" or not ours:
            self._planned.pop(uid, None)
            return
        wanted = self._next(msgspec.json.decode(raw))
        known = self._planned.pop(uid, None)
        if wanted.act:
            self._planned[uid] = _Planned(wanted.cause, raw)
            if known is None or known.cause != wanted.cause:
                self._at(wanted.at, uid, wanted.cause)

    def _next(self, pod: Mapping[str, Any]) -> pod_life.Next:
        return pod_life.next_action(pod, int(self._now() * duration.SECOND), _MANNER)

    def _at(self, moment: int, uid: str, cause: Any) -> None:
        delay = moment / duration.SECOND - self._now()
        if delay <= 0:
            self._work.put_nowait((uid, cause))
        else:
            asyncio.get_running_loop().call_later(delay, self._work.put_nowait, (uid, cause))

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            self.turns += 1
            self._idle += 1
            found = await self._given()
            self._idle -= 1
            planned = self._planned.get(found[0]) if found is not None else None
            if found is None or planned is None or planned.cause != found[1]:
                continue
            uid, cause = found
            pod = msgspec.json.decode(planned.pod)
            try:
                await self._perform(pod, self._next(pod))
            except errors.KubeError as error:
                if not isinstance(error, errors.ApiError) or error.status not in (404, 409):
                    self.counts.failed += 1
                    self._at(int((self._now() + RETRY) * duration.SECOND), uid, cause)

    async def _given(self) -> tuple[str, Any] | None:
        """Wait for something to do, and not for ever."""
        try:
            async with asyncio.timeout(LOOK):
                return await self._work.get()
        except TimeoutError:
            return None

    async def _perform(self, pod: Mapping[str, Any], wanted: pod_life.Next) -> None:
        metadata = pod["metadata"]
        namespace, name, uid = metadata["namespace"], metadata["name"], metadata["uid"]
        status = pod_life.report(wanted, pod, self._stamp(), self._nodes[pod["spec"]["nodeName"]])
        if status is None:
            await self._client.delete(kinds.POD, namespace, name, uid=uid, grace_seconds=0)
            self.counts.removed += 1
            return
        body = {"metadata": {"uid": uid}, "status": status}
        await self._client.patch(kinds.POD, namespace, name, body, subresource="status", strategic=True)
        if wanted.act == "start":
            self.counts.started += 1
        else:
            self.counts.finished += 1

    def _stamp(self) -> str:
        return timestamp.format_timestamp(int(self._now()) * duration.SECOND)
