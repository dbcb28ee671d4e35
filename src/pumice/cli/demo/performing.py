"""The demonstration's story on a cluster of `pumice up`: its jobs arrive, and what happens is told line by line while kubectl sees the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, kinds, names
from pumice.cli.demo import changes, snapshot, story
from pumice.cli.demo.snapshot import State
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.cluster import Cluster
    from pumice.cli.demo.snapshot import Job, Snapshot
    from pumice.local_cluster.clock import WallClock

SPEED: Final = 10.0
_PERIOD: Final = 0.2  # seconds between two looks
_PATIENCE: Final = 10.0  # seconds until the story begins without a scheduler
_LINGER: Final = 2.0  # seconds without a running pod until the story counts as told
_LONGEST: Final = 60.0  # and as long as that while somebody waits who would fit: on a busy machine the scheduler is late, or there is none
_CLOSING: Final = "\nThat was the story; the cluster goes on."
_STUCK: Final = """ {job} still waits: it needs {minimum} pods at once, and {room} fit.

  kubectl get podgroups -A
  pumice explain job {job} --config {config}
  kubectl -n {namespace} patch podgroup {name} --type=merge -p '{{"spec": {{"minMember": {room}}}}}'     and it starts
"""
_LATE: Final = " {job} still waits and would fit: nobody has scheduled it.\n"


class Performance:
    """Runs beside the API server, in its thread."""

    def __init__(self) -> None:
        self._tell: Callable[[str], None] = print
        self._config = ""
        self._arrivals = story.arrivals()
        self._arrived: dict[str, int] = {}
        self._last: Snapshot | None = None

    def start(self, tell: Callable[[str], None], config: str) -> None:
        """Hear where to print, and which configuration the scheduler has."""
        self._tell, self._config = tell, config

    async def run(self, cluster: Cluster, clock: WallClock) -> None:
        """Let jobs arrive and tell what happens; afterwards rest until the cluster ends."""
        self._prepare(cluster)
        await _until_scheduled(cluster)
        start, quiet = cluster.now(), 0.0
        while self._arrivals or not is_told(self._last, quiet):
            how = snapshot.Look(now=cluster.now(), start=start, speed=clock.speed)
            self._submit(cluster, how.since(how.now))
            seen = self._dated(snapshot.look(cluster.store, how))
            if not _is_between(seen):
                self._report(seen)
            quiet = 0.0 if any(node.parts for node in seen.nodes) else quiet + _PERIOD
            await asyncio.sleep(_PERIOD)
        self._close()
        await asyncio.Event().wait()

    def _dated(self, seen: Snapshot) -> Snapshot:
        """Date jobs by when they were first seen: objects state whole seconds, of which each is long in a fast story."""
        jobs = tuple(
            msgspec.structs.replace(job, created=self._arrived.setdefault(job.key, seen.time)) for job in seen.jobs
        )
        return msgspec.structs.replace(seen, jobs=jobs)

    def _prepare(self, cluster: Cluster) -> None:
        for queue in story.queues():
            cluster.ensure(queue)
        for arrival in self._arrivals:
            for manifest in arrival.manifests:
                name = manifest["metadata"]["namespace"]
                cluster.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def _submit(self, cluster: Cluster, passed: int) -> None:
        while self._arrivals and self._arrivals[0].second * duration.SECOND <= passed:
            for manifest in self._arrivals.pop(0).manifests:
                cluster.ensure(_restless(manifest))

    def _report(self, seen: Snapshot) -> None:
        if self._last is None:
            self._tell(f"{snapshot.clock(seen.time)}  {changes.opening(seen)}")
        for change in changes.between(self._last, seen):
            self._tell(f"{snapshot.clock(change.time)}  {change.title}: {change.text}")
        self._last = seen

    def _close(self) -> None:
        """Say who still waits, and what would help."""
        seen = self._last
        for job in seen.jobs if seen is not None else ():
            if job.waits and seen is not None:
                self._tell(_CLOSING + self._helped(job, _room(job, seen)))

    def _helped(self, job: Job, room: int) -> str:
        if room >= job.minimum:
            return _LATE.format(job=job.key)
        namespace, _, name = job.key.partition("/")
        about = {"job": job.key, "minimum": job.minimum, "room": room, "namespace": namespace, "name": name}
        return _STUCK.format(config=self._config, **about)


def is_told(seen: Snapshot | None, quiet: float) -> bool:
    """Tell whether nothing more is to be expected, after so many seconds without a running pod."""
    waiting = [job for job in seen.jobs if job.waits and _room(job, seen) >= job.minimum] if seen is not None else []
    return quiet >= (_LONGEST if waiting else _LINGER)


async def _until_scheduled(cluster: Cluster) -> None:
    """Wait until a scheduler has looked at the queues, for a while: there may be none."""
    key = Key(kinds.QUEUE, "", names.DEFAULT_QUEUE)
    for _ in range(round(_PATIENCE / _PERIOD)):
        if (cluster.store.find(key) or {}).get("status"):
            return
        await asyncio.sleep(_PERIOD)


def _is_between(seen: Snapshot) -> bool:
    """Tell whether the binds of a gang are still coming in, one after the other."""
    return any(0 < len(job.members) - job.count(State.WAITING) < job.minimum for job in seen.jobs)


def _room(job: Job, seen: Snapshot) -> int:
    each = max((member.cpu for member in job.members), default=0) or 1  # who asks for nothing fits anyway
    return sum(node.cpu // each for node in seen.nodes)


def _restless(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Give a pod that ends when its time is over instead of being started again."""
    if manifest["kind"] != kinds.POD.name:
        return dict(manifest)
    return {**manifest, "spec": {**manifest["spec"], "restartPolicy": "Never"}}
