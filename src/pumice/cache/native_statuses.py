"""What is written about groups of Kubernetes' own: one condition, and before a group goes as a whole a second one; each only where it is news.

There is no phase in that API, and no count. A group that was once scheduled is never said not to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from pumice.api import kinds, meta, names, native, timestamp
from pumice.cache import retry_pauses
from pumice.cache.effects import Patch
from pumice.framework.reason_keys import READY, is_news
from pumice.model.native_groups import NativeGroup

if TYPE_CHECKING:
    from pumice.cache.effects import Evict, Outcome
    from pumice.cache.mirror import Mirror
    from pumice.framework import closing
    from pumice.model.job import Job

SCHEDULED_PHASES: Final = frozenset({names.PHASE_RUNNING, names.PHASE_COMPLETED})
NOT_WRITTEN: Final = "StatusNotWritten"
_LONGEST: Final = 32_768  # characters that an API server takes as the message of a condition


class NativeStatuses:
    """Writes conditions of groups."""

    def __init__(self, cache: Mirror) -> None:
        self._cache = cache
        self._told: dict[
            str, dict[str, meta.Condition]
        ] = {}  # what is to be read on each group, as far as it is ours, by type
        self._then: dict[str, list[Evict]] = {}  # evictions that wait until their group is marked
        self._retry_pauses = retry_pauses.RetryPauses()

    def publish(self, job: Job, report: closing.JobReport, now: int, *, exactly: bool = False) -> None:
        """Write how a group stands, if that is news; exactly means that other numbers are."""
        if report.status.phase in SCHEDULED_PHASES:
            if self._state(job, _verdict("True", names.EVENT_SCHEDULED, ""), now):
                metadata = _origin(job).metadata
                self._cache.note(kinds.NATIVE_POD_GROUP, metadata, "Normal", names.EVENT_SCHEDULED, READY)
            return
        given = (c for c in report.status.conditions if c.type == names.CONDITION_UNSCHEDULABLE and c.status == "True")
        message = next((condition.message for condition in given), report.warning)
        if message:
            self._state(job, _verdict("False", names.REASON_UNSCHEDULABLE, message), now, exactly=exactly)

    def tell_broken(self, job: Job, problem: str, now: int) -> None:
        """Write that a group cannot be read."""
        self._state(job, _verdict("False", names.REASON_SCHEDULER_ERROR, problem), now)

    def mark(self, job: Job, effect: Evict, now: int) -> bool:
        """Write that a group goes as a whole; tells whether an eviction is sent later, when that has been answered."""
        type_, reason = names.CONDITION_DISRUPTION_TARGET, names.REASON_PREEMPTION
        news = self._state(job, meta.Condition(type=type_, status="True", reason=reason, message=effect.reason), now)
        if news or job.key in self._then:
            self._then.setdefault(job.key, []).append(effect)
            return True
        return False

    def settle(self, effect: Patch, key: str, outcome: Outcome, now: int) -> None:
        """Take the answer to a patch; one that failed is sent again after a pause, and nobody waits for that."""
        for eviction in self._then.pop(key, ()) if _marks(effect) else ():
            self._cache.world.send(eviction)
        if outcome.failure is None or key not in self._told:
            self._retry_pauses.forget(key)
            return
        self._cache.record.say("status", f"{key}: {outcome.failure.message}; it will be written again")
        if not retry_pauses.passes(outcome.failure.code):
            text = (
                f"the condition {names.CONDITION_POD_GROUP_SCHEDULED} could not be written: {outcome.failure.message}"
            )
            metadata = meta.ObjectMeta(namespace=effect.namespace, name=effect.name, uid=effect.uid)
            self._cache.note(kinds.NATIVE_POD_GROUP, metadata, "Warning", NOT_WRITTEN, text, once=True)
        self._retry_pauses.failed(key, outcome.failure.code, now)

    def review(self, now: int) -> None:
        """Send what did not arrive again."""
        for key in self._retry_pauses.due(now):
            job, told = self._cache.cluster.jobs.get(key), self._told.get(key)
            if job is None or told is None or not isinstance(job.group, NativeGroup):
                self._retry_pauses.forget(key)
            else:
                self._send(job, list(told.values()))

    def next_wake(self) -> int | None:
        """Return when the next pause is over."""
        return self._retry_pauses.next_wake()

    def forget(self, key: str) -> None:
        """Drop what is known of a group that is gone; whoever waits for its mark waits no longer."""
        self._told.pop(key, None)
        self._retry_pauses.forget(key)
        for eviction in self._then.pop(key, ()):
            self._cache.world.send(eviction)

    def _state(self, job: Job, wanted: meta.Condition, now: int, *, exactly: bool = False) -> bool:
        """Write a condition unless the group says so already, and tell whether that was news."""
        told = self._known(job)
        said = told.get(wanted.type)
        since = timestamp.format_timestamp(now - now % 1_000_000)
        if said is not None:
            if said.status == "True" and wanted.status == "False":
                return False
            differs = said.message != wanted.message if exactly else is_news(said.message, wanted.message)
            if (said.status, said.reason) == (wanted.status, wanted.reason) and not differs:
                return False
            since = said.last_transition_time or since if said.status == wanted.status else since
        condition = told[wanted.type] = structs.replace(
            wanted,
            message=wanted.message[:_LONGEST],
            last_transition_time=since,
            observed_generation=_origin(job).metadata.generation,
        )
        self._send(job, [condition])
        return True

    def _known(self, job: Job) -> dict[str, meta.Condition]:
        """Return what is to be read on a group: what was written last, else what was read."""
        told = self._told.get(job.key)
        if told is None:
            ours = (names.CONDITION_POD_GROUP_SCHEDULED, names.CONDITION_DISRUPTION_TARGET)
            told = self._told[job.key] = {c.type: c for c in _origin(job).status.conditions if c.type in ours}
        return told

    def _send(self, job: Job, conditions: list[meta.Condition]) -> None:
        metadata = _origin(job).metadata
        patch = Patch(
            kind=kinds.NATIVE_POD_GROUP,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            body={"status": {"conditions": [_body(condition) for condition in conditions]}},
            subresource="status",
            strategic=True,
            reports=True,
        )
        self._cache.world.send(patch)


def _verdict(status: str, reason: str, message: str) -> meta.Condition:
    type_ = names.CONDITION_POD_GROUP_SCHEDULED
    return meta.Condition(type=type_, status=status, reason=reason, message=message)


def _origin(job: Job) -> native.PodGroup:
    """Return the group of a job as it was read."""
    return job.group.origin if isinstance(job.group, NativeGroup) else native.PodGroup()


def _marks(effect: Patch) -> bool:
    return any(each["type"] == names.CONDITION_DISRUPTION_TARGET for each in effect.body["status"]["conditions"])


def _body(condition: meta.Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": condition.last_transition_time,
        "observedGeneration": condition.observed_generation,
    }
