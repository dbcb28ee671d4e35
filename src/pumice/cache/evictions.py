"""Evictions that were sent and are not seen yet: they are repeated until the pod is going, or until it is refused and nobody waits for its room any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from pumice.api import kinds, names
from pumice.cache import retry_pauses, shadows
from pumice.cache.due_times import DueTimes
from pumice.cache.effects import Evict, pod_read
from pumice.cache.mirror import Mirror
from pumice.model import statuses
from pumice.model.statuses import ALLOCATED_LIKE, Status

if TYPE_CHECKING:
    from pumice.cache.effects import FailureCode, Outcome
    from pumice.cache.publishing import Publisher
    from pumice.model.task import Task

PATIENCE = 30_000_000
"""So long after something was sent it is looked whether it arrived."""
ASK_AGAIN: Final = 1_000_000
_GOING: Final = frozenset({Status.RELEASING, Status.SUCCEEDED, Status.FAILED})


class Eviction(msgspec.Struct):
    """An eviction that is to be repeated until the pod is going; `deadline` is when to look whether it arrived, `due` when to send one again that did not."""

    effect: Evict
    serial: int
    deadline: int
    tries: int = 0
    due: int | None = None
    refused: bool = False

    @property
    def next_look(self) -> int:
        """When something is to be done about it."""
        return self.deadline if self.due is None else self.due


class EvictingMirror(Mirror, Protocol):
    """The cache, as evictions see it."""

    @property
    def publisher(self) -> Publisher:
        """What writes about groups, pods and queues."""


class Evictions:
    """Keeps the evictions that were sent and are not confirmed."""

    def __init__(self, cache: EvictingMirror) -> None:
        self._cache = cache
        self._kept: dict[str, Eviction] = {}
        self._looks = DueTimes()
        self._refused: dict[str, None] = {}  # of which it is looked in every cycle whether anybody still waits for them
        self._sent = 0
        self._now = 0

    def evict(self, task: Task, reason: str) -> None:
        """Send an eviction, with the events that tell of it."""
        generation = task.pod.metadata.generation
        effect = Evict(namespace=task.namespace, name=task.name, uid=task.uid, reason=reason, generation=generation)
        known = self._kept.get(task.uid)
        self._sent += known is None
        serial = self._sent if known is None else known.serial
        self._keep(Eviction(effect, serial, self._now + PATIENCE))
        job = task.job
        if job is None or not job.whole or not self._cache.publisher.native.mark(job, effect, self._now):
            self._cache.world.send(effect)
        self._cache.note(
            kinds.POD, task.pod.metadata, "Warning", names.EVENT_EVICT, f"Pod is evicted, because of {reason}"
        )
        if task.job is not None and task.job.group is not None and not shadows.is_shadow(task.job.group):
            kind = self._cache.publisher.kind(task.job.key)
            self._cache.note(kind, task.job.group.metadata, "Normal", names.EVENT_EVICT, reason)

    def as_assumed(self, uid: str, status: Status) -> Status:
        """Return the status of a pod that was seen, as far as its eviction does not say otherwise; one that is seen to go is assumed no longer."""
        if uid in self._kept:
            if status in _GOING:
                self.forget(uid)
            elif status in ALLOCATED_LIKE:
                return Status.EVICTING
        return status

    def forget(self, uid: str) -> None:
        """Drop the eviction of a pod that is gone."""
        self._kept.pop(uid, None)
        self._refused.pop(uid, None)
        self._looks.drop(uid)

    def _keep(self, eviction: Eviction) -> None:
        """Look after an eviction when it says, and in every cycle if it was refused."""
        uid = eviction.effect.uid
        self._kept[uid] = eviction
        self._looks.put(uid, eviction.next_look)
        if eviction.refused:
            self._refused[uid] = None
        else:
            self._refused.pop(uid, None)

    def settle(self, effect: Evict, outcome: Outcome, now: int) -> None:
        """Take the answer to an eviction; one that failed is repeated."""
        eviction = self._kept.get(effect.uid)
        if eviction is None or outcome.failure is None:
            return
        if outcome.failure.code == "notfound":
            # If it is gone, the read or the watch ends the matter; if not, it was somebody else's write that came between.
            self._cache.world.send(pod_read(effect))
        self._failed(eviction, outcome.failure.message, outcome.failure.code, now)

    def _failed(self, eviction: Eviction, text: str, code: FailureCode, now: int) -> None:
        """Send an eviction again after a pause that grows with every failure."""
        effect = eviction.effect
        eviction.tries += 1
        eviction.refused = code == "refused"
        eviction.due = now + max(retry_pauses.FIRST_DELAY, retry_pauses.delay(eviction.tries, code))
        self._keep(eviction)
        self._cache.record.say(
            "evict",
            f"{effect.namespace}/{effect.name}: {text}; attempt {eviction.tries} failed, it will be repeated",
        )

    def seen(self, uid: str, now: int) -> None:
        """Take it that a pod was read: one that was going, or has ended, is not kept any more."""
        eviction = self._kept.get(uid)
        if eviction is not None and eviction.due is None:
            self._failed(eviction, "the delete did not arrive", "unavailable", now)

    def ask_again(self, uid: str, now: int) -> None:
        """Ask after a pod again soon, since it could not be read."""
        if (eviction := self._kept.get(uid)) is not None:
            eviction.deadline = now + ASK_AGAIN
            self._keep(eviction)

    def review(self, now: int) -> None:
        """Repeat what is due, and ask after what nobody has confirmed for long."""
        self._now = now
        looked_after = {uid: self._kept[uid] for uid in (*self._looks.due(now), *self._refused)}
        for uid, eviction in sorted(looked_after.items(), key=lambda entry: entry[1].serial):
            try:
                self._look_after(uid, eviction, now)
            except Exception as error:  # noqa: BLE001  one pod that breaks us must not cost the next
                self._cache.broke(f"the eviction of {uid} could not be looked after", error)

    def _look_after(self, uid: str, eviction: Eviction, now: int) -> None:
        task = self._cache.cluster.tasks.get(uid)
        if task is None:
            self.forget(uid)
        elif eviction.due is not None and eviction.refused and self._cache.is_given_up(self._cache.cluster, uid):
            self._withdraw(task, eviction, now)
        elif eviction.next_look <= now:
            asks = eviction.due is None
            eviction.due, eviction.deadline = None, now + PATIENCE
            self._keep(eviction)
            if asks:
                self._cache.world.send(pod_read(eviction.effect))
            else:
                self._cache.world.send(eviction.effect)

    def _withdraw(self, task: Task, eviction: Eviction, now: int) -> None:
        """Let a pod stay whose eviction was refused, and for which nobody waits any more; for a while it is no candidate."""
        self.forget(task.uid)
        task.eviction_refused = now
        self._cache.cluster.evictions_refused += 1
        if task.status == Status.EVICTING:
            status = statuses.from_pod(task.pod.status.phase, task.pod.spec.node_name, deleting=False)
            self._cache.cluster.apply([task], [task.node], status)
        self._cache.record.say(
            "evict",
            f"{task.key}: its eviction was refused {eviction.tries} times and nobody waits for its room any more; it stays",
        )

    def next_wake(self) -> int | None:
        """Return when the next repetition or question is due."""
        return self._looks.next()
