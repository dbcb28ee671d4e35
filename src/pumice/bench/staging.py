"""A workload on its stage: a scheduler fed through JSON as by a watch, and a world that binds, confirms and ends what it is told to."""

from __future__ import annotations

import itertools
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pumice.api import kinds
from pumice.bench import manifests
from pumice.bench.counting import Counters, CountingEngine, CountingScheduler, EventCounter, MeasuredScheduler
from pumice.bench.workloads import Jobs, pods_of
from pumice.cache import effects
from pumice.cache.cache import Cache
from pumice.cache.options import Options
from pumice.cache.reflector import Reflector
from pumice.framework import configuration, registry
from pumice.kube.watches import arrivals
from pumice.kube.watches.sharing import Sharing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pumice.bench.workloads import Workload
    from pumice.cache.reflector import EventType

START = 1_767_225_600_000_000
BATCH = 500
"""Objects that are written as JSON before they are decoded, which alone is measured."""

Change = tuple[kinds.Kind, "EventType", manifests.Manifest]


class Sink:
    """A world that takes every effect and answers none."""

    def __init__(self, counters: Counters) -> None:
        self.binds: list[effects.Bind] = []
        self.prepared = 0  # binds before which something is to be written, which nobody here does
        self._counters = counters

    def send(self, effect: effects.Effect, /) -> None:
        """Keep binds, count the rest."""
        match effect:
            case effects.Bind():
                self.binds.append(effect)
                self._counters.binds += 1
            case effects.Prepare():
                self.prepared += 1
                self._counters.binds += 1
            case effects.Evict():
                self._counters.evictions += 1
            case effects.Patch():
                self._counters.patches += 1
            case effects.Note():
                self._counters.notes += 1

    @property
    def placed(self) -> int:
        """How many pods were sent to nodes."""
        return len(self.binds) + self.prepared


class Live(NamedTuple):
    """A job on the stage: the name of its group, what it is one of, and its number there."""

    name: str
    jobs: Jobs
    number: int


class Stage:
    """One scheduler with its world."""

    def __init__(
        self,
        workload: Workload,
        *,
        counting: bool = False,
        plain: bool = False,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.workload = workload
        self.counters = Counters()
        self.world = Sink(self.counters)
        self.cache = Cache(self.world, Options(plain=plain))
        self.cache.inputs = EventCounter(self.counters)
        catalog = registry.catalog()
        text = workload.configuration
        loaded = configuration.load(text, catalog) if text else configuration.default(catalog)
        self.time = START
        self.decoding = 0.0  # processor seconds
        self._tell = tell
        self._queues = workload.queue_names()
        self._versions = itertools.count(1)
        self._sharing = Sharing()
        self._reflectors: dict[kinds.Kind, Reflector[arrivals.Arrival]] = {}
        self._living: deque[Live] = deque()
        self._waiting: dict[str, tuple[Live, int]] = {}
        kind = CountingScheduler if counting else MeasuredScheduler
        self.scheduler = kind(self.cache, loaded, lambda: self.time)
        if isinstance(self.scheduler.engine, CountingEngine):
            self.scheduler.engine.counters = self.counters

    # -- what comes in -----------------------------------------------------------------------------------------

    def feed(self, changes: Iterable[Change]) -> int:
        """Write changes as JSON, decode them as a watch does, and queue them; returns how many."""
        fed, rest = 0, iter(changes)
        while batch := list(itertools.islice(rest, BATCH)):
            written = [(kind, event, msgspec.Raw(self._write(kind, manifest))) for kind, event, manifest in batch]
            start = time.process_time()
            for kind, event, raw in written:
                self._take(kind, event, raw)
            self.decoding += time.process_time() - start
            fed += len(batch)
            if fed % 100_000 == 0:
                self._tell(f"{fed:,} objects decoded")
        return fed

    def _write(self, kind: kinds.Kind, manifest: manifests.Manifest) -> bytes:
        metadata = manifest["metadata"]
        name = f"{metadata.get('namespace', '')}/{metadata['name']}"
        metadata["uid"] = manifests.uid_of(f"{kind.name} {name}")
        metadata["resourceVersion"] = str(next(self._versions))
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        return msgspec.json.encode(manifest)

    def _take(self, kind: kinds.Kind, event: EventType, raw: msgspec.Raw) -> None:
        reflector = self._reflectors.get(kind)
        if reflector is None:
            reflector = self._reflectors[kind] = Reflector(kind, arrivals.identify, arrivals.tombstone)
        for type_, arrived in reflector.event(event, arrivals.arrival(kind, raw, keep=False, sharing=self._sharing)):
            self.cache.feed(kind, type_, arrived.object)

    def apply(self) -> float:
        """Bring the model up to date; returns processor seconds."""
        start = time.process_time()
        self.cache.apply(self.time)
        return time.process_time() - start

    # -- the world ---------------------------------------------------------------------------------------------

    def furnish(self) -> Iterator[Change]:
        """Give queues, classes, nodes and the jobs that run."""
        work = self.workload
        for name in dict.fromkeys(["root", "default", *self._queues]):
            yield kinds.QUEUE, "ADDED", manifests.queue(name)
        for value in sorted({jobs.priority for jobs in (*work.existing, *work.arrivals)} - {0}):
            yield kinds.PRIORITY_CLASS, "ADDED", manifests.priority_class(value)
        yield from (self.node(index) for index in range(work.nodes.count))
        if work.nodes.numa is not None:
            for index in range(work.nodes.count):
                yield kinds.NUMATOPOLOGY, "ADDED", manifests.numatopology(index, work.nodes.cpu, work.nodes.numa)

        if work.nodes.devices is not None:
            yield kinds.DEVICE_CLASS, "ADDED", manifests.device_class()
            for index in range(work.nodes.count):
                yield kinds.RESOURCE_SLICE, "ADDED", manifests.resource_slice(index, work.nodes.devices)

    def node(self, index: int) -> Change:
        """Give one node."""
        offered = self.workload.nodes
        labels = {key: values[index % len(values)] for key, values in offered.labels.items()}
        made = manifests.node(index, offered.cpu, offered.memory, offered.pods, **labels)
        made["metadata"]["annotations"] = dict(offered.annotations)
        made["status"]["allocatable"] |= offered.offers
        return kinds.NODE, "ADDED", manifests.full_node(made) if self.workload.detail == "full" else made

    def settled(self) -> Iterator[Change]:
        """Give the jobs that run, their pods on the nodes in turn."""
        turn = itertools.count()
        for kind, jobs in enumerate(self.workload.existing):
            for number in range(jobs.jobs):
                live = Live(f"old-{kind}-{number}", jobs, number)
                self._living.append(live)
                yield from self._running(live, turn)

    def _running(self, live: Live, turn: Iterator[int]) -> Iterator[Change]:
        yield self._group(live, "Running")
        for index in range(live.jobs.size_of(live.number)):
            where = manifests.node_name(next(turn) % self.workload.nodes.count)
            yield kinds.POD, "ADDED", self._pod(live, index, where)

    def arriving(self, portion: int) -> Iterator[Change]:
        """Give the jobs that wait, one portion of them."""
        portions = self.workload.portions
        for kind, jobs in enumerate(self.workload.arrivals):
            for number in range(jobs.jobs * portion // portions, jobs.jobs * (portion + 1) // portions):
                yield from self.arrive(Live(f"new-{kind}-{number}", jobs, number))

    def arrive(self, live: Live) -> Iterator[Change]:
        """Give one job that waits."""
        yield self._group(live, "Inqueue")
        for index in range(live.jobs.size_of(live.number)):
            self._waiting[f"{live.name}-worker-{index}"] = (live, index)
            made = self._pod(live, index, "")
            if live.jobs.devices:
                yield kinds.RESOURCE_CLAIM, "ADDED", manifests.claim(made, live.jobs.devices, live.jobs.selector)
            yield kinds.POD, "ADDED", made

    def ending(self, count: int) -> Iterator[Change]:
        """Take the oldest jobs away, and give as many equal ones instead."""
        for _ in range(min(count, len(self._living))):
            live = self._living.popleft()
            for index in range(live.jobs.size_of(live.number)):
                yield kinds.POD, "DELETED", self._pod(live, index, "")
            yield kinds.POD_GROUP, "DELETED", self._group(live, "Running")[2]
            again = Live(f"again-{live.name.removeprefix('again-')}-{self.scheduler.cycles}", live.jobs, live.number)
            self._living.append(again)
            yield from self.arrive(again)

    def confirming(self) -> Iterator[Change]:
        """Give what the API server and kubelets say of the pods that were bound: their nodes, then that they run."""
        binds, self.world.binds = self.world.binds, []
        for bind in binds:
            live, index = self._waiting.pop(bind.name)
            bound, runs = (self._pod(live, index, bind.node) for _ in range(2))
            bound["status"] = {"phase": "Pending"}
            for each in (bound, runs):
                each["metadata"]["annotations"] |= bind.annotations
                yield kinds.POD, "MODIFIED", each

    def _group(self, live: Live, phase: str) -> Change:
        """Give the group of a job; where groups have to be let in, it says what it needs."""
        jobs, queue = live.jobs, self._queues[live.number % len(self._queues)]
        spec: dict[str, Any] = {"priorityClassName": f"priority-{jobs.priority}"} if jobs.priority else {}
        if self.workload.votes:
            cpu, memory = jobs.shapes.at(live.number, jobs.first_pod(live.number))
            needed = {"cpu": f"{cpu * jobs.minimum}m", "memory": f"{memory * jobs.minimum}Mi"}
            spec["minResources"] = needed
            phase = "Pending" if phase == "Inqueue" else phase
        return kinds.POD_GROUP, "ADDED", manifests.group(live.name, jobs.minimum, queue, phase, **spec)

    def _pod(self, live: Live, index: int, node: str) -> manifests.Manifest:
        jobs, number = live.jobs, live.jobs.first_pod(live.number) + index
        cpu, memory = jobs.shapes.at(live.number, number)
        spec: dict[str, Any] = dict(jobs.pod)
        if jobs.priority:
            spec["priority"] = jobs.priority
        made = manifests.pod(live.name, index, f"{cpu}m", f"{memory}Mi", node, **spec)
        if jobs.labels:
            made["metadata"]["labels"] = dict(jobs.labels)
        made["metadata"]["annotations"] |= jobs.annotations
        resources = made["spec"]["containers"][0]["resources"]
        if jobs.asks or jobs.guaranteed:
            resources["requests"] |= jobs.asks
            resources["limits"] = dict(resources["requests"] if jobs.guaranteed else jobs.asks)
        return manifests.full_pod(made, number) if self.workload.detail == "full" else made

    def requests(self) -> list[tuple[int, int, int]]:
        """Return what the pods ask for that are measured: those that arrive, or those that come as others end."""
        arrive = self.workload.requests()
        if arrive:
            return arrive
        return [(cpu, memory * 2**20, 1) for jobs in self.workload.existing for _, _, cpu, memory in pods_of(jobs)]
