"""Clusters to measure on, built through the cache as a watch would build them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.bench.manifests import group, node, pod, queue
from pumice.cache import effects
from pumice.cache.cache import Cache
from pumice.framework import configuration, registry
from pumice.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pumice.framework.session import Session

__all__ = ["START", "Bench", "Sink", "group", "node", "pod", "queue", "shared"]

START = 1_750_000_000_000_000


class Sink:
    """A world that takes every effect and answers none."""

    def __init__(self) -> None:
        self.binds: list[effects.Bind] = []
        self.evictions: list[effects.Evict] = []
        self.patches: list[effects.Patch] = []

    def send(self, effect: effects.Effect, /) -> None:
        """Keep binds, evictions and patches."""
        match effect:
            case effects.Bind():
                self.binds.append(effect)
            case effects.Evict():
                self.evictions.append(effect)
            case effects.Patch():
                self.patches.append(effect)


class Bench:
    """A scheduler on a sink, fed by hand."""

    def __init__(self, config: str | None = None) -> None:
        self.world = Sink()
        self.cache = Cache(self.world)
        catalog = registry.catalog()
        loaded = configuration.load(config, catalog) if config else configuration.default(catalog)
        self.time = START
        self.scheduler = Scheduler(self.cache, loaded, lambda: self.time)
        self._uid = 0
        self.feed([queue("root"), queue("default")])

    def feed(self, manifests: Iterable[dict[str, Any]]) -> None:
        """Feed manifests as added."""
        for manifest in manifests:
            self._uid += 1
            manifest["metadata"].setdefault("uid", f"u{self._uid:07d}")
            manifest["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            kind = kinds.find(manifest["apiVersion"], manifest["kind"])
            if kind is None:
                raise ValueError(f"unknown kind {manifest['kind']}")
            self.cache.feed(kind, "ADDED", manifest)

    def apply(self) -> None:
        """Bring the model up to date."""
        self.cache.apply(self.time)

    def decide(self) -> Session:
        """Open a session and run all actions; what a cycle does between applying events and writing statuses."""
        engine = self.scheduler.engine
        session = engine.open(self.cache.record, self.cache, number=1, now=self.time)
        engine.decide(session)
        if session.failures:
            raise session.failures[0]
        session.rollback()
        return session


def shared(nodes: int, jobs: int, pods: int, queues: int) -> Iterator[dict[str, Any]]:
    """Give nodes shared by jobs of so many pods each, in queues, a tenth of which wait."""
    for index in range(queues):
        yield queue(f"queue-{index}", deserved={"cpu": "1000"}, capability={"cpu": "4000"})
    for index in range(nodes):
        yield node(index)
    for job in range(jobs):
        waits = job % 10 == 0
        yield group(f"job-{job}", pods, f"queue-{job % queues}", "Inqueue" if waits else "Running")
        for index in range(pods):
            place = "" if waits else f"node-{(job * pods + index) % nodes:05d}"
            yield pod(f"job-{job}", index, "1", "1Gi", place)
