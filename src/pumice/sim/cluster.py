"""The simulated cluster: store, clock, kubelets, controllers and faults behind the one method of a real one.

Effects are queued when they are handed over and performed when the cluster settles; the cache hears of them as outcomes and, like
everybody else, through its watches.
"""

from __future__ import annotations

from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers import device_claims, podgroups
from pumice.sim import admission, deletion, faults, identity, informer, reconciling, structure, volcano, writes
from pumice.sim.clock import VirtualClock
from pumice.sim.garbage import GarbageCollector
from pumice.sim.identity import Key
from pumice.sim.kubelets.serving import Kubelets
from pumice.sim.priorities import PriorityClasses
from pumice.sim.store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.cache.effects import Effect, EffectObserver, Outcome
    from pumice.cache.reflector import EventType
    from pumice.controllers.queueing.controller import Controller
    from pumice.sim.history import WatchEventType
    from pumice.sim.informer import Informer

Manifest = dict[str, Any]

AGE = duration.HOUR  # how much older the cluster's own objects are than the scenario
ROUNDS = 10_000


class Client(Protocol):
    """What the cluster talks to: a cache."""

    def feed(self, kind: kinds.Kind, event_type: EventType, manifest: Mapping[str, Any], /) -> None:
        """Take a watch event."""

    def settled(self, outcome: Outcome, /) -> None:
        """Take the answer to an effect."""


class SimulatedCluster:
    """A cluster in memory, in virtual time."""

    def __init__(
        self,
        clock: VirtualClock | None = None,
        scheduler_names: Sequence[str] = ("volcano",),
        period: int = duration.SECOND,
        observer: EffectObserver = effects.NOBODY,
        registered: Mapping[str, Callable[[], Sequence[Controller]]] = MappingProxyType({}),
        *,
        check: Callable[[Mapping[str, Any]], None] = lambda _: None,
        new_uid: Callable[[], str] | None = None,
    ) -> None:
        self._observer = observer
        self.check = check  # raises an API error for what a controller may not create
        self.clock = clock or VirtualClock()
        self.period = period
        self.store = ObjectStore(self.clock.now, new_uid)
        self.faults = faults.Faults()
        self._queue: deque[Effect] = deque()
        self._writer = writes.Writer(self.store, self.clock, self.faults, self._create, observer)
        self._kubelets = Kubelets(self.store, self.clock, self._warn)
        self._garbage = GarbageCollector(self.store)
        self.companions = True  # whether pods without a group are given one
        self._companions = reconciling.Reconciler(
            self.store, self.clock, podgroups.controllers(scheduler_names), create=self._create
        )
        self._volcano = volcano.VolcanoControllers(
            self.store, self.clock, registered, create=self._create, tell=self._writer.record
        )
        self._device_claims: reconciling.Reconciler | None = None  # from the first claim for devices, or template, on
        self._client: Client | None = None
        self._informers: list[Informer] = []
        self._last_created = 0
        self.store.observe(self._remember_evicted)
        for manifest in admission.builtin():
            self._create(manifest, created=self.clock.now() - AGE)

    @property
    def counts(self) -> writes.Counts:
        """Give how many writes of the scheduler were performed."""
        return self._writer.counts

    @property
    def events(self) -> Sequence[writes.Recorded]:
        """Give the events recorded so far, in order."""
        return self._writer.events

    @property
    def evicted(self) -> Mapping[str, Manifest]:
        """Give the last manifests of the pods that the scheduler evicted, by uid."""
        return self._writer.evicted

    # ---- what the scheduler hands over

    def send(self, effect: Effect, /) -> None:
        """Queue an effect."""
        self._observer.sent(effect)
        self._queue.append(effect)

    # ---- the cache's side

    def connect(self, client: Client, kinds_wanted: Iterable[kinds.Kind] = kinds.SCHEDULING) -> None:
        """Start following the cluster for a cache: everything is listed, kind by kind."""
        self._client = client
        self._informers = [informer.Informer(self.store, kind) for kind in kinds_wanted]
        for each in self._informers:
            self._deliver(each.poll())

    def restart(self, client: Client) -> None:
        """Put a fresh cache in the place of the old one; what was handed over and not yet performed is lost."""
        self._queue.clear()
        self.connect(client)

    def pump(self) -> int:
        """Deliver all waiting watch events, in the order of the writes, and give how many there were."""
        return self._deliver(informer.merge(self._informers))

    def _deliver(self, arrivals: list[informer.Arrival]) -> int:
        if self._client is not None:
            for _, kind, event_type, manifest in arrivals:
                self._client.feed(kind, event_type, manifest)
        return len(arrivals)

    # ---- time

    def settle(self) -> None:
        """Perform what is queued, let kubelets and controllers react, until nothing is left to do; no time passes."""
        for _ in range(ROUNDS):
            done = self._perform() + self._kubelets.react()
            self.clock.advance(0)
            done += self._reconcile() + self._garbage.collect() + self.pump()
            if not done:
                return
        raise RuntimeError(
            f"the cluster does not settle: after {ROUNDS} rounds {len(self._queue)} effects are queued, "
            f"the first is {self._queue[0] if self._queue else 'none'}"
        )

    def advance(self, span: int) -> None:
        """Settle, then let time pass: everything due at or before the new time has happened and is delivered."""
        self.settle()
        end = self.clock.now() + span
        while self._volcano.begun and (due := self.clock.next_due()) is not None and due <= end:
            self.clock.advance_to(due)
            self.settle()
        self.clock.advance_to(end)
        self._flush()

    def step(self) -> None:
        """End a cycle: settle, then let one period pass."""
        self.advance(self.period)

    def _perform(self) -> int:
        """Perform what is queued now; what the answers give rise to is for the next round."""
        count = len(self._queue)
        for _ in range(count):
            effect = self._queue.popleft()
            if isinstance(effect, effects.Note):
                self._writer.record(effect)
            else:
                self._answer(self._writer.perform(effect))
        return count

    def _answer(self, outcome: Outcome) -> None:
        self._observer.answered(outcome)
        if self._client is not None:
            self._client.settled(outcome)

    def _reconcile(self) -> int:
        self._companions.hear()
        return (self._companions.act() if self.companions else 0) + self._volcano.react() + self._control_claims()

    def _control_claims(self) -> int:
        """Let claims for devices be made and cleaned up, if there are any."""
        if self._device_claims is None:
            if not any(
                kind in (kinds.RESOURCE_CLAIM, kinds.RESOURCE_CLAIM_TEMPLATE) for kind in self.store.known_kinds()
            ):
                return 0
            self._device_claims = reconciling.Reconciler(
                self.store, self.clock, device_claims.controllers(), create=self._create, tell=self._writer.record
            )
        return self._device_claims.react()

    def _flush(self) -> None:
        self._garbage.collect()
        self.pump()

    # ---- what a scenario does to the cluster

    def apply(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        """Create objects, or replace them by identity; nothing is done if one of them is no object at all."""
        keys = [identity.identify(manifest) for manifest in manifests]
        given = [manifest for manifest, key in zip(manifests, keys, strict=True) if key.kind is kinds.PRIORITY_CLASS]
        classes = PriorityClasses([*self.store.scan(kinds.PRIORITY_CLASS), *given])
        created = self._creation_times(len(keys))
        for manifest, key, moment in zip(manifests, keys, created, strict=True):
            self._apply(manifest, key, moment, classes)
        for key in keys:
            if key.kind is kinds.COMMAND and (command := volcano.targeted(self.store, key)) is not None:
                self.store.overwrite(key, dict(command))
        self._flush()

    def merge(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        """Merge partial manifests into the objects they name (JSON merge patch), status included."""
        keys = [identity.identify(manifest, partial=True) for manifest in manifests]
        for manifest, key in zip(manifests, keys, strict=True):
            self.store.overwrite(key, structure.merged(self.store.peek(key), manifest))
        self._flush()

    def delete(self, references: Iterable[str], grace: int | None = None) -> None:
        """Delete objects such as `pod/a/g-0` at once, or gracefully with a period (microseconds) in place of their own."""
        keys = [self._named(reference) for reference in references]
        for key in keys:
            if grace is None or self._holds_nothing(key):
                self.store.remove(key)
            else:
                self.store.delete(key, grace=grace)
        self._flush()

    def fail(self, fault: faults.Fault) -> None:
        """Let the next matching writes fail."""
        self.faults.add(fault)

    def _apply(self, manifest: Mapping[str, Any], key: Key, created: int, classes: PriorityClasses) -> None:
        existing = self.store.find(key)
        if existing is None:
            self._admit(manifest, key, created, classes)
            return
        replacement = admission.replacement(existing, manifest, key)
        self.store.overwrite(key, self._defaulted(replacement, key, created, classes))

    def _create(self, manifest: Mapping[str, Any], created: int | None = None) -> None:
        self.check(manifest)
        classes = PriorityClasses(self.store.scan(kinds.PRIORITY_CLASS))
        moment = self.clock.now() if created is None else created
        self._admit(manifest, identity.identify(manifest), moment, classes)

    def _admit(self, manifest: Mapping[str, Any], key: Key, created: int, classes: PriorityClasses) -> None:
        """Store a new object, and the namespace it names if nobody has made it yet."""
        namespace = Key(kinds.NAMESPACE, "", key.namespace)
        if key.namespace and self.store.find(namespace) is None:
            implied = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}}
            self.store.adopt(self._defaulted(implied, namespace, created, classes))
        self.store.adopt(self._defaulted(manifest, key, created, classes))

    def _defaulted(self, manifest: Mapping[str, Any], key: Key, created: int, classes: PriorityClasses) -> Manifest:
        return admission.default(manifest, key, created=created, now=self.clock.now(), classes=classes)

    def _creation_times(self, count: int) -> list[int]:
        """Give a millisecond to each object, the last one now; those of an earlier call are older still, whatever that takes."""
        first = self.clock.now() - (count - 1) * duration.MILLISECOND
        first = max(first, self._last_created + duration.MILLISECOND)
        times = [first + index * duration.MILLISECOND for index in range(count)]
        self._last_created = max([self._last_created, *times[-1:]])
        return times

    def _holds_nothing(self, key: Key) -> bool:
        """Tell whether no grace applies to a pod; nobody here would ever clear its finalizers."""
        pod = self.store.find(key) if key.kind is kinds.POD else None
        return pod is not None and (not deletion.is_bound(pod) or deletion.is_finished(pod))

    def _named(self, reference: str) -> Key:
        """Find the object a reference names; where a kind's name exists in several groups, the one that has it."""
        key = identity.parse(reference)
        same_name = [key._replace(kind=kind) for kind in kinds.KINDS if kind.singular == key.kind.singular]
        return next((each for each in same_name if self.store.find(each) is not None), key)

    # ---- what the parts of the cluster tell it

    def _warn(self, key: Key, manifest: Mapping[str, Any], reason: str, message: str) -> None:
        namespace, name, uid = key.namespace, key.name, manifest["metadata"]["uid"]
        self._writer.record(
            effects.Note(
                kind=key.kind, namespace=namespace, name=name, uid=uid, type="Warning", reason=reason, message=message
            )
        )

    def _remember_evicted(self, key: Key, _: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind is kinds.POD and manifest["metadata"]["uid"] in self._writer.evicted:
            self._writer.evicted[manifest["metadata"]["uid"]] = dict(manifest)
