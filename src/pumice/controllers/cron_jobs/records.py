"""What a CronJob's Jobs make of its status, and which of them are kept: a recount each time, so a write that was lost is made up for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import documents, timestamp
from pumice.controllers.cron_jobs import slots
from pumice.controllers.cron_jobs.flavours import FAILED
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import controller
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.controllers.cron_jobs.flavours import Flavour
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step

Manifest = dict[str, Any]
Note = tuple[str, str, str]


def is_active(flavour: Flavour, job: Mapping[str, Any]) -> bool:
    """Tell whether a Job has not ended, and nobody has deleted it."""
    return flavour.phase(job) not in flavour.finished and not manifests.is_going(job)


def active(flavour: Flavour, jobs: Sequence[Manifest]) -> list[Manifest]:
    """Give the Jobs that have not ended, oldest first."""
    return _by_age([job for job in jobs if is_active(flavour, job)])


def problem(cron_job: Mapping[str, Any]) -> str:
    """Say which time of a status cannot be read: nobody knows then which slot was the last, and none is started."""
    stated = manifests.mapping(cron_job, "status")
    for field in ("lastScheduleTime", "lastSuccessfulTime"):
        if stated.get(field) is not None and manifests.moment_of(stated[field]) is None:
            value = documents.described(stated[field])
            return (
                f"status.{field}: is {value}, which is no time; correct it or take it away, until then nothing starts"
            )
    return ""


def status(
    flavour: Flavour, cron_job: Mapping[str, Any], jobs: Sequence[Manifest], gone: Sequence[Manifest]
) -> Manifest:
    """Recount a status: what runs, when the last start was, and the last success; also of Jobs that are gone since the last look."""
    found = {
        **manifests.mapping(cron_job, "status"),
        "active": [_reference(flavour, job) for job in active(flavour, jobs)],
    }
    found["lastScheduleTime"] = _stamped(last_start(flavour, cron_job, [*jobs, *gone]))
    ended = [flavour.ended(job) for job in (*jobs, *gone) if flavour.phase(job) == flavour.completed]
    known = manifests.moment_of(manifests.mapping(cron_job, "status").get("lastSuccessfulTime"))
    found["lastSuccessfulTime"] = _stamped(max([each for each in (*ended, known) if each is not None], default=None))
    return {field: value for field, value in found.items() if value}


def last_start(flavour: Flavour, cron_job: Mapping[str, Any], jobs: Sequence[Manifest]) -> int | None:
    """Give the latest slot that was started, whether or not it was written down."""
    known = manifests.moment_of(manifests.mapping(cron_job, "status").get("lastScheduleTime"))
    started = [slot_of(flavour, cron_job, job) for job in jobs]
    return max([each for each in (*started, known) if each is not None], default=None)


def slot_of(flavour: Flavour, cron_job: Mapping[str, Any], job: Mapping[str, Any]) -> int | None:
    """Give the slot that a Job was made for, None if we have not made it."""
    stated = manifests.mapping(job, "metadata", "annotations").get(flavour.scheduled)
    found = manifests.moment_of(stated)
    return found if found is not None and slots.job_name(cron_job, found) == manifests.name(job) else None


def notes(
    flavour: Flavour,
    cron_job: Mapping[str, Any],
    jobs: Sequence[Manifest],
    gone: Sequence[Manifest],
    observed: Observed,
) -> list[Note]:
    """Tell what has become of the Jobs that were active, and of Jobs that nobody here has made."""
    ended = [job for job in gone if flavour.phase(job) in flavour.finished]
    by_uid = {manifests.uid(job): job for job in (*ended, *jobs)}
    listed = [manifests.mapping(each) for each in manifests.items(cron_job, "status", "active")]
    found = [_ending(flavour, cron_job, entry, by_uid, observed) for entry in listed]
    known = {entry.get("uid") for entry in listed}
    for job in active(flavour, jobs):
        if slot_of(flavour, cron_job, job) is None and manifests.uid(job) not in known:
            told = f"Saw a job that the controller did not create or forgot: {manifests.name(job)}"
            found.append(("Warning", flavour.reasons.orphaned, told))
    return [note for note in found if note is not None]


def _ending(
    flavour: Flavour,
    cron_job: Mapping[str, Any],
    entry: Mapping[str, Any],
    by_uid: Mapping[str, Manifest],
    observed: Observed,
) -> Note | None:
    job, name = by_uid.get(str(entry.get("uid"))), str(entry.get("name"))
    if job is not None:
        told = f"Saw completed job: {name}, condition: {flavour.phase(job)}"
        return None if flavour.phase(job) not in flavour.finished else ("Normal", "SawCompletedJob", told)
    other = observed.find(flavour.job, cron_job["metadata"].get("namespace", ""), name)
    if other is not None and (controller(other) or {}).get("uid") != manifests.uid(cron_job):
        return "Warning", "ForeignJob", f"Active job {name} belongs to somebody else"
    return "Normal", flavour.reasons.missing, f"Active job went missing: {name}"


def pruned(flavour: Flavour, cron_job: Mapping[str, Any], jobs: Sequence[Manifest]) -> list[Step]:
    """Delete the oldest Jobs beyond what is kept of each sort; those that were terminated stay."""
    spec = manifests.mapping(cron_job, "spec")
    limits = {
        flavour.completed: manifests.number(spec, "successfulJobsHistoryLimit", 3),
        FAILED: manifests.number(spec, "failedJobsHistoryLimit", 1),
    }
    steps: list[Step] = []
    for phase, limit in limits.items():
        ended = _by_age([job for job in jobs if flavour.phase(job) == phase and not manifests.is_going(job)])
        steps += [removed(flavour, job) for job in ended[: max(0, len(ended) - max(0, limit))]]
    return steps


def removed(flavour: Flavour, job: Mapping[str, Any]) -> Step:
    """Delete a Job."""
    step, name = steps_to.delete(flavour.job, job), manifests.name(job)
    said = ("SuccessfulDelete", f"Deleted job {name}")
    return requests.Step(request=step.request, said=said, refused=("FailedDelete", f"Deleted job {name} failed: "))


def _by_age(jobs: list[Manifest]) -> list[Manifest]:
    return sorted(jobs, key=lambda job: (manifests.created(job), manifests.name(job)))


def _reference(flavour: Flavour, job: Mapping[str, Any]) -> Manifest:
    metadata = job["metadata"]
    return {
        "apiVersion": flavour.job.api_version,
        "kind": flavour.job.name,
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "uid": metadata.get("uid", ""),
    }


def _stamped(moment: int | None) -> str | None:
    return None if moment is None else timestamp.format_timestamp(moment)
