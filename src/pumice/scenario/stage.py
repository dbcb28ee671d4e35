"""Where a scenario is played: a simulated cluster with a scheduler on it.

The scheduler sees the cluster through its cache alone, as it would see a real one; expectations see the stored objects.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import structs

from pumice.api import kinds
from pumice.cache.cache import Cache
from pumice.controllers.volcano import registry as controllers
from pumice.framework import configuration, explaining, registry
from pumice.scenario import manifests, steps, view
from pumice.scheduler import Options, Scheduler
from pumice.sim import errors, faults
from pumice.sim.cluster import SimulatedCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.controllers.queueing.controller import Controller
    from pumice.framework.configuration import Configuration
    from pumice.framework.record import Verdict
    from pumice.framework.registry import Registry
    from pumice.model.cluster import Cluster
    from pumice.scenario.manifests import Manifest
    from pumice.scheduler import CycleRecord
    from pumice.sim.clock import VirtualClock


class StepError(Exception):
    """A step that could not be taken: the cluster refuses what it asks for."""


class Stage(Protocol):
    """What a scenario can do to its world, and see of it."""

    def apply(self, objects: Sequence[Manifest]) -> None:
        """Create objects or replace them by identity."""

    def patch(self, objects: Sequence[Manifest]) -> None:
        """Merge partial manifests into what is there."""

    def delete(self, references: Sequence[str], grace: int | None) -> None:
        """Delete objects, at once or with a grace period."""

    def fail(self, step: steps.Fail) -> None:
        """Let the next matching writes fail."""

    def advance(self, duration: int) -> None:
        """Let time pass without a cycle."""

    def cycle(self, period: int) -> None:
        """Run one cycle, let the cluster settle, and let a period pass."""

    def configure(self, text: str) -> None:
        """Replace the configuration; raise `ConfigurationError` and keep the old one if it is refused."""

    def counts(self) -> view.Counts:
        """Count the scheduler's writes since the start."""

    def view(self, counts: view.Counts) -> view.View:
        """Look at the cluster as it is now, with counts since a moment of the caller's choice."""

    def trace(self) -> list[str]:
        """Give the decision trace of the last cycle."""


class SimulatedStage:
    """A stage on the simulated cluster."""

    def __init__(
        self,
        settings: Configuration,
        options: Options,
        known: Registry,
        clock: VirtualClock | None = None,
        controllers: Mapping[str, Callable[[], Sequence[Controller]]] = MappingProxyType({}),
    ) -> None:
        self._registry = known
        self._known = known.catalog()
        self._default_queue = options.default_queue
        self._cluster = SimulatedCluster(clock, scheduler_names=options.scheduler_name, registered=controllers)
        self.cache = Cache(self._cluster, options)
        self.scheduler = Scheduler(self.cache, settings, self._cluster.clock.now, known=known)
        self._record: CycleRecord | None = None
        self.breakdowns = False  # whether plugins may break down
        self._decided: list[str] = []
        self._decided_in = 0
        self.explained: tuple[str, ...] = ()  # the groups that somebody wants to have explained, globs among them
        self._explanations: dict[str, str] = {}
        self._choose_companions()

    @property
    def cluster(self) -> SimulatedCluster:
        """The simulated cluster."""
        return self._cluster

    @property
    def model(self) -> Cluster:
        """What the scheduler knows of the cluster."""
        return self.cache.cluster

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self.scheduler.configuration

    def take_over(self, cache: Cache) -> None:
        """Put a scheduler that knows nothing in the place of the old one, over a cache that is to follow the cluster (`SimulatedCluster.restart`)."""
        self.cache = cache
        self.scheduler = Scheduler(cache, self.configuration, self._cluster.clock.now, known=self._registry)

    def connect(self) -> None:
        """Let the scheduler's cache follow the cluster from here on."""
        self._cluster.connect(self.cache)

    def apply(self, objects: Sequence[Manifest]) -> None:
        """Create objects or replace them by identity."""
        try:
            self._cluster.apply(objects)
        except errors.ApiError as error:
            raise StepError(f"apply: {error}") from error

    def patch(self, objects: Sequence[Manifest]) -> None:
        """Merge partial manifests into what is there."""
        try:
            self._cluster.merge(objects)
        except errors.ApiError as error:
            raise StepError(f"patch: {error}") from error

    def delete(self, references: Sequence[str], grace: int | None) -> None:
        """Delete objects, at once or with a grace period."""
        try:
            self._cluster.delete(references, grace)
        except errors.ApiError as error:
            raise StepError(f"delete: {error}") from error

    def fail(self, step: steps.Fail) -> None:
        """Let the next matching writes fail."""
        pattern = step.object.pattern if step.object is not None else ""
        self._cluster.fail(faults.Fault(verb=step.verb, error=step.error, object=pattern, times=step.times))

    def advance(self, duration: int) -> None:
        """Let time pass without a cycle."""
        self._cluster.advance(duration)

    def cycle(self, period: int) -> None:
        """Run one cycle, let the cluster settle, and let a period pass."""
        self._cluster.pump()
        self._record = self.scheduler.cycle(self._ask, may_skip=True) if self.explained else self.scheduler.cycle()
        if lines := self._record.trace():
            self._decided = lines
            self._decided_in = self._record.cycle
        if self.scheduler.failures and not self.breakdowns:
            # In production a plugin that breaks costs only its own answer; a test must not pass over it, unless it is about that.
            raise self.scheduler.failures[0]
        self._cluster.settle()
        self._cluster.advance(period)

    @property
    def rests(self) -> bool:
        """Tell whether the last cycle found nothing to do, so that another one could only repeat it."""
        return self.scheduler.rests

    def next_due(self) -> int | None:
        """Say when something happens by itself: a pod ends or is gone, a controller looks again, the scheduler waits no longer."""
        due = (self._cluster.clock.next_due(), self.scheduler.wake, self.cache.next_wake())
        return min((each for each in due if each is not None), default=None)

    def configure(self, text: str) -> None:
        """Replace the configuration; a refused one leaves the old one in force."""
        self.scheduler.reconfigure(configuration.load(text, self._known, "config"))
        self._choose_companions()

    def _choose_companions(self) -> None:
        """Let pods without a group have one of their own, unless kube-batch's rules give them one in memory."""
        self._cluster.companions = self.scheduler.configuration.rules != "kube-batch"

    def counts(self) -> view.Counts:
        """Count the scheduler's writes since the start."""
        total = self._cluster.counts
        return view.Counts(binds=total.binds, evictions=total.evictions, status_writes=total.status_writes)

    def view(self, counts: view.Counts) -> view.View:
        """Look at the stored objects as they are now."""
        groups: dict[str, Mapping[str, Any]] = {}
        queues: dict[str, Mapping[str, Any]] = {}
        for kind in reversed(kinds.KINDS):  # the current group of each name comes first in KINDS, and so wins here
            if kind.name in {kinds.POD_GROUP.name, kinds.QUEUE.name}:
                (groups if kind.namespaced else queues).update(self._objects(kind))
        return view.View(
            pods=self._objects(kinds.POD),
            pod_groups=groups,
            queues=queues,
            nodes=self._objects(kinds.NODE),
            evicted={_name(pod): pod for pod in self._cluster.evicted.values()},
            counts=counts,
            events=[_recorded(event.note) for event in self._cluster.events],
            explain=self._explain,
            objects=self._objects,
            default_queue=self._default_queue,
        )

    def trace(self) -> list[str]:
        """Give the decision trace of the last cycle."""
        if self._record is None or self._record.cycle == self._decided_in or not self._decided:
            return self._decided
        return [f"nothing was decided; the last decisions were those of cycle {self._decided_in}:", *self._decided]

    def verdicts(self, group: str) -> Sequence[Verdict]:
        """Give what was last said about a group."""
        return self._record.verdicts(group) if self._record is not None else ()

    def _objects(self, kind: kinds.Kind) -> dict[str, Mapping[str, Any]]:
        return {_name(manifest): manifest for manifest in self._cluster.store.scan(kind)}

    def _ask(self, explainer: explaining.Explainer) -> None:
        """Keep the explanations that somebody wants, while they can be given."""
        self._explanations = {
            key: "\n".join(explaining.text(found))
            for key in sorted(explainer.session.cluster.jobs)
            if any(view.matches(pattern, key) for pattern in self.explained)
            if (found := explainer.job(key)) is not None
        }

    def _explain(self, group: str) -> str:
        told = self._record.explain(group) if self._record is not None else ""
        return "\n".join(filter(None, (told, self._explanations.get(group, ""))))


def build(scenario: steps.Scenario, known: Registry | None = None, *, plain: bool = False) -> SimulatedStage:
    """Set a scenario's cluster up, with its objects and its policy, before the first cycle; `plain` turns shortcuts off."""
    known = known or registry.installed()
    text, catalog = scenario.config, known.catalog()
    settings = configuration.default(catalog) if text is None else configuration.load(text, catalog, "config")
    options = Options.from_flags(scenario.flags)
    if plain:
        options = structs.replace(options, plain=True)
    made = SimulatedStage(settings, options, known, controllers=controllers.REGISTERED)
    made.breakdowns = scenario.breakdowns
    judged = [step.expectation for step in scenario.steps if isinstance(step, (steps.Expect, steps.Until))]
    made.explained = tuple(dict.fromkeys(group for each in judged for group in each.explained))
    made.apply(manifests.expand(scenario.given))
    made.connect()
    return made


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _recorded(note: Any) -> view.Recorded:
    return view.Recorded(
        kind=note.kind.singular, namespace=note.namespace, name=note.name, reason=note.reason, message=note.message
    )
