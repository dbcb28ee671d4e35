"""Binds that were sent and are not seen yet: what is assumed of them, and what happens when they fail. Evictions are looked after beside (`evictions.py`).

An assumption ends when an event shows it, or when its outcome says that it did not happen. If nobody knows, the pod is read, and what is held for it
stays held until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import structs

from pumice.api import core, decoding, kinds, meta, names
from pumice.cache import claims, companion_groups, handover, preparing, retry_pauses
from pumice.cache.effects import Bind, Prepare, Read, TakeBack, pod_read
from pumice.cache.evictions import ASK_AGAIN, PATIENCE, Evictions
from pumice.cache.mirror import Mirror
from pumice.framework.record import BIND
from pumice.model import statuses
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.cache.effects import FailureCode, Outcome
    from pumice.cache.preparing import Verdict
    from pumice.cache.publishing import Publisher
    from pumice.cache.reflector import EventType
    from pumice.model.preparations import Preparation
    from pumice.model.task import Task

WHILE_PREPARED = 7_200_000_000
"""Longer than anything takes that is waited for before a bind leaves, which is looked after elsewhere."""
FEW = 64
"""Of more binds than that only when the first of them may be due is kept."""
OUTRUN = 5
"""So many failures, each after somebody else was bound, make a fault one of this pod or node."""


class Binding(msgspec.Struct):
    """A bind that was sent; `deadline` is when to look whether it arrived, `due` when to send one again that did not."""

    effect: Bind
    decided_on: core.Node
    deadline: int
    doubtful: bool = False
    due: int | None = None

    @property
    def next_look(self) -> int:
        """When something is to be done about it."""
        return self.deadline if self.due is None else self.due


class Failures(msgspec.Struct):
    """How often a pod could not be bound, and how often of these others could."""

    tries: int = 0
    outrun: int = 0
    others: int = 0


class TakenIn(Protocol):
    """The pods that were taken in."""

    def apply(self, event_type: EventType, found: meta.KubeObject | decoding.Malformed, now: int) -> None:
        """Apply one event."""

    def forget(self, uid: str) -> None:
        """Drop a pod that is gone."""


class AssumingMirror(Mirror, Protocol):
    """The cache, as what is assumed sees it."""

    @property
    def pods(self) -> TakenIn:
        """The pods that were taken in."""

    @property
    def publisher(self) -> Publisher:
        """What writes about groups, pods and queues."""

    @property
    def claims(self) -> claims.Claims:
        """What writes about claims for devices."""


class Assumptions:
    """Keeps the binds that were sent and are not confirmed."""

    def __init__(self, cache: AssumingMirror) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self._bindings: dict[str, Binding] = {}
        self._first_look = 0  # nothing is to be done about any of them before
        self.preparing = preparing.Preparing(cache)
        self.evictions = Evictions(cache)
        self._failures: dict[str, Failures] = {}
        self._bound = 0
        self._now = 0

    # -- sending -----------------------------------------------------------------------------------------------

    def bind(self, tasks: Sequence[Task]) -> Mapping[str, str]:
        """Send binds; a task whose group has gone meanwhile is refused."""
        refused: dict[str, str] = {}
        volumes, devices = self._cluster.volumes.reservations, self._cluster.devices.reservations
        stamped, prepared = self._cluster.with_bind.stamps, self._prepared(tasks)
        parties: dict[str, list[Bind]] = (
            {task.job_key: [] for task in tasks if task.uid in prepared} if prepared else {}
        )
        for task in tasks:
            uid, record = task.uid, task.node
            if record is None or record.object is None:
                refused[uid] = "its node has left the cluster"
                continue
            decided, taken = volumes.get(uid), devices.get(uid)
            if problem := (decided is not None and decided.problem) or (taken is not None and taken.problem):
                refused[uid] = problem
                continue
            stamps = companion_groups.naming(task)
            if uid in stamped:
                stamps |= stamped[uid]
            effect = Bind(namespace=task.namespace, name=task.name, uid=uid, node=record.name, annotations=stamps)
            if decided is not None:
                effect = structs.replace(effect, volumes=decided.decisions, volume_patience=decided.patience)
            if effect.volumes or uid in prepared:
                self._cache.publisher.pods.expect(task, effect.node)
            if task.job_key in parties:
                self._bindings[uid] = Binding(effect, record.object, self._now + WHILE_PREPARED)
                parties[task.job_key].append(effect)
            else:
                self._send(uid, effect, record.object)
        for effects_of_job in parties.values():
            if effects_of_job:
                self.preparing.begin(effects_of_job, prepared, self._now)
        return refused

    def _prepared(self, tasks: Sequence[Task]) -> dict[str, tuple[Preparation, ...]]:
        """Return what has to be written, or waited for, before tasks are bound, by uid."""
        said, devices = self._cluster.with_bind.preparations, self._cluster.devices
        found: dict[str, tuple[Preparation, ...]] = {}
        for task in tasks if said or devices.reservations else ():
            reservation = devices.reservations.get(task.uid)
            wanted = said.get(task.uid, ())
            if reservation is not None:
                undone = self.preparing.is_being_taken_back(task.uid)
                wanted = (*wanted, *claims.preparations_for(task, devices, all_of_it=undone))
            if wanted or (reservation is not None and reservation.patience):
                found[task.uid] = wanted
        return found

    def _send(self, uid: str, effect: Bind, decided_on: core.Node) -> None:
        deadline = self._now + PATIENCE + effect.volume_patience
        self._bindings[uid] = Binding(effect, decided_on, deadline)
        self._first_look = min(self._first_look, deadline)
        self._cache.world.send(effect)

    def leave(self, now: int) -> None:
        """Send the binds for which everything is written, if what they were decided on still stands now that all events are taken in."""
        for verdict in self.preparing.leaving(now):
            self._follow(verdict, now)

    def _follow(self, verdict: Verdict, now: int) -> None:
        """Send the binds of a party for which everything is written, or let its pods be pending again."""
        stale = [bind for bind in verdict.ready if not self._still_stands(bind.uid)]
        if stale:
            where = f"{stale[0].namespace}/{stale[0].name}"
            text = f"what was decided about {where} on node {stale[0].node} does not hold any more"
            verdict = preparing.Verdict(failed=tuple((bind.uid, text, "conflict") for bind in verdict.ready))
        for bind in verdict.ready:
            self._send(bind.uid, bind, self._bindings[bind.uid].decided_on)
        for uid, text, code in verdict.failed:
            task = self._cluster.tasks.get(uid)
            if task is not None and uid in self._bindings and task.status == Status.BINDING:
                whole = f"could not be prepared for node {self._bindings[uid].effect.node}: {text}"
                self._bind_failed(task, whole, code, now, again=False)
            else:
                self._bindings.pop(uid, None)
                self.preparing.give_back(uid, now)  # it goes, is elsewhere, or cannot be read any more

    def _still_stands(self, uid: str) -> bool:
        task, binding = self._cluster.tasks.get(uid), self._bindings.get(uid)
        if task is None or binding is None or task.status != Status.BINDING:
            return False
        return handover.still_stands(task, binding.decided_on, self._cluster)

    # -- events ------------------------------------------------------------------------------------------------

    def carry_over(self, known: Task, made: Task, node: str) -> str:
        """Keep what is assumed of a pod that has changed in some other way; returns the node it counts on."""
        made.retry_at, made.refusal, made.eviction_refused = known.retry_at, known.refusal, known.eviction_refused
        node, made.status = self._as_assumed(known, made, node, made.status)
        return node

    def settle_on(self, known: Task, pod: core.Pod) -> tuple[str, Status]:
        """Say where a known pod counts, and as what, now that it says something new of its node or phase alone."""
        deleting = bool(pod.metadata.deletion_timestamp)
        status = statuses.from_pod(pod.status.phase, pod.spec.node_name, deleting=deleting)
        return self._as_assumed(known, known, pod.spec.node_name, status)

    def _as_assumed(self, known: Task, made: Task, node: str, status: Status) -> tuple[str, Status]:
        """Return node and status of a pod, as far as what was sent and is not seen yet does not say otherwise; what is seen is assumed no longer."""
        status = self.evictions.as_assumed(made.uid, status)
        if node:
            made.refusal = ""
            binding = self._bindings.pop(made.uid, None)
            self._failures.pop(made.uid, None)
            self._cluster.with_bind.drop(made.uid)
            if binding is not None and binding.effect.node == node:
                self.preparing.done(made.uid)
            else:
                self._end_preparing(made.uid, f"it is on node {node}")
            if binding is not None and binding.doubtful and binding.effect.node == node:
                # The reply was lost, the bind was not.
                self._announce(made, binding.effect)
        elif known.status == Status.BINDING and made.uid in self._bindings and status == Status.PENDING:
            return (known.node.name if known.node else ""), Status.BINDING
        return node, status

    def forget(self, uid: str) -> None:
        """Drop everything about a pod that is gone."""
        self._bindings.pop(uid, None)
        self.evictions.forget(uid)
        self._failures.pop(uid, None)
        self._cluster.with_bind.drop(uid)
        self._end_preparing(uid, "the pod is gone")

    def _end_preparing(self, uid: str, why: str) -> None:
        """Give up what was begun for a pod, and for those that were to leave with it."""
        self._follow(self.preparing.fall(uid, why, "notfound"), self._now)
        self.preparing.give_back(uid, self._now)

    # -- outcomes ----------------------------------------------------------------------------------------------

    def settle_bind(self, effect: Bind, outcome: Outcome, now: int) -> None:
        """Take the answer to a bind."""
        binding = self._bindings.get(effect.uid)
        task = self._cluster.tasks.get(effect.uid)
        arrived = binding is None and task is not None and task.pod.spec.node_name == effect.node
        if outcome.failure is None or (outcome.failure.code == "unknown" and arrived):
            self._bound += 1
            if task is not None:
                self._announce(task, effect)
            return
        if binding is None or task is None or task.status != Status.BINDING:
            return
        if outcome.failure.code == "unknown":
            binding.doubtful = True
            self._cache.world.send(pod_read(effect))
            return
        text = f"failed to bind to node {effect.node}: {outcome.failure.message}"
        self._bind_failed(task, text, outcome.failure.code, now)

    def _announce(self, task: Task, effect: Bind) -> None:
        """Tell of a bind that has happened."""
        text = f"Successfully assigned {effect.namespace}/{effect.name} to {effect.node}"
        self._cache.note(kinds.POD, task.pod.metadata, "Normal", names.EVENT_SCHEDULED, text)

    def settle_preparation(self, effect: Prepare | TakeBack, outcome: Outcome, now: int) -> None:
        """Take the answer about what is written before a bind."""
        self._cache.claims.learn(outcome)
        if isinstance(effect, TakeBack):
            self.preparing.settle_return(effect, outcome, now)
        else:
            self._follow(self.preparing.settle(effect, outcome, now), now)

    def _bind_failed(self, task: Task, text: str, code: FailureCode, now: int, *, again: bool = True) -> None:
        """Decide anew about a pod that was refused; after a fault that is likely to pass, send its bind again.

        Either happens after a pause that grows with every failure. Until then, and for as long as others fare no better, the room stays taken:
        nobody else gets what would make a gang whole.
        """
        failures = self._failures.setdefault(task.uid, Failures())
        failures.tries += 1
        failures.outrun += failures.tries > 1 and self._bound > failures.others
        failures.others = self._bound
        due = now + retry_pauses.delay(failures.tries, code)
        task.refusal = text
        self._cache.record.say(BIND, f"{task.key}: {text}")
        if task.job is not None:
            self._cache.record.judge(task.job.key, BIND, f"{task.name}: {text} (attempt {failures.tries})")
        self._cache.publisher.pods.bind_failed(task, text, now)
        if again and retry_pauses.passes(code) and failures.outrun < OUTRUN:
            self._bindings[task.uid].due = due
            self._first_look = min(self._first_look, due)
        else:
            self._let_go(task, due)

    def _let_go(self, task: Task, retry_at: int) -> None:
        """Let a task be pending again."""
        del self._bindings[task.uid]
        self._cluster.with_bind.drop(task.uid)
        self.preparing.give_back(task.uid, self._now)
        task.retry_at = retry_at
        self._cluster.apply([task], [None], Status.PENDING)

    def _repeat(self, task: Task, binding: Binding, now: int) -> None:
        """Send a bind again, unless the ground it was decided on has shifted; volumes may be somebody else's by now."""
        if not binding.effect.volumes and handover.still_stands(task, binding.decided_on, self._cluster):
            self._send(task.uid, binding.effect, binding.decided_on)
        else:
            self._let_go(task, now)

    def settle_read(self, effect: Read, outcome: Outcome) -> None:
        """Take the pod as it was read; one that is gone is deleted."""
        if outcome.failure is None and outcome.object is not None:
            found = decoding.decode(outcome.object)
            task = self._cluster.tasks.get(found.metadata.uid)
            if task is None:
                return  # it is gone meanwhile, or another pod has its name; the watch tells of that one
            binding = self._bindings.get(task.uid)
            unbound = isinstance(found, core.Pod) and not found.spec.node_name
            left = binding is not None and binding.due is None and not self.preparing.is_under_way(task.uid)
            if unbound and left and task.status == Status.BINDING:
                self._bind_failed(task, "the bind did not arrive", "unavailable", self._now)
            self._cache.pods.apply("MODIFIED", found, self._now)
            self.evictions.seen(task.uid, self._now)
        elif outcome.failure is not None and outcome.failure.code == "notfound":
            # Only the pod that was asked about: one that was created meanwhile under the same name is there.
            self._cache.pods.forget(effect.uid)
        else:
            self.evictions.ask_again(effect.uid, self._now)
            if (binding := self._bindings.get(effect.uid)) is not None:
                binding.deadline = self._now + ASK_AGAIN
                self._first_look = min(self._first_look, binding.next_look)

    # -- time --------------------------------------------------------------------------------------------------

    def review(self, now: int) -> None:
        """Repeat what is due, and ask after what nobody has confirmed for long."""
        self._now = now
        self.preparing.review(now)
        self.evictions.review(now)
        if len(self._bindings) <= FEW or self._first_look <= now:
            self._review_bindings(now)

    def _review_bindings(self, now: int) -> None:
        for uid, binding in list(self._bindings.items()):
            try:
                self._review_binding(uid, binding, now)
            except Exception as error:  # noqa: BLE001  one pod that breaks us must not cost the next
                self._cache.broke(f"the bind of {uid} could not be looked after", error)
        self._first_look = min((binding.next_look for binding in self._bindings.values()), default=now + PATIENCE)

    def _review_binding(self, uid: str, binding: Binding, now: int) -> None:
        task = self._cluster.tasks.get(uid)
        if task is None:
            del self._bindings[uid]
        elif binding.due is not None:
            if binding.due <= now:
                self._repeat(task, binding, now)
        elif binding.deadline <= now:
            binding.deadline = now + PATIENCE
            self._cache.world.send(pod_read(binding.effect))

    def next_wake(self) -> int | None:
        """Return when the next repetition or question is due; of many binds, when one may be."""
        times = [time for part in (self.evictions, self.preparing) if (time := part.next_wake()) is not None]
        if len(self._bindings) > FEW:
            times.append(self._first_look)
        else:
            times += [binding.next_look for binding in self._bindings.values()]
        return min(times) if times else None
