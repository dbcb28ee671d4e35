"""The cache: watch events become the model, decisions become effects.

```
            feed()                 apply()                        bind(), evict(), publish()
 watch ──▶ waiting events ──▶ model between cycles ──▶ session ──▶ effects ── send() ──▶ world
             settled() ──────────┘   ▲                                                     │
                 ▲                   └── assumed until an event says so ───────────────────┘
                 └────────────────────────── outcomes ─────────────────────────────────────┘
```

What this rests on: `feed`, `fold` and `settled` may be called at any time and only queue; everything else is called by the one thread that also runs
cycles. A bind or an eviction is assumed from the moment it is sent. An event that shows it, or an outcome that denies it, ends the assumption; an
outcome that nobody knows keeps it until the pod was read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pumice.api import decoding, kinds, meta
from pumice.cache import (
    assumptions,
    claims,
    handover,
    inbox,
    inputs,
    native_groups,
    objects,
    pods,
    publishing,
    required_queues,
    shadows,
    unserved,
)
from pumice.cache.effects import Bind, Create, Evict, Note, Outcome, Patch, Prepare, Read, TakeBack, World
from pumice.cache.options import Options
from pumice.framework import reason_keys
from pumice.framework.record import CycleRecord
from pumice.model.cluster import Cluster

if TYPE_CHECKING:
    from pumice.cache.assignment import Assignment
    from pumice.cache.effects import Answerable
    from pumice.framework.session import Session
    from pumice.model.task import Task

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

INVALID = "InvalidObject"
FAILURES = 16  # of those that nobody has been told of yet, so many are remembered


class Cache:
    """The mirror of one cluster."""

    def __init__(self, world: World, options: Options | None = None, assignment: Assignment | None = None) -> None:
        self.options = options or Options()
        self.assignment = assignment
        self.world = world
        self.inputs = inputs.NOBODY  # whoever records, or replays, what comes in
        self.record = CycleRecord(keeps_figures=self.options.renews_numbers, is_followed=self.options.latest_reasons)
        self.cluster = Cluster(self.options.default_queue)
        self._events: inbox.Inbox[Mapping[str, Any] | meta.KubeObject | decoding.Malformed] = inbox.Inbox()
        self._seen: deque[tuple[kinds.Kind, EventType, meta.KubeObject | decoding.Malformed]] = deque()
        self._outcomes: deque[Outcome] = deque()
        self._told: dict[str, dict[str, str]] = {}  # object -> why it was last spoken of, by the reason of the event
        self.shadows = shadows.Shadows(self.cluster)
        self.pods = pods.Pods(self)
        self.unserved = unserved.Unserved(self)
        self.native_groups = native_groups.NativeGroups(self)
        self.objects = objects.Objects(self)
        self.claims = claims.Claims(self)
        # Whether a victim was to make room for somebody who does not wait any more; the loop knows.
        self.is_given_up: Callable[[Cluster, str], bool] = lambda _cluster, _victim: False
        self.assumptions = assumptions.Assumptions(self)
        self.publisher = publishing.Publisher(self)
        self._overtaking = handover.Overtaking(self.cluster)
        self.required_queues = required_queues.RequiredQueues(self)
        self.failures: list[Exception] = []  # of the last `apply`, and of those between it and the cycle before
        self._early_failures: list[Exception] = []

    # -- what comes in -----------------------------------------------------------------------------------------

    def feed(
        self,
        kind: kinds.Kind,
        event_type: EventType,
        manifest: Mapping[str, Any] | meta.KubeObject | decoding.Malformed,
        /,
    ) -> None:
        """Take a watch event; an object that was decoded already is taken as it is."""
        self._events.put((kind, event_type, manifest))

    def fold(self, kind: kinds.Kind, event_type: EventType, found: meta.KubeObject | decoding.Malformed, /) -> None:
        """Take a watch event together with the one about the same object that nobody has looked at yet."""
        uid = found.metadata.uid
        if uid:
            self._events.fold((kind.api_version, uid), (kind, event_type, found))
        else:
            self._events.put((kind, event_type, found))

    @property
    def waiting(self) -> int:
        """How many events have come in and were not taken in; may be read by any thread."""
        return len(self._events) + len(self._seen)

    def settled(self, outcome: Outcome, /) -> None:
        """Take the answer to an effect."""
        self._outcomes.append(outcome)

    def apply(self, now: int, *, standby: bool = False) -> None:
        """Bring the model up to date with everything that has come in by now; what comes in meanwhile waits for the next time.

        Who stands by, or rests between two cycles, only keeps up: nothing is due, and nothing is asked for.
        """
        self.inputs.begins(now, standby=standby)
        self._look()
        self._overtaking.clear()
        self.failures, self._early_failures = self._early_failures, []
        known = len(self.failures)
        self.cluster.accounting.gather()
        while self._seen:
            kind, event_type, found = self._seen.popleft()
            try:
                self._apply_event(kind, event_type, found, now)
            except Exception as error:  # noqa: BLE001  one object that breaks us must not cost anybody else a cycle
                name = f"{found.metadata.namespace}/{found.metadata.name}" if kind.namespaced else found.metadata.name
                self.broke(f"{kind.name} {name} could not be taken in", error)
        self.inputs.settling()
        for _ in range(len(self._outcomes)):
            outcome = self._outcomes.popleft()
            self.inputs.settled(outcome)
            try:
                self._settle(outcome, now)
            except Exception as error:  # noqa: BLE001  nor must one answer cost the next
                self.broke(f"the answer to {_named(outcome.effect)} could not be taken in", error)
        self.native_groups.prepare()
        if not standby:
            for part in (
                self.assumptions,
                self.publisher,
                self.pods,
                self.unserved,
                self.native_groups,
                self.required_queues,
            ):
                try:
                    part.review(now)
                except Exception as error:  # noqa: BLE001  nor one part the others
                    self.broke(f"{type(part).__name__} could not be looked at", error)
        self._forget_jobs()
        if len(self.failures) > known:
            self.cluster.accounting.outdated = True  # whatever was left half done counts as what it is now
        self.cluster.prepare()
        self._let_leave(now)
        self.objects.hyper_nodes.review()
        if not standby:
            self.publisher.catch_up(now)
        else:
            self._early_failures = self.failures[-FAILURES:]
            self.inputs.ends(skipped=True)

    def _let_leave(self, now: int) -> None:
        """Send binds for which everything was written; a fault there is told of like any other."""
        try:
            self.assumptions.leave(now)
        except Exception as error:  # noqa: BLE001  what breaks down here must not cost a cycle
            self.broke("binds that were prepared could not be sent", error)

    def _look(self, watcher: handover.Overtaking | None = None) -> None:
        """Decode the events that have come in by now, without applying them."""
        self.inputs.looking()
        for kind, event_type, manifest in self._events.take():
            found = decoding.decode(manifest) if isinstance(manifest, Mapping) else manifest
            self.inputs.looked(kind, event_type, found)
            self._seen.append((kind, event_type, found))
            if watcher is not None:
                watcher.note(kind, found, gone=event_type == "DELETED")

    def _apply_event(
        self, kind: kinds.Kind, event_type: EventType, found: meta.KubeObject | decoding.Malformed, now: int
    ) -> None:
        if kind.name == kinds.POD.name:
            self.pods.apply(event_type, found, now)
        else:
            self.objects.apply(kind, event_type, found)

    def broke(self, what: str, error: Exception) -> None:
        """Note that something broke down, and go on with what comes next."""
        self.failures.append(error)
        self.record.say("cache", f"{what}: {type(error).__name__}: {error}")

    def _settle(self, outcome: Outcome, now: int) -> None:
        """Give an answer to whoever sent the effect."""
        match outcome.effect:
            case Bind() as effect:
                self.assumptions.settle_bind(effect, outcome, now)
            case Prepare() | TakeBack() as effect:
                self.assumptions.settle_preparation(effect, outcome, now)
            case Evict() as effect:
                self.assumptions.evictions.settle(effect, outcome, now)
            case Read() as effect:
                self.assumptions.settle_read(effect, outcome)
            case Patch(kind=kinds.RESOURCE_CLAIM) as effect:
                self.claims.settle(effect, outcome)
            case Patch() as effect:
                self.publisher.settle(effect, outcome, now)
            case Create() as effect:
                self.required_queues.settle(effect, outcome, now)

    def _forget_jobs(self) -> None:
        """Drop what is remembered of jobs that have neither group nor pods any more."""
        gone, self.cluster.gone_jobs = self.cluster.gone_jobs, {}
        for key in gone:
            if key not in self.cluster.jobs:
                self.record.forget(key)
                self.publisher.forget_job(key)

    def follow(self, *, kube_batch: bool, now: int) -> None:
        """Follow kube-batch's rules about pods without a group, or leave them; called between cycles."""
        if self.shadows.enabled != kube_batch:
            self.shadows.enabled = kube_batch
            self.pods.regroup(now)

    def next_wake(self) -> int | None:
        """Return when something here is due though no event may come."""
        times = (
            part.next_wake()
            for part in (self.assumptions, self.publisher, self.pods, self.unserved, self.required_queues)
        )
        return min((time for time in times if time is not None), default=None)

    # -- bad objects -------------------------------------------------------------------------------------------

    def disable(self, kind: kinds.Kind, metadata: meta.ObjectMeta, job: str, problem: str) -> None:
        """Tell, once, what is wrong with an object: in the record, and as an event on it."""
        subject = f"{kind.name} {metadata.namespace + '/' if metadata.namespace else ''}{metadata.name}"
        problem = problem.removeprefix(f"{subject}: ")
        self.record.disable(job, subject, problem)
        self.note(kind, metadata, "Warning", INVALID, f"{subject}: {problem}", once=True)

    def enable(self, kind: kinds.Kind, metadata: meta.ObjectMeta, job: str) -> None:
        """Note that nothing is wrong with an object, or nothing any more."""
        subject = f"{kind.name} {metadata.namespace + '/' if metadata.namespace else ''}{metadata.name}"
        self.record.enable(job, subject)
        told = self._told.get(_told_of(kind, metadata))
        if told is not None:
            told.pop(INVALID, None)
            if not told:
                del self._told[_told_of(kind, metadata)]

    def note(
        self,
        kind: kinds.Kind,
        metadata: meta.ObjectMeta,
        type_: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        once: bool = False,
    ) -> None:
        """Record an event; with `once`, only if it says something new about the object under this reason, numbers aside."""
        if once:
            told = self._told.setdefault(_told_of(kind, metadata), {})
            key = reason_keys.reason_key(message)
            if told.get(reason) == key:
                return
            told[reason] = key
        self.world.send(
            Note(
                kind=kind,
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
                type=type_,
                reason=reason,
                message=message,
            )
        )

    def forget(self, kind: kinds.Kind, metadata: meta.ObjectMeta, job: str) -> None:
        """Note that an object is gone: what was wrong with it, and what was told about it."""
        self.enable(kind, metadata, job)
        self.forget_told(_told_of(kind, metadata))

    def forget_told(self, uid: str) -> None:
        """Forget what was told about an object that is gone."""
        self._told.pop(uid, None)

    # -- what goes out -----------------------------------------------------------------------------------------

    def overtaken(self, tasks: Sequence[Task]) -> Mapping[str, str]:
        """Say by uid which of these tasks cannot be bound any more, by what has come in since the cycle began."""
        self._look(self._overtaking)
        return self._overtaking.objections(tasks)

    def bind(self, tasks: Sequence[Task]) -> Mapping[str, str]:
        """Send binds; the session has checked them against the model, which nothing else changes meanwhile."""
        return self.assumptions.bind(tasks)

    def evict(self, task: Task, reason: str) -> None:
        """Send an eviction, and keep at it until the pod is going."""
        self.assumptions.evictions.evict(task, reason)

    @property
    def takes_gates_off(self) -> bool:
        """Whether gates that wait for a queue are taken off here."""
        return self.options.takes_gates_off

    def take_gate_off(self, task: Task) -> bool:
        """Have the queue's gate taken off a pod; tells whether that was not asked for before."""
        return self.publisher.pods.take_gate_off(task)

    def publish(self, session: Session) -> None:
        """Write what the cycle found out, as far as it is news."""
        self.publisher.publish(session)
        self.claims.free()


def _named(effect: Answerable) -> str:
    """Name an effect, and what it is about."""
    if isinstance(effect, Create):
        return f"Create {effect.kind.name} {effect.manifest['metadata']['name']}"
    return f"{type(effect).__name__} {effect.namespace}/{effect.name}"


def _told_of(kind: kinds.Kind, metadata: meta.ObjectMeta) -> str:
    """Name an object as the memory of what was told does."""
    return metadata.uid or f"{kind.name} {metadata.namespace}/{metadata.name}"
