"""How the statuses of groups are written: worked out once for all groups that are told the same in a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import names
from pumice.cache import write_paces
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.api import scheduling
    from pumice.framework import closing
    from pumice.model.job import Job

_BINDING = int(Status.BINDING)
READY_PHASES = frozenset({names.PHASE_RUNNING, names.PHASE_COMPLETED})


class GroupDraft(msgspec.Struct, frozen=True):
    """The body of a patch, for how long it may wait, whether it only reports, and whether an event says that the group is ready."""

    body: dict[str, Any]
    patience: int
    reports: bool
    is_ready: bool


class GroupDrafts:
    """The drafts of one cycle; whoever sends one changes nothing in its body."""

    __slots__ = ("_drafts",)

    def __init__(self) -> None:
        self._drafts: dict[tuple[closing.JobReport, bool], GroupDraft] = {}

    def of(self, job: Job, report: closing.JobReport) -> GroupDraft:
        """Return the draft of a report on a job; jobs that share the report and are waited for alike share it."""
        awaited = _is_awaited(job)
        draft = self._drafts.get((report, awaited))
        if draft is None:
            draft = self._drafts[report, awaited] = GroupDraft(
                body={"status": _status_body(report.status)},
                patience=_patience(job, report.status.phase, is_awaited=awaited),
                reports=_only_reports(report.status.phase, is_awaited=awaited),
                is_ready=report.entered and report.status.phase in READY_PHASES,
            )
        return draft


def _patience(job: Job, phase: str, *, is_awaited: bool) -> int:
    """Return for how long the status of a group may wait, since a better one may follow."""
    if job.tally.counts[_BINDING]:
        return write_paces.BEING_BOUND
    if phase != names.PHASE_INQUEUE:
        return 0
    return write_paces.LET_IN if is_awaited else write_paces.UNAWAITED


def _only_reports(phase: str, *, is_awaited: bool) -> bool:
    """Tell whether nobody waits for the status of a group: it runs, or was let in and that is not awaited."""
    return phase == names.PHASE_RUNNING or (phase == names.PHASE_INQUEUE and not is_awaited)


def _is_awaited(job: Job) -> bool:
    """Tell whether pods of a group may be made only once it is let in: it has none yet, and a controller looks after it."""
    owners = () if job.tasks or job.group is None else job.group.metadata.owner_references
    return any(owner.controller for owner in owners)


def _status_body(status: scheduling.PodGroupStatus) -> dict[str, Any]:
    """Return the whole status, zeros included: a merge patch keeps what it does not name."""
    return {
        "phase": status.phase,
        "conditions": [
            {
                "type": c.type,
                "status": c.status,
                "transitionID": c.transition_id,
                "lastTransitionTime": c.last_transition_time,
                "reason": c.reason,
                "message": c.message,
            }
            for c in status.conditions
        ],
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
    }
