"""What makes a workload invalid: its selector and template, how it is rolled out, how a Job ends, when a CronJob starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import time_zones
from pumice.apiserver.built_in import wrong
from pumice.apiserver.built_in.pod_validity import pod_spec
from pumice.controllers.cron_jobs import cron_fields, schedules
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

_TEMPLATE: Final = "spec.template.spec"
_MOST_INDEXED: Final = 100_000
_LONGEST_CRON_JOB: Final = 52  # its Jobs get eleven characters more, and their names are labels of at most 63
_ZONED: Final = ("TZ=", "CRON_TZ=")
_FIXED: Final = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"  # fmt: skip
_FREE_OF_STATEFUL_SETS: Final = frozenset({"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"})  # fmt: skip


def workload(manifest: Mapping[str, Any], kind: str, old: Mapping[str, Any] | None) -> Causes:
    """Check a Deployment, ReplicaSet, StatefulSet, DaemonSet or ReplicationController, whose selector is a map of labels that may change."""
    spec = structure.mapping(manifest, "spec")
    if kind == "ReplicationController":
        spec = {**spec, "selector": {"matchLabels": structure.mapping(spec, "selector")}}
    selector, labels = structure.mapping(spec, "selector"), structure.mapping(spec, "template", "metadata", "labels")
    found: Causes = []
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        found += wrong.required("spec.selector")
    elif any(labels.get(key) != value for key, value in structure.mapping(selector, "matchLabels").items()):
        found += wrong.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    found += wrong.selector(selector, "spec.selector")
    claims = [structure.mapping(each, "metadata").get("name") for each in spec.get("volumeClaimTemplates") or ()]
    found += pod_spec(structure.mapping(spec, "template", "spec"), _TEMPLATE, [str(name) for name in claims])
    policy = structure.mapping(spec, "template", "spec").get("restartPolicy")
    if policy not in (None, "Always"):
        found += wrong.unsupported(f"{_TEMPLATE}.restartPolicy", policy, ("Always",))
    for field in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        found += wrong.negative(spec.get(field), f"spec.{field}")
    if kind == "Deployment":
        found += _roll_out(spec)
    if old is not None and kind != "ReplicationController":
        found += _changed(spec, structure.mapping(old, "spec"), kind)
    return found


def _changed(spec: Mapping[str, Any], before: Mapping[str, Any], kind: str) -> Causes:
    if kind == "StatefulSet":
        names = (spec.keys() | before.keys()) - _FREE_OF_STATEFUL_SETS
        return wrong.forbidden("spec", _FIXED) if any(spec.get(name) != before.get(name) for name in names) else []
    if before.get("selector") != spec.get("selector"):
        return wrong.invalid("spec.selector", spec.get("selector"), "field is immutable")
    return []


def _roll_out(spec: Mapping[str, Any]) -> Causes:
    strategy, field = structure.mapping(spec, "strategy"), "spec.strategy.rollingUpdate"
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    found = wrong.negative(deadline, "spec.progressDeadlineSeconds")
    if not found and deadline is not None and deadline <= ready:
        found += wrong.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate":
        why = "may not be specified when strategy `type` is 'Recreate'"
        return found + (wrong.forbidden(field, why) if rolling is not None else [])
    if isinstance(rolling, dict):
        found += wrong.share(rolling.get("maxUnavailable"), f"{field}.maxUnavailable")
        found += wrong.share(rolling.get("maxSurge"), f"{field}.maxSurge", bounded=False)
        if all(rolling.get(name) in (0, "0%") for name in ("maxSurge", "maxUnavailable")):
            found += wrong.invalid(
                f"{field}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"
            )
    return found


def job(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a Job of batch/v1."""
    spec = structure.mapping(manifest, "spec")
    found = job_spec(spec, "spec")
    if old is None:
        return found
    before = structure.mapping(old, "spec")
    fixed = ["selector", "completionMode"] + (["completions"] if before.get("completionMode") != "Indexed" else [])
    fixed += [] if before.get("suspend") and not structure.mapping(old, "status").get("startTime") else ["template"]
    for field in fixed:
        if before.get(field) != spec.get(field):
            found += wrong.invalid(f"spec.{field}", spec.get(field), "field is immutable")
    return found


def job_spec(spec: Mapping[str, Any], path: str) -> Causes:
    """Check what a Job is to do, its own or of a template."""
    template = structure.mapping(spec, "template", "spec")
    found = pod_spec(template, f"{path}.template.spec")
    if template.get("restartPolicy") not in ("OnFailure", "Never"):
        found += wrong.required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    for field in (
        "parallelism",
        "completions",
        "backoffLimit",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
        "ttlSecondsAfterFinished",
        "activeDeadlineSeconds",
    ):
        found += wrong.negative(spec.get(field), f"{path}.{field}")
    return found + _indexed(spec, path)


def _indexed(spec: Mapping[str, Any], path: str) -> Causes:
    found: Causes = []
    if spec.get("completionMode") != "Indexed":
        for field in ("backoffLimitPerIndex", "successPolicy"):
            if spec.get(field) is not None:
                found += wrong.invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
        return found
    if spec.get("completions") is None:
        found += wrong.required(f"{path}.completions", "when completion mode is Indexed")
    most = f"must be less than or equal to {_MOST_INDEXED} when completion mode is Indexed"
    if (spec.get("parallelism") or 0) > _MOST_INDEXED:
        found += wrong.invalid(f"{path}.parallelism", spec["parallelism"], most)
    return found


def cron_job(manifest: Mapping[str, Any]) -> Causes:
    """Check a CronJob of batch/v1."""
    spec, name = structure.mapping(manifest, "spec"), manifest["metadata"]["name"]
    found: Causes = []
    if len(name) > _LONGEST_CRON_JOB:
        found += wrong.invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB} characters")
    found += _schedule(spec.get("schedule") or "") + _zone(spec.get("timeZone"))
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        found += wrong.negative(spec.get(field), f"spec.{field}")
    template = structure.mapping(spec, "jobTemplate", "spec")
    if template.get("manualSelector"):
        found += wrong.unsupported("spec.jobTemplate.spec.manualSelector", value=True, supported=("nil", "false"))
    return found + job_spec(template, "spec.jobTemplate.spec")


def _schedule(text: str) -> Causes:
    field = "spec.schedule"
    if not text:
        return wrong.required(field)
    if text.startswith(_ZONED):
        return wrong.invalid(field, text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    words = text.split()
    if not text.startswith("@") and len(words) != 5:
        listed = " ".join(words)
        return wrong.invalid(field, text, f"expected exactly 5 fields, found {len(words)}: [{listed[:200]}]")
    try:
        schedules.parse(text, None)
    except cron_fields.ScheduleError as error:
        return wrong.invalid(field, text, str(error))
    return []


def _zone(name: Any) -> Causes:
    field = "spec.timeZone"
    if name is None:
        return []
    if not name:
        return wrong.invalid(field, name, "timeZone must be nil or non-empty string")
    if name.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return wrong.invalid(field, name, why)
    try:
        time_zones.zone_of(name)
    except time_zones.ZoneError:
        return wrong.invalid(field, name, f"unknown time zone {name[:60]}")
    return []
