"""How effects become writes to the store, or fail: what stands between the scheduler and the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import kinds, names, timestamp
from pumice.cache import effects
from pumice.sim import deletion, errors, identity, preparing, volumes
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.effects import Answerable, EffectObserver, Failure, FailureCode, Outcome
    from pumice.sim.clock import VirtualClock
    from pumice.sim.faults import Error, Faults, Verb
    from pumice.sim.store import ObjectStore

Manifest = dict[str, Any]

_GROUP_NAME, _QUEUE_NAME = kinds.POD_GROUP.name, kinds.QUEUE.name
_CODES: dict[type[errors.ApiError], FailureCode] = {
    errors.NotFoundError: "notfound",
    errors.ConflictError: "conflict",
    errors.AlreadyExistsError: "conflict",
    errors.InvalidError: "refused",
}


class Counts(msgspec.Struct):
    """Writes of the scheduler that were performed, since the start."""

    binds: int = 0
    evictions: int = 0
    status_writes: int = 0


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it was recorded."""

    note: effects.Note
    at: int

    @property
    def reference(self) -> str:
        """Name the object as scenario files do: `pod/a/g-0`."""
        return str(Key(self.note.kind, self.note.namespace, self.note.name))


class Writer:
    """Performs effects one after another; keeps count of what was done, what was recorded and who was evicted."""

    def __init__(
        self,
        store: ObjectStore,
        clock: VirtualClock,
        faults: Faults,
        create: Callable[[Manifest], object],
        observer: EffectObserver = effects.NOBODY,
    ) -> None:
        self.counts = Counts()
        self.events: list[Recorded] = []
        self.evicted: dict[str, Manifest] = {}  # uid -> the last manifest that was seen
        self._store = store
        self._clock = clock
        self._faults = faults
        self._create = create
        self._observer = observer
        self._preparer = preparing.Preparer(store, clock, create)
        self._volumes = volumes.VolumeController(store, create)

    def record(self, note: effects.Note) -> None:
        """Keep an event; it has no answer."""
        self.events.append(Recorded(note=note, at=self._clock.now()))

    def perform(self, effect: Answerable) -> Outcome:
        """Carry an effect out, or fail as the faults demand, and give the answer; nothing takes time here."""
        if isinstance(effect, effects.Bind) and effect.volumes:
            # Volumes come first: a bind that fails after them leaves them bound.
            problem = self._prepare(effect)
            self._observer.performed(effect, "volumes", 0.0, failed=problem is not None)
            if problem is not None:
                return effects.Outcome(effect=effect, failure=problem)
        outcome = self._request(effect)
        self._observer.performed(effect, "request", 0.0, failed=outcome.failure is not None)
        return outcome

    def _prepare(self, effect: effects.Bind) -> Failure | None:
        try:
            self._volumes.satisfy(effect)
        except errors.ApiError as error:
            return failure(error)
        return None

    def _request(self, effect: Answerable) -> Outcome:
        key = _target(effect)
        fault = self._faults.take(_verb(effect), str(key))
        if fault is not None and fault != "lost-reply":
            return effects.Outcome(effect=effect, failure=_injected(fault, key))
        answer: Manifest | None = None
        problem: Failure | None = None
        try:
            if isinstance(effect, effects.Prepare | effects.TakeBack):
                answer, problem = self._preparer.carry_out(effect)
            else:
                answer = self._write(effect, key)
        except errors.ApiError as error:
            problem = failure(error)
        if fault is not None:
            return effects.Outcome(effect=effect, failure=_injected(fault, key))
        return effects.Outcome(effect=effect, failure=problem, object=answer)

    def _write(self, effect: Answerable, key: Key) -> Manifest | None:
        match effect:
            case effects.Bind():
                self._bind(effect, key)
            case effects.Evict():
                self._evict(effect, key)
            case effects.Patch():
                self._store.patch(
                    key, effect.body, subresource=effect.subresource, strategic=effect.strategic, uid=effect.uid
                )
                self.counts.status_writes += _verb(effect) == "status"
                return self._store.get(key)
            case effects.Create():
                if self._store.find(key) is None:
                    self._create(effect.manifest)
                return self._store.get(key)
            case effects.Read():
                return self._store.get(key)
        return None

    def _bind(self, effect: effects.Bind, key: Key) -> None:
        """Bind a pod; one that is on that node already was bound by us, and the answer was lost."""
        try:
            self._store.bind(key, uid=effect.uid, node=effect.node, annotations=effect.annotations)
        except errors.ConflictError:
            pod = self._store.peek(key)
            if effect.uid not in ("", pod["metadata"]["uid"]) or pod["spec"].get("nodeName") != effect.node:
                raise
        else:
            self.counts.binds += 1

    def _evict(self, effect: effects.Evict, key: Key) -> None:
        """Mark a pod as disrupted and delete it; one that is on its way out already needs nothing more."""
        pod = self._store.peek(key)
        if effect.uid and effect.uid != pod["metadata"]["uid"]:
            raise errors.NotFoundError(f"{key} has uid {pod['metadata']['uid']}, not {effect.uid}; it was replaced")
        if not deletion.is_terminating(pod):
            self._disrupt(effect, key)
            self.counts.evictions += 1

    def _disrupt(self, effect: effects.Evict, key: Key) -> None:
        when = timestamp.format_timestamp(self._clock.now())
        stamp: Manifest = {"lastTransitionTime": when, "message": effect.reason}
        if effect.generation:
            stamp["observedGeneration"] = effect.generation
        conditions = [
            {"type": names.CONDITION_READY, "status": "False", "reason": names.EVENT_EVICT, **stamp},
            {
                "type": names.CONDITION_DISRUPTION_TARGET,
                "status": "True",
                "reason": names.REASON_PREEMPTION,
                **stamp,
            },
        ]
        body: Manifest = {"status": {"conditions": conditions}}
        self._store.patch_status(key, body, strategic=True)
        self.evicted[self._store.peek(key)["metadata"]["uid"]] = self._store.get(key)
        grace = None if effect.grace_seconds is None else effect.grace_seconds * 1_000_000
        self._store.delete(key, grace=grace)


def _target(effect: Answerable) -> Key:
    if isinstance(effect, effects.Create):
        return identity.identify(effect.manifest)
    if isinstance(effect, effects.Patch | effects.Read):
        return Key(effect.kind, effect.namespace, effect.name)
    return Key(kinds.POD, effect.namespace, effect.name)


def _verb(effect: Answerable) -> Verb | None:
    """Say which verb of a scenario an effect is; a status write is one to a PodGroup, a queue's status or a pod's status."""
    match effect:
        case effects.Bind():
            return "bind"
        case effects.Evict():
            return "evict"
        case effects.Prepare():
            return "prepare"
        case effects.TakeBack():
            return "take back"
        case effects.Patch(kind=kind, subresource=subresource):
            through_status = subresource == "status" and (kind == kinds.POD or kind.name == _QUEUE_NAME)
            return "status" if through_status or kind.name == _GROUP_NAME else None
    return None


def _injected(fault: Error, key: Key) -> Failure:
    code: FailureCode = "unknown" if fault == "lost-reply" else fault
    return effects.Failure(code, f"{key}: {fault}, as the scenario demands")


def failure(error: errors.ApiError) -> Failure:
    """Say an API error as a failure of an effect."""
    return effects.Failure(_CODES[type(error)], str(error))
