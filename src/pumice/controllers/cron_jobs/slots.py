"""Which start of a CronJob is due: the latest that was missed, if it is not too old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.cron_jobs.schedules import Schedule
    from pumice.controllers.queueing.requests import Moment

MANY: Final = 100  # missed starts, beyond which somebody should be told


class Due(msgspec.Struct, frozen=True):
    """The slot that is to be started now, if any, whether too many were missed, and when the next one is."""

    slot: int | None
    many_missed: bool
    next: int | None


def due(cron_job: Mapping[str, Any], schedule: Schedule, moment: Moment, last: int | None) -> Due:
    """Say which slot is due, given the latest that was started."""
    anchor = moment.since(manifests.created(cron_job)) if last is None else last
    earliest = anchor
    deadline = manifests.mapping(cron_job, "spec").get("startingDeadlineSeconds")
    if isinstance(deadline, int) and not isinstance(deadline, bool):
        earliest = max(earliest, moment.now - max(0, deadline) * duration.SECOND)
    slot = schedule.latest(earliest, moment.now, anchor)
    return Due(
        slot, slot is not None and _are_many(schedule, earliest, slot, anchor), schedule.after(moment.now, anchor)
    )


def job_name(cron_job: Mapping[str, Any], slot: int) -> str:
    """Give the name of the Job of a slot."""
    return f"{manifests.name(cron_job)}-{slot // duration.SECOND // 60}"


def _are_many(schedule: Schedule, earliest: int, slot: int, anchor: int) -> bool:
    """Tell whether more than a hundred starts were missed."""
    start: int | None = earliest
    for _ in range(MANY + 1):
        start = schedule.after(start, anchor) if start is not None else None
        if start is None or start > slot:
            return False
    return True
