"""The status of a Job: what it says, and when it is worth a write.

A phase is written at once. Counts alone wait until they have been quiet for a moment: a second, and up to 15 where there are hundreds of groups, since with
thousands of Jobs nobody reads each count as it changes, and the API server has better things to do. While there is much to do, counts wait
longer, and so does the first word about a new Job: that it is Pending is then written together with how many of its pods are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, kinds, names
from pumice.controllers.volcano.jobs import members as pods_of
from pumice.controllers.volcano.jobs import reading, states
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.queueing.requests import Moment, Step
    from pumice.controllers.volcano.jobs.members import Members
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
_COUNTED: Final = {
    "pending": names.PHASE_PENDING,
    "running": names.PHASE_RUNNING,
    "succeeded": names.PHASE_SUCCEEDED,
    "failed": names.PHASE_FAILED,
    "unknown": names.PHASE_UNKNOWN,
}
_OF_THE_END: Final = (names.PHASE_SUCCEEDED, names.PHASE_FAILED)
WAITS: Final = names.REASON_UNSCHEDULABLE
"""The reason of a Job that waits for no other reason than its group does; its message is the group's cause."""
PAUSE: Final = duration.SECOND  # between two writes of counts, and since a pod last changed
_RESOLUTION: Final = duration.SECOND
_PAUSE_PER_GROUP: Final = 50 * duration.MILLISECOND
_LONGEST_PAUSE: Final = 15 * duration.SECOND
_PAUSE_IF_BUSY: Final = 30 * duration.SECOND


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a status says beside its counts."""

    phase: str
    reason: str = ""
    message: str = ""
    version: int
    retry_count: int
    controlled: Mapping[str, str]


def unchanged(job: Job, **changes: Any) -> Said:
    """Give what a Job's status says now, or would with some changes."""
    said = Said(
        phase=job.phase,
        reason=job.reason,
        message=job.message,
        version=job.version,
        retry_count=job.retry_count,
        controlled=job.controlled,
    )
    return msgspec.structs.replace(said, **changes)


def as_written(job: Job, said: Said) -> Job:
    """Give a Job as it is read once its status says something else."""
    state = {"phase": said.phase, "reason": said.reason, "message": said.message}
    status = {**job.status, "state": state, "version": said.version, "retryCount": said.retry_count}
    return reading.Job({**job.manifest, "status": status}, job.asked)


def write(job: Job, found: Members, said: Said, moment: Moment, *, groups: int) -> tuple[list[Step], int | None]:
    """Write the status if it says something else than before and its time has come; else give when that will be."""
    counts = _counts(job, found, said.phase)
    if not _differs(job, said, counts):
        return [], None
    if _is_no_step(job, said) and job.min_available == manifests.number(job.status, "minAvailable"):
        due = due_at(job, found, moment, groups)
        if due > moment.now:
            return [], due
    elif moment.busy and _is_first_word(job, found, said):
        due = manifests.created(job.manifest) + _PAUSE_IF_BUSY
        if moment.now < due <= moment.now + _PAUSE_IF_BUSY:
            return [], due
    status = _status(job, said, counts, moment)
    return steps_to.write_status(kinds.JOB, job.manifest, status, exact=True), None


def _is_no_step(job: Job, said: Said) -> bool:
    """Tell whether a status says nothing new but counts, and why the Job waits; that is no more urgent than they are."""
    if job.reason in ("", WAITS) and said.reason in ("", WAITS):
        return said == unchanged(job, reason=said.reason, message=said.message)
    return said == unchanged(job)


def _differs(job: Job, said: Said, counts: Manifest) -> bool:
    if said != unchanged(job) or job.min_available != manifests.number(job.status, "minAvailable"):
        return True
    listed = manifests.mapping(job.status, "taskStatusCount")
    numbers = (manifests.number(job.status, field) != counts[field] for field in counts if field != "taskStatusCount")
    return any(numbers) or dict(listed) != counts["taskStatusCount"]


def due_at(job: Job, found: Members, moment: Moment, groups: int) -> int:
    """Give when counts are worth a write: after a pause that has seen no change, and if changes never stop after three."""
    pause = _PAUSE_IF_BUSY if moment.busy else max(PAUSE, min(_LONGEST_PAUSE, groups * _PAUSE_PER_GROUP))
    written = job.written or 0
    if written > moment.now:
        return moment.now  # whoever wrote it had a clock ahead of ours, for which nobody waits
    if written + pause > moment.now:
        return written + pause
    # Times are told in whole seconds: a change may be a second later than its pod says. One that is yet to come was told by a clock ahead of ours, for which nobody waits.
    told = (pods_of.changed_at(each) for each in found.all)
    changes = [min(moment.now, at + _RESOLUTION) for at in told if written - _RESOLUTION < at <= moment.now]
    return min(max(changes) + pause, min(changes) + 3 * pause) if changes else moment.now


def _is_first_word(job: Job, found: Members, said: Said) -> bool:
    """Tell whether a status says of a new Job that it and all its pods are Pending, and nothing else."""
    waits = found.count(names.PHASE_PENDING) == len(found.all)
    return not job.phase and said.phase == reading.PENDING and said.reason in ("", WAITS) and waits


def _counts(job: Job, found: Members, phase: str) -> Manifest:
    by_role = found.role_counts()
    counts: Manifest = {field: found.count(each) for field, each in _COUNTED.items()}
    counts["terminating"] = found.terminating
    if states.is_finished(phase):
        # Pods that are cleared away later were there all the same: the counts of the end are kept.
        for field in ("succeeded", "failed"):
            counts[field] = max(counts[field], manifests.number(job.status, field))
        by_role = _kept(job, by_role)
    counts["taskStatusCount"] = {role: {"phase": each} for role, each in by_role.items()}
    return counts


def _kept(job: Job, by_role: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    found = {role: dict(counts) for role, counts in by_role.items()}
    for role, each in manifests.mapping(job.status, "taskStatusCount").items():
        before = manifests.mapping(each, "phase")
        for phase in _OF_THE_END:
            count = manifests.number(before, phase)
            if count > found.get(role, {}).get(phase, 0):
                found.setdefault(role, {})[phase] = count
    return found


def _status(job: Job, said: Said, counts: Manifest, moment: Moment) -> Manifest:
    over = states.is_finished(said.phase) and said.phase == job.phase
    since = manifests.mapping(job.status, "state").get("lastTransitionTime") if over else None
    when = since or manifests.stamp(moment)  # what is finished was finished then: its time to live is counted from it
    state: Manifest = {"phase": said.phase, "lastTransitionTime": when}
    state |= {"reason": said.reason} if said.reason else {}
    state |= {"message": said.message} if said.message else {}
    others = [
        each
        for each in manifests.items(job.status, "conditions")
        if manifests.mapping(each).get("status") != said.phase
    ]
    status: Manifest = {
        **job.status,
        **counts,
        "state": state,
        "minAvailable": job.min_available,
        "version": said.version,
        "retryCount": said.retry_count,
        "conditions": [*others, {"status": said.phase, "lastTransitionTime": when}],
        "controlledResources": dict(said.controlled),
    }
    status.pop("runningDuration", None)
    if said.phase not in (reading.PENDING, reading.RUNNING):
        ended = manifests.moment_of(when) or moment.now
        begun = manifests.created(job.manifest) // duration.SECOND * duration.SECOND
        status["runningDuration"] = duration.format_duration(max(0, ended - begun))
    return status
