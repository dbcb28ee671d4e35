"""When a Job is over, and what its status says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pumice.api import duration
from pumice.controllers.workloads import manifests, pods
from pumice.controllers.workloads.jobs import failure_policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.queueing.requests import Moment
    from pumice.controllers.workloads.jobs.tallying import Tally

Manifest = dict[str, Any]
Note = tuple[str, str, str]


class JobEnd(msgspec.Struct, frozen=True):
    """How a Job stands: it runs, is suspended, or will end in success or failure, with the reason and the message."""

    state: Literal["running", "suspended", "succeeding", "failing"] = "running"
    reason: str = ""
    message: str = ""


def is_finished(job: Mapping[str, Any]) -> bool:
    """Tell whether a Job has ended."""
    status = manifests.mapping(job, "status")
    return manifests.has(status, "Complete") or manifests.has(status, "Failed")


def judge(job: Manifest, tally: Tally, moment: Moment) -> JobEnd:
    """Say how a Job stands; a verdict once written stays."""
    spec, status = manifests.mapping(job, "spec"), manifests.mapping(job, "status")
    for condition, state in (("FailureTarget", "failing"), ("SuccessCriteriaMet", "succeeding")):
        found = manifests.condition(status, condition)
        if found.get("status") == "True":
            reason, message = str(found.get("reason", "")), str(found.get("message", ""))
            return JobEnd("failing" if state == "failing" else "succeeding", reason, message)
    if tally.fatal:
        return JobEnd("failing", failure_policy.REASON, tally.fatal)
    limit = manifests.number(spec, "backoffLimit", 6)
    if tally.failed > limit or (_restarts_in_place(spec) and _restarted(tally) > limit):
        return JobEnd("failing", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if _is_enough(tally):
        return JobEnd("succeeding", "CompletionsReached", "Reached expected number of succeeded pods")
    if spec.get("suspend") is True:
        return JobEnd("suspended")
    due = deadline(job, moment)
    if due is not None and due <= moment.now:
        return JobEnd("failing", "DeadlineExceeded", "Job was active longer than specified deadline")
    return JobEnd()


def _is_enough(tally: Tally) -> bool:
    if tally.completions is not None:
        return tally.succeeded >= tally.completions
    # Without a number of completions one success is enough, once all others have ended too.
    return tally.succeeded > 0 and not tally.active


def _restarts_in_place(spec: Mapping[str, Any]) -> bool:
    return manifests.mapping(spec, "template", "spec").get("restartPolicy") == "OnFailure"


def _restarted(tally: Tally) -> int:
    return sum(pods.restarts(pod) for pod in tally.active)


def deadline(job: Manifest, moment: Moment) -> int | None:
    """Give when a Job that runs will have run too long."""
    spec, status = manifests.mapping(job, "spec"), manifests.mapping(job, "status")
    seconds = spec.get("activeDeadlineSeconds")
    if not isinstance(seconds, int):
        return None
    began = manifests.moment_of(status.get("startTime")) or moment.now
    return moment.reaches(began, seconds * duration.SECOND)


def expires(job: Manifest, moment: Moment) -> int | None:
    """Give when a finished Job is to be deleted."""
    seconds = manifests.mapping(job, "spec").get("ttlSecondsAfterFinished")
    status = manifests.mapping(job, "status")
    ended = next(
        (manifests.condition(status, each) for each in ("Complete", "Failed") if manifests.has(status, each)), {}
    )
    since = manifests.moment_of(ended.get("lastTransitionTime"))
    if not isinstance(seconds, int) or since is None:
        return None
    return moment.reaches(since, seconds * duration.SECOND)


def status(
    job: Manifest, tally: Tally, verdict: JobEnd, moment: Moment, *, made: int, leaving: frozenset[str]
) -> tuple[Manifest, list[Note]]:
    """Give the status, after pods have come or gone, and what there is to be said about it."""
    old = manifests.mapping(job, "status")
    counted = ("active", "ready", "terminating", "succeeded", "failed", "completedIndexes", "uncountedTerminatedPods")
    new: Manifest = {field: value for field, value in old.items() if field not in counted}
    staying = [pod for pod in tally.active if manifests.uid(pod) not in leaving]
    active = len(staying) + made
    new |= {"active": active} if active else {}
    new |= {"ready": sum(pods.is_ready(pod) for pod in staying), "terminating": len(tally.terminating) + len(leaving)}
    new |= tally.written()
    new, notes = _suspension(job, new, verdict, moment)
    if verdict.state in ("succeeding", "failing"):
        settled = not active and not tally.left_succeeded and not tally.left_failed and not new["terminating"]
        new, more = _verdict(new, verdict, moment, settled=settled)
        notes += more
    return new, notes


def _suspension(job: Manifest, status: Manifest, verdict: JobEnd, moment: Moment) -> tuple[Manifest, list[Note]]:
    suspended = manifests.has(status, "Suspended")
    when = manifests.stamp(moment)
    if verdict.state == "suspended":
        if suspended:
            return status, []
        said = _said("Suspended", "True", "JobSuspended", "Job suspended", when)
        rest = {field: value for field, value in status.items() if field != "startTime"}
        return manifests.with_condition(rest, said), [("Normal", "Suspended", "Job suspended")]
    notes: list[Note] = []
    if suspended and manifests.mapping(job, "spec").get("suspend") is not True:
        said = _said("Suspended", "False", "JobResumed", "Job resumed", when)
        status = {**manifests.with_condition(status, said), "startTime": when}
        notes.append(("Normal", "Resumed", "Job resumed"))
    return {**status, "startTime": status.get("startTime") or when}, notes


def _verdict(status: Manifest, verdict: JobEnd, moment: Moment, *, settled: bool) -> tuple[Manifest, list[Note]]:
    """Write the verdict at once, and that the Job has ended when all its pods have."""
    when = manifests.stamp(moment)
    good = verdict.state == "succeeding"
    first, last = ("SuccessCriteriaMet", "Complete") if good else ("FailureTarget", "Failed")
    status = manifests.with_condition(status, _said(first, "True", verdict.reason, verdict.message, when))
    if not settled:
        return status, []
    status = manifests.with_condition(status, _said(last, "True", verdict.reason, verdict.message, when))
    if good:
        return {**status, "completionTime": when}, [("Normal", "Completed", "Job completed")]
    return status, [("Warning", verdict.reason, verdict.message)]


def _said(kind: str, status: str, reason: str, message: str, when: str) -> Manifest:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": when,
        "lastTransitionTime": when,
    }
