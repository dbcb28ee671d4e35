"""The world as the cache sees it, with somebody looking over its shoulder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.cache.effects import Bind, Create, Evict, Note, Patch, Read, World
    from pumice.model.cluster import Cluster
    from pumice.server.metrics.metering import Meter


class ObservedWorld:
    """Hands every effect on, and tells the meter of decisions."""

    def __init__(self, world: World, meter: Meter) -> None:
        self._world = world
        self._meter = meter
        self.cluster: Cluster | None = None

    def bind(self, effect: Bind) -> None:
        """Hand a bind over."""
        if self.cluster is not None:
            self._meter.binding(effect, self.cluster)
        self._world.bind(effect)

    def evict(self, effect: Evict) -> None:
        """Hand an eviction over."""
        self._meter.evicting(effect)
        self._world.evict(effect)

    def patch(self, effect: Patch) -> None:
        """Hand a patch over."""
        self._world.patch(effect)

    def record(self, effect: Note) -> None:
        """Hand an event over."""
        self._world.record(effect)

    def read(self, effect: Read) -> None:
        """Ask for one object."""
        self._world.read(effect)

    def create(self, effect: Create) -> None:
        """Hand a creation over."""
        self._world.create(effect)
