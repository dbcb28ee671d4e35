"""What a CronJob does next: it counts its Jobs, deletes old ones, and starts the one that is due."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, kinds, time_zones
from pumice.controllers.cron_jobs import flavours, records, schedules, slots
from pumice.controllers.cron_jobs.cron_fields import ScheduleError
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import controller
from pumice.controllers.workloads import manifests, pods, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.cron_jobs.flavours import Flavour
    from pumice.controllers.cron_jobs.records import Note
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
_FORBID: Final = "Forbid"
_REPLACE: Final = "Replace"


class _Plan(msgspec.Struct, kw_only=True):
    """How the next start goes: what is done, what is said, and when to look again."""

    steps: list[Step] = []
    notes: list[Note] = []
    again: int | None = None


class CronJobs:
    """Reconciles CronJobs, Volcano's unless it is told otherwise."""

    def __init__(self, flavour: Flavour = flavours.VOLCANO) -> None:
        self._flavour = flavour
        self.kind = flavour.kind
        self.watched = (flavour.job, kinds.NAMESPACE)
        self.remembered = (flavour.job,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the CronJob that a Job belongs to."""
        del observed
        owner = controller(manifest) if kind == self._flavour.job else None
        if owner and (owner.get("apiVersion"), owner.get("kind")) == (self.kind.api_version, self.kind.name):
            yield manifest["metadata"].get("namespace", ""), str(owner.get("name"))

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take the next steps of a CronJob."""
        cron_job = observed.find(self.kind, namespace, name)
        if cron_job is None or manifests.is_going(cron_job):
            return requests.Reconciled()
        flavour = self._flavour
        if problem := records.problem(cron_job):
            return requests.Reconciled(notes=[("Warning", "InvalidStatus", problem)])
        jobs = observed.owned(self._flavour.job, manifests.uid(cron_job))
        gone = observed.vanished(self._flavour.job, self.kind, cron_job)
        told = records.notes(flavour, cron_job, jobs, gone, observed)
        written = steps_to.write_status(self.kind, cron_job, records.status(flavour, cron_job, jobs, gone))
        last = records.last_start(flavour, cron_job, [*jobs, *gone])
        plan = _start(flavour, cron_job, jobs, last, observed=observed, moment=moment)
        return requests.Reconciled(
            steps=[*written, *records.pruned(flavour, cron_job, jobs), *plan.steps],
            notes=[*told, *plan.notes],
            again=plan.again,
            size=len(jobs),
        )


def _start(
    flavour: Flavour,
    cron_job: Manifest,
    jobs: list[Manifest],
    last: int | None,
    *,
    observed: Observed,
    moment: Moment,
) -> _Plan:
    """Start what is due, unless the CronJob is suspended or cannot be understood."""
    spec = manifests.mapping(cron_job, "spec")
    if spec.get("suspend") is True:
        return _Plan()
    text, zone_name = str(spec.get("schedule") or ""), spec.get("timeZone")
    warnings: list[Note] = []
    if "TZ" in text:
        told = f"CRON_TZ or TZ used in schedule {text[:60]!r} is not officially supported; use spec.timeZone"
        warnings.append(("Warning", "UnsupportedSchedule", told))
    try:
        zone = time_zones.zone_of(str(zone_name)) if zone_name else None
        schedule = schedules.parse(text, zone)
    except time_zones.ZoneError as error:
        return _Plan(notes=[*warnings, ("Warning", flavour.reasons.zone, f"invalid timeZone: {error}")])
    except ScheduleError as error:
        told = f"unparseable schedule for cronjob: {error}"
        return _Plan(notes=[*warnings, ("Warning", flavour.reasons.schedule, told)])
    due = slots.due(cron_job, schedule, moment, last)
    if due.next is None and due.slot is None:
        told = f"invalid schedule: {text[:60]!r} does not come within five years"
        return _Plan(notes=[*warnings, ("Warning", "InvalidSchedule", told)])
    plan = _Plan() if due.slot is None else _started(flavour, cron_job, jobs, due.slot, zone, observed=observed)
    if due.many_missed:
        warnings.append(("Warning", "TooManyMissedTimes", _MANY))
    return _Plan(steps=plan.steps, notes=[*warnings, *plan.notes], again=due.next)


_MANY: Final = (
    f"too many missed start times (> {slots.MANY}): only the latest is started; "
    "set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


def _started(
    flavour: Flavour,
    cron_job: Manifest,
    jobs: list[Manifest],
    slot: int,
    zone: dt.tzinfo | None,
    *,
    observed: Observed,
) -> _Plan:
    """Start the Job of a slot as the policy has it."""
    namespace, name = cron_job["metadata"].get("namespace", ""), slots.job_name(cron_job, slot)
    taken = observed.find(flavour.job, namespace, name)
    if taken is not None:
        ours = (controller(taken) or {}).get("uid") == manifests.uid(cron_job)
        told = f"Error creating Job: {name} exists already and belongs to somebody else"
        return _Plan(notes=[] if ours else [("Warning", "FailedCreate", told)])
    home = observed.find(kinds.NAMESPACE, "", namespace)
    if home is not None and manifests.is_going(home):
        told = f"Not starting job because namespace {namespace} is being deleted"
        return _Plan(notes=[("Warning", "NamespaceTerminating", told)])
    running = records.active(flavour, jobs)
    policy = manifests.mapping(cron_job, "spec").get("concurrencyPolicy")
    if policy == _FORBID and running:
        told = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return _Plan(
            notes=[("Normal", flavour.reasons.forbidden, told)]
        )  # it is due until the Job ends, or a later one is
    replaced = running if policy == _REPLACE else []
    said = ("SuccessfulCreate", f"Created job {name}")
    made = steps_to.create(flavour.job, _job(flavour, cron_job, name, slot, zone), said)
    names_of = ", ".join(manifests.name(job) for job in replaced)
    told = f"Replaced {names_of} by {name}, because concurrency policy is Replace"
    return _Plan(
        steps=[*(records.removed(flavour, job) for job in replaced), made],
        notes=[("Normal", said_of, told)] if replaced and (said_of := flavour.reasons.replaced) else [],
    )


def _job(flavour: Flavour, cron_job: Manifest, name: str, slot: int, zone: dt.tzinfo | None) -> Manifest:
    template = manifests.mapping(cron_job, "spec", "jobTemplate")
    stated = manifests.mapping(template, "metadata")
    at = dt.datetime.fromtimestamp(slot // duration.SECOND, zone or dt.UTC)
    written = at.isoformat().removesuffix("+00:00") + ("Z" if at.utcoffset() == dt.timedelta() else "")
    labels = manifests.mapping(stated, "labels")
    metadata = {
        "name": name,
        "namespace": cron_job["metadata"].get("namespace", ""),
        **({"labels": dict(labels)} if labels else {}),
        "annotations": {**manifests.mapping(stated, "annotations"), flavour.scheduled: written},
        "ownerReferences": [pods.controller_reference(cron_job, flavour.kind)],
    }
    spec = manifests.mapping(template, "spec")
    return {"apiVersion": flavour.job.api_version, "kind": flavour.job.name, "metadata": metadata, "spec": dict(spec)}
