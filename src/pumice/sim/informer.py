"""A client of the store that follows one kind: list, watch, and list again when the history is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.cache import reflector
from pumice.sim import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import kinds
    from pumice.cache.reflector import EventType
    from pumice.sim.history import Watch
    from pumice.sim.store import ObjectStore


class Arrival(NamedTuple):
    """Something to deliver; arrivals of several kinds are delivered in the order of their versions."""

    version: int
    kind: kinds.Kind
    type: EventType
    object: Mapping[str, Any]


class Informer:
    """Joins a reflector to the store; what it hands on are the store's own objects, to be read and never changed."""

    def __init__(self, store: ObjectStore, kind: kinds.Kind) -> None:
        self._store = store
        self._reflector = reflector.of_manifests(kind)
        self._watch: Watch | None = None

    def poll(self) -> list[Arrival]:
        """Give what has changed since the last poll, everything at the first."""
        if self._watch is not None:
            if self._watch.is_idle:
                return []
            try:
                return self._followed(self._watch)
            except errors.GoneError:
                self._reflector.gone()
        return self._listed()

    def _followed(self, watch: Watch) -> list[Arrival]:
        kind, follow = self._reflector.kind, self._reflector.event
        arrivals: list[Arrival] = []
        for version, event_type, manifest, _ in watch.take():
            if event_type == "BOOKMARK":
                self._reflector.bookmark(manifest["metadata"]["resourceVersion"])
            else:
                arrivals += [Arrival(version, kind, *delivery) for delivery in follow(event_type, manifest)]
        return arrivals

    def _listed(self) -> list[Arrival]:
        kind, version = self._reflector.kind, self._store.resource_version
        deliveries = self._reflector.listed(self._store.scan(kind), version)
        self._watch = self._store.watch(kind, version)
        return [
            Arrival(int(manifest["metadata"]["resourceVersion"]), kind, event_type, manifest)
            for event_type, manifest in deliveries
        ]


def merge(informers: list[Informer]) -> list[Arrival]:
    """Poll several kinds and put what they saw into the order in which it was written."""
    arrivals = [arrival for informer in informers for arrival in informer.poll()]
    arrivals.sort(key=lambda arrival: arrival.version)
    return arrivals
