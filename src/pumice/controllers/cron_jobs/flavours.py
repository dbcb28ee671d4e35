"""The two kinds of CronJob, which follow one set of rules: Volcano's, and that of batch/v1. What tells them apart is here."""

from __future__ import annotations

from collections.abc import Callable, Mapping  # noqa: TC003  msgspec reads the annotations at run time
from typing import Any, Final

import msgspec

from pumice.api import kinds, names
from pumice.controllers.workloads import manifests

FAILED: Final = "Failed"
_COMPLETED: Final = "Completed"  # of Volcano's Jobs
_COMPLETE: Final = "Complete"  # of those of batch/v1


class Reasons(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons of events that the two controllers name differently."""

    forbidden: str
    orphaned: str
    missing: str
    zone: str
    schedule: str
    replaced: str  # nothing is said if it is empty


class Flavour(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of CronJob with the kind of its Jobs, and how these are read."""

    kind: kinds.Kind
    job: kinds.Kind
    scheduled: str  # the annotation of a Job that names its slot
    phase: Callable[[Mapping[str, Any]], str]  # how a Job ended, if it has
    completed: str  # how it ends well
    finished: frozenset[str]  # how it may end
    ended: Callable[[Mapping[str, Any]], int | None]  # when a Job was completed
    reasons: Reasons


def _volcano_phase(job: Mapping[str, Any]) -> str:
    return str(manifests.mapping(job, "status", "state").get("phase") or "")


def _volcano_ended(job: Mapping[str, Any]) -> int | None:
    return manifests.moment_of(manifests.mapping(job, "status", "state").get("lastTransitionTime"))


def _batch_phase(job: Mapping[str, Any]) -> str:
    status = manifests.mapping(job, "status")
    if manifests.has(status, _COMPLETE):
        return _COMPLETE
    return FAILED if manifests.has(status, FAILED) else ""


def _batch_ended(job: Mapping[str, Any]) -> int | None:
    return manifests.moment_of(manifests.mapping(job, "status").get("completionTime"))


VOLCANO: Final = Flavour(
    kind=kinds.CRON_JOB,
    job=kinds.JOB,
    scheduled=names.CRON_JOB_SCHEDULED,
    phase=_volcano_phase,
    completed=_COMPLETED,
    finished=frozenset({_COMPLETED, FAILED, "Terminated"}),
    ended=_volcano_ended,
    reasons=Reasons(
        forbidden="ForbidConcurrent",
        orphaned="OrphanedJob",
        missing="StaleReference",
        zone="InvalidTimeZone",
        schedule="UnParseableCronJobSchedule",
        replaced="ReplaceConcurrent",
    ),
)
BATCH: Final = Flavour(
    kind=kinds.BATCH_CRON_JOB,
    job=kinds.BATCH_JOB,
    scheduled=names.BATCH_CRON_JOB_SCHEDULED,
    phase=_batch_phase,
    completed=_COMPLETE,
    finished=frozenset({_COMPLETE, FAILED}),
    ended=_batch_ended,
    reasons=Reasons(
        forbidden="JobAlreadyActive",
        orphaned="UnexpectedJob",
        missing="MissingJob",
        zone="UnknownTimeZone",
        schedule="UnparseableSchedule",
        replaced="",
    ),
)
