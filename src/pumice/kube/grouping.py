"""Companion groups on a real cluster: what the watches bring of pods, groups and workloads is cut to what the controllers read, and their writes go through the client while that is wanted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from pumice.api import duration, names
from pumice.controllers import podgroups
from pumice.controllers.queueing import requests
from pumice.kube import reconciling, slimming

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.controllers.queueing.requests import Answer, Request
    from pumice.kube.calls.client import Client

WATCHED: Final = podgroups.WATCHED
"""The kinds whose watches must keep the JSON of their objects."""

LEFT_ALONE: Final = 2 * duration.SECOND
"""For so long after its creation the scheduler may bind a pod, and let it name its group with that, before it is written on a pod that waits."""

TELLING = 10.0  # failures are told of once in so many seconds
_LONGEST_PAUSE: Final = 300 * duration.SECOND


class Grouping:
    """Gives every pod of ours that has no group one of its own, or of its owner, while that is wanted; `tell` hears of failures.

    With `patience`, in microseconds, pods are left to be told of their groups by whoever binds them before that is over.
    """

    def __init__(
        self,
        client: Client,
        *,
        wanted: Callable[[], bool] = lambda: True,
        scheduler_names: Sequence[str] = (names.SCHEDULER,),
        inherit: bool = True,
        patience: int = 0,
        tell: Callable[[str], None] = lambda _: None,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._names = tuple(scheduler_names)
        self._known: dict[tuple[str, str, str, str], None] = {}
        self.failures = FailureNotes(wanted, tell, seconds)
        self.reconciler = reconciling.Reconciler(
            client,
            podgroups.controllers(self._names, inherit=inherit, patience=patience),
            complain=tell,
            trim=slimming.trimmed,
            observer=self.failures,
            now=now,
            wanted=wanted,
            longest_pause=_LONGEST_PAUSE,
        )

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Take a change of what is watched; call it on the event loop."""
        if kind not in WATCHED:
            return
        metadata = found.metadata
        key = (kind.group, kind.plural, metadata.namespace, metadata.name)
        manifest = None
        if event_type != "DELETED" and slimming.matters(kind, found, self._names, prefix=names.POD_GROUP_PREFIX):
            manifest = slimming.slim(kind, raw)
        if manifest is not None:
            self._known[key] = None
            self.reconciler.take_in(kind, event_type, manifest)
        elif key in self._known:
            del self._known[key]
            named = {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}
            gone = {"metadata": {**named, "resourceVersion": metadata.resource_version}}
            self.reconciler.take_in(kind, "DELETED", gone)

    async def run(self) -> None:
        """Write what is wanted, until cancelled; start it when every watch has its list, and this process its lease."""
        await self.reconciler.work()


class FailureNotes(reconciling.Observer):
    """Counts requests that failed, and tells of them if nobody was told for a while."""

    def __init__(
        self, wanted: Callable[[], bool], tell: Callable[[str], None], seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._wanted = wanted
        self._tell = tell
        self._seconds = seconds
        self._told_at = -TELLING
        self._untold = 0
        self.count = 0

    def performed(self, request: Request, answer: Answer, seconds: float) -> None:
        """Take note of a request that was answered; an object that is gone, or was there already, is no failure."""
        del seconds
        if answer.code in ("", "exists", "notfound"):
            return
        self.count += 1
        self._untold += 1
        now = self._seconds()
        if self._wanted() and now - self._told_at >= TELLING:
            kind, namespace, name = requests.target(request)
            more = f"; {self._untold} writes failed since this was last told" if self._untold > 1 else ""
            self._tell(f"{kind.plural} {namespace}/{name}: {answer.message}{more}")
            self._told_at, self._untold = now, 0
