"""One scheduler: a cache, a configuration, and the cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import kinds, names
from pumice.framework import observing, registry, sampling
from pumice.framework.configuration import object_warnings
from pumice.framework.engine import Engine
from pumice.framework.reservations import Reservations

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.api import scheduling
    from pumice.cache.cache import Cache
    from pumice.framework.configuration import Configuration
    from pumice.framework.record import CycleRecord
    from pumice.framework.registry import Registry


class Scheduler:
    """Runs cycles on what a cache knows. A cycle in which nothing can have changed is skipped."""

    def __init__(
        self,
        cache: Cache,
        configuration: Configuration,
        now: Callable[[], int],
        *,
        known: Registry | None = None,
        observer: observing.Observer = observing.NOBODY,
    ) -> None:
        self.cache = cache
        self._registry = known or registry.installed()
        self._observer = observer
        self.cycles = 0
        self.failures: list[Exception] = []
        self._now = now
        self._settled_at: int | None = None
        self._wake: int | None = None
        self._always = False
        self._looked_at: tuple[Configuration, dict[str, scheduling.QueueSpec]] | None = None
        self.reservations = Reservations()
        self.engine = self._engine(configuration)

    def _engine(self, configuration: Configuration) -> Engine:
        options = self.cache.options
        self.cache.follow(kube_batch=configuration.rules == "kube-batch", now=self._now())
        sampler = None
        if options.percentage_nodes_to_find > 0:
            sampler = sampling.Sampler(options.minimum_feasible_nodes, options.percentage_nodes_to_find)
        return Engine(configuration, self._registry, self.cache.cluster, sampler, self._observer)

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self.engine.configuration

    def reconfigure(self, configuration: Configuration) -> None:
        """Use another configuration from the next cycle on."""
        self.engine = self._engine(configuration)
        self._settled_at = None

    def cycle(self) -> CycleRecord:
        """Run one full scheduling cycle and return the decision record."""
        now = self._now()
        record = self.cache.record
        self.cycles += 1
        record.begin(self.cycles, now)
        self.cache.apply(now)
        if self._is_quiet(now):
            self.failures = self.cache.failures
            record.skipped = True
            return record
        self._warn_of_queues()
        try:
            session = self.engine.open(record, self.cache, number=self.cycles, now=now, reserved=self.reservations)
        except Exception as error:  # noqa: BLE001  without the whole policy nothing is decided; the next cycle tries again
            self._broke("opening", error)
            self.failures = [error]
            self._settled_at = None
            return record
        try:
            self.engine.decide(session)
            self.cache.publish(session)
        except Exception as error:  # noqa: BLE001  what could not be written is found different, and written, later
            self._broke("publishing", error)
            session.failures.append(error)
        finally:
            session.rollback()
            self.failures = [*self.cache.failures, *session.failures]
        cluster = self.cache.cluster
        cluster.dirty_jobs.clear()
        # Undoing what was held leaves the cluster as it was, so only progress makes another cycle worth while.
        self._settled_at = None if session.progressed or session.failures else cluster.changed
        self._wake = session.wake
        self._always = session.reads_time and session.wake is None
        return record

    def _warn_of_queues(self) -> None:
        """Say once, on the queue, that one of its settings has no effect under the configuration in force."""
        queues = [queue.object for queue in self.cache.cluster.queues.values() if queue.object is not None]
        seen = (self.configuration, {queue.metadata.name: queue.spec for queue in queues})
        if self._looked_at is not None and self._looked_at[0] is seen[0] and self._looked_at[1] == seen[1]:
            return
        self._looked_at = seen
        for queue in queues:
            problems = object_warnings(self.configuration, [queue])
            for problem in problems:
                self.cache.record.say("configuration", str(problem))
            if problems:
                text = "; ".join(f"{problem.key}: {problem.message}" for problem in problems)
                self.cache.note(kinds.QUEUE, queue.metadata, "Warning", names.EVENT_NO_EFFECT, text, once=True)

    def _broke(self, step: str, error: Exception) -> None:
        self.cache.record.say("cycle", f"{step} broke down: {type(error).__name__}: {error}")

    def _is_quiet(self, now: int) -> bool:
        """Tell whether a cycle could only repeat the last one."""
        if self._settled_at != self.cache.cluster.changed or self._always:
            return False
        return self._wake is None or now < self._wake
