"""The kubelets of a fleet: they start what is bound to their nodes, end what has run its time, and finish what is terminating.

The same rules as in the simulated cluster, in real time and over the API.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pumice.api import core, decoding, duration, kinds, names, timestamp
from pumice.kube import errors
from pumice.sim import kubelet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pumice.api import meta
    from pumice.cache.reflector import EventType
    from pumice.kube.calls.client import Client

PodChange = Literal["start", "finish", "remove"]
FINISHED = frozenset({names.PHASE_SUCCEEDED, names.PHASE_FAILED})
_RETRY = 1.0


class Counts(msgspec.Struct):
    """What the kubelets have done."""

    started: int = 0
    finished: int = 0
    removed: int = 0
    failed: int = 0


class Kubelets:
    """Fed with pod events, they act through a number of workers; `run` never ends by itself."""

    def __init__(
        self, client: Client, nodes: Collection[str], *, workers: int = 32, now: Callable[[], float] = time.time
    ) -> None:
        self.counts = Counts()
        self._client = client
        self._nodes = frozenset(nodes)
        self._workers = workers
        self._now = now
        self._pods: dict[str, core.Pod] = {}
        self._work: asyncio.Queue[tuple[PodChange, str]] = asyncio.Queue()
        self._planned: dict[str, tuple[PodChange, float]] = {}  # uid -> the timer that is set

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: meta.KubeObject | decoding.Malformed, raw: bytes = b""
    ) -> None:
        """Take a watch event."""
        del raw
        if kind is not kinds.POD or not isinstance(found, core.Pod) or found.spec.node_name not in self._nodes:
            if event_type == "DELETED":
                self._forget(found.metadata.uid)
            return
        uid = found.metadata.uid
        if event_type == "DELETED":
            self._forget(uid)
            return
        self._pods[uid] = found
        self._plan(uid, found)

    def _forget(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._planned.pop(uid, None)

    def _plan(self, uid: str, pod: core.Pod) -> None:
        """Do at once, or set a timer for, what the pod's state asks for next."""
        metadata = pod.metadata
        if metadata.deletion_timestamp:
            ends = pod.status.phase in FINISHED
            self._at(self._now() if ends else _seconds(metadata.deletion_timestamp, self._now()), "remove", uid)
        elif pod.status.phase in ("", names.PHASE_PENDING):
            self._at(self._now(), "start", uid)
        elif pod.status.phase == names.PHASE_RUNNING and (text := metadata.annotations.get(names.RUN_TIME)):
            run_time, _, _ = kubelet.read_plan(text, metadata.annotations.get(names.EXIT))
            if run_time is not None:
                started = _seconds(pod.status.start_time, self._now())
                self._at(started + run_time / duration.SECOND, "finish", uid)

    def _at(self, moment: float, change: PodChange, uid: str) -> None:
        if self._planned.get(uid) == (change, moment):
            return
        self._planned[uid] = (change, moment)
        delay = moment - self._now()
        if delay <= 0:
            self._work.put_nowait((change, uid))
        else:
            asyncio.get_running_loop().call_later(delay, self._due, change, uid, moment)

    def _due(self, change: PodChange, uid: str, moment: float) -> None:
        if self._planned.get(uid) == (change, moment):
            self._work.put_nowait((change, uid))

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            change, uid = await self._work.get()
            pod = self._pods.get(uid)
            if pod is None:
                continue
            try:
                await self._do(change, pod)
            except errors.ApiError as error:
                self.counts.failed += error.status not in (404, 409)
                if error.status not in (404, 409):
                    self._again(change, uid)
            except errors.KubeError:
                self.counts.failed += 1
                self._again(change, uid)

    def _again(self, change: PodChange, uid: str) -> None:
        self._planned.pop(uid, None)
        if uid in self._pods:
            self._at(self._now() + _RETRY, change, uid)

    async def _do(self, change: PodChange, pod: core.Pod) -> None:
        metadata = pod.metadata
        if change == "remove":
            await self._client.delete(kinds.POD, metadata.namespace, metadata.name, uid=metadata.uid, grace_seconds=0)
            self.counts.removed += 1
            return
        if metadata.deletion_timestamp:
            return
        status = self._running(pod) if change == "start" else self._ended(pod)
        await self._client.patch(
            kinds.POD,
            metadata.namespace,
            metadata.name,
            {"metadata": {"uid": metadata.uid}, "status": status},
            subresource="status",
            strategic=True,
        )
        if change == "start":
            self.counts.started += 1
        else:
            self.counts.finished += 1

    def _running(self, pod: core.Pod) -> dict[str, Any]:
        when = self._stamp()
        containers = [
            {
                "name": container.name,
                "image": container.image,
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": when}},
            }
            for container in pod.spec.containers
        ]
        ready = [
            {"type": name, "status": "True", "lastTransitionTime": when}
            for name in ("Initialized", names.CONDITION_READY, "ContainersReady")
        ]
        return {
            "phase": names.PHASE_RUNNING,
            "startTime": when,
            "conditions": ready,
            "containerStatuses": containers,
        }

    def _ended(self, pod: core.Pod) -> dict[str, Any]:
        annotations = pod.metadata.annotations
        _, code, _ = kubelet.read_plan(
            annotations.get(names.RUN_TIME), annotations.get(names.EXIT), annotations.get(names.EXIT_CODE)
        )
        phase, when = names.PHASE_FAILED if code else names.PHASE_SUCCEEDED, self._stamp()
        ended = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": pod.status.start_time or when,
            "finishedAt": when,
        }
        containers = [
            {
                "name": container.name,
                "image": container.image,
                "imageID": "",
                "ready": False,
                "started": False,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
            for container in pod.spec.containers
        ]
        unready = [
            {"type": name, "status": "False", "lastTransitionTime": when}
            for name in (names.CONDITION_READY, "ContainersReady")
        ]
        return {"phase": phase, "conditions": unready, "containerStatuses": containers}

    def _stamp(self) -> str:
        return timestamp.format_timestamp(int(self._now()) * duration.SECOND)


def _seconds(text: str | None, default: float) -> float:
    try:
        return timestamp.parse(text or "") / duration.SECOND
    except timestamp.TimestampError:
        return default
