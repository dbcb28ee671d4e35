"""One scheduler: a cache, a configuration, and the cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pumice.api import kinds, names
from pumice.framework import observing, registry, sampling
from pumice.framework.configuration import object_warnings
from pumice.framework.engine import Engine
from pumice.framework.explaining import Explainer
from pumice.framework.reservations import Reservations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.api import scheduling
    from pumice.cache.cache import Cache
    from pumice.framework.configuration import Configuration
    from pumice.framework.record import CycleRecord
    from pumice.framework.registry import Registry
    from pumice.framework.session import Session
    from pumice.model.job import Job


class Scheduler:
    """Runs cycles on what a cache knows. A cycle in which nothing can have changed is skipped."""

    engine_type: ClassVar[type[Engine]] = Engine  # whoever measures brings one that tells more

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
        self.awake: Mapping[str, Job] = {}  # the jobs with pending pods that the last session looked at
        self._now = now
        self._settled_at: int | None = None
        self.rests = False  # whether the last cycle could only repeat the one before it
        self.is_settled = (
            False  # whether a cycle after the last could only confirm it, if nothing happens but what was decided
        )
        self._wake: int | None = None
        self._always = False
        self._looked_at: tuple[Configuration, dict[str, scheduling.QueueSpec]] | None = None
        self.decided: Callable[[CycleRecord], None] = lambda _: (
            None
        )  # told when decisions are made, before statuses are written
        self.reservations = Reservations()
        cache.is_given_up = self.reservations.is_given_up
        self.engine = self._engine(configuration)

    def _engine(self, configuration: Configuration) -> Engine:
        now = self._now()
        self.cache.inputs.configured(configuration, now)
        self.cache.follow(kube_batch=configuration.rules == "kube-batch", now=now)
        return self._bring_to_life(configuration)

    def _bring_to_life(self, configuration: Configuration) -> Engine:
        options = self.cache.options
        sampler = None
        if options.percentage_nodes_to_find > 0:
            sampler = sampling.Sampler(options.minimum_feasible_nodes, options.percentage_nodes_to_find)
        return self.engine_type(
            configuration, self._registry, self.cache.cluster, sampler, self._observer, taken=options.shortcuts
        )

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self.engine.configuration

    @property
    def wake(self) -> int | None:
        """When something is due that waits for a moment; None if nothing does."""
        return self._wake

    @property
    def progressed(self) -> bool:
        """Whether another cycle at the same time might do more than the last one did."""
        return self._settled_at is None

    def reconfigure(self, configuration: Configuration) -> None:
        """Use another configuration from the next cycle on."""
        self.engine = self._engine(configuration)
        self.cache.record.begin_policy()
        self._settled_at = None

    def renew(self) -> None:
        """Bring the same configuration to life anew, so that cycles to come rest on the cache, the reservations and the number of cycles alone."""
        self.engine = self._bring_to_life(self.configuration)
        self._settled_at = self._wake = self._looked_at = None
        self._always = False
        self.failures = []

    def cycle(self, ask: Callable[[Explainer], None] | None = None, *, may_skip: bool = False) -> CycleRecord:
        """Run one full scheduling cycle and return the decision record.

        Whoever wants explanations asks for them before what is only held is undone; a cycle with a question is skipped only if that may be.
        """
        record = self._cycle(ask, may_skip=may_skip)
        self.cache.inputs.ends(skipped=record.skipped)
        return record

    def _cycle(self, ask: Callable[[Explainer], None] | None, *, may_skip: bool) -> CycleRecord:
        """Take the steps of a cycle, which are those of `docs/architecture.md`."""
        now = self._begin()
        self.cache.apply(now)  # 1. what has come in becomes the model
        self.rests = self._is_quiet(now)
        if self.rests and (ask is None or may_skip) and self.engine.shortcuts.quiet_cycles:
            return self._skip()  # 2. nothing can have changed
        session = self._open(now, is_asked=ask is not None)  # 3. plugins register
        if session is not None:
            try:
                self.engine.decide(session)  # 4. actions run, then plugins look back
                self.decided(self.cache.record)
                self.cache.publish(session)  # 5. what is news is written
                if ask is not None:
                    ask(Explainer(self.engine, session))
            except Exception as error:  # noqa: BLE001  what could not be written is found different, and written, later
                self._broke("publishing", error)
                session.failures.append(error)
            finally:
                self._roll_back(session)  # 6. what was only held is undone
        return self.cache.record

    def _begin(self) -> int:
        """Open the record of a cycle and return its time."""
        self.is_settled = False
        now = self._now()
        self.cycles += 1
        self.cache.record.begin(self.cycles, now)
        return now

    def _is_quiet(self, now: int) -> bool:
        """Tell whether a cycle could only repeat the last one."""
        if self._settled_at != self.cache.cluster.changed or self._always:
            return False
        return self._wake is None or now < self._wake

    def _skip(self) -> CycleRecord:
        self.failures = self.cache.failures
        self.cache.record.skipped = True
        return self.cache.record

    def _open(self, now: int, *, is_asked: bool) -> Session | None:
        """Open a session; None if the policy breaks down: without the whole of it nothing is decided, and the next cycle tries again."""
        self._warn_of_queues()
        try:
            return self.engine.open(
                self.cache.record,
                self.cache,
                number=self.cycles,
                now=now,
                reserved=self.reservations,
                is_asked=is_asked,
            )
        except Exception as error:  # noqa: BLE001  whatever a plugin raises
            self._broke("opening", error)
            self.failures = [error]
            self._settled_at = None
            return None

    def _roll_back(self, session: Session) -> None:
        """Undo what was only held, and remember whether another cycle would be worth while."""
        self.is_settled = self.engine.is_settled(session)
        session.rollback()
        self.awake = session.awake
        self.engine.end(session)
        found = session.breakdowns
        broken = [each.error for each in found.found.values() if not each.resting]
        self.failures = [*self.cache.failures, *session.failures, *broken]
        cluster = self.cache.cluster
        cluster.dirty_jobs.clear()
        # Undoing what was held leaves the cluster as it was, so only progress makes another cycle worth while.
        again = session.progressed or session.failures or found.found or found.is_resting
        self._settled_at = None if again else cluster.changed
        self._wake = session.wake
        self._always = session.reads_time and session.wake is None

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
