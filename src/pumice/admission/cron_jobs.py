"""Cron jobs: when they start, and what."""

from __future__ import annotations

import zoneinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pumice.admission import laws, patches, remarks
from pumice.admission.jobs import completing, validity
from pumice.admission.parts import Part
from pumice.api import documents, time_zones
from pumice.controllers.cron_jobs import cron_fields, schedules

if TYPE_CHECKING:
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

LONGEST_NAME: Final = 52  # a job gets eleven characters more, and its name is a label of at most 63
_ZONED: Final = ("TZ=", "CRON_TZ=")
_SOME_MINUTE: Final = "29000000"  # as long as all that come before the year 2160
_POLICIES: Final = ("Allow", "Forbid", "Replace")


def judge(request: Request, found: Remarks, _: Surroundings, settings: RuleSettings) -> None:
    """Judge a cron job that is created or changed; a template that was there before is not judged again."""
    if request.operation == "UPDATE" and request.object.get("spec") == request.old.get("spec"):
        return
    whole = request.part(found)
    name = whole.record("metadata").text("name")
    if len(name) > LONGEST_NAME:
        whole.breaks(
            laws.SCHEDULE,
            f"has {len(name)} characters, and may have at most {LONGEST_NAME}: its jobs get a time behind it",
            "metadata",
            "name",
        )
    spec = whole.record("spec")
    _judge_schedule(spec)
    spec.among("concurrencyPolicy", _POLICIES)
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        spec.whole(field, least=0)
    old = request.old.get("spec")
    if not isinstance(old, dict) or old.get("jobTemplate") != spec.part("jobTemplate").value:
        made = f"{name}-{_SOME_MINUTE}" if 0 < len(name) <= LONGEST_NAME else ""
        _judge_template(spec, found, settings, made)


def _judge_schedule(spec: Part) -> None:
    text = spec.required("schedule")
    if text.startswith(_ZONED):
        spec.breaks(
            laws.SCHEDULE,
            f"is {documents.quoted(text)}, which names a time zone: that belongs to the field timeZone",
            "schedule",
        )
    elif text:
        try:
            found = schedules.parse(text, None)
        except cron_fields.ScheduleError as error:
            spec.breaks(laws.SCHEDULE, str(error), "schedule")
        else:
            if isinstance(found, schedules.Every) and found.is_within_a_minute:
                spec.breaks(
                    laws.CRON_MINUTES,
                    f"is {documents.quoted(text)}, and jobs are named after minutes: one a minute is started",
                    "schedule",
                )
    zone = spec.text("timeZone")
    if spec.part("timeZone").value is not None and (problem := _zone_problem(zone)):
        spec.breaks(laws.SCHEDULE, problem, "timeZone")


def _judge_template(spec: Part, found: Remarks, settings: RuleSettings, name: str) -> None:
    """Judge the jobs that would be made, as they would be after what is filled in."""
    template = spec.record("jobTemplate")
    if not template:
        template.refuse("is missing, and must be given")
        return
    inner = template.record("spec")
    made = patches.copied(inner.value)
    if isinstance(made, dict):
        completing.complete_spec(made, settings)
    of_jobs = remarks.Remarks(strict=found.strict)
    validity.judge_spec(Part(made, of_jobs, inner.path), settings, name)
    found.include(of_jobs, laws.CRON_TEMPLATE)


@lru_cache(maxsize=256)
def _zone_problem(name: str) -> str:
    try:
        time_zones.zone_of(name)
    except time_zones.ZoneError as error:
        # A machine without a list of zones knows none, and refuses nobody but for what is never one.
        unlisted = name and name != "Local" and not zoneinfo.available_timezones()
        return "" if unlisted else str(error)
    return ""
