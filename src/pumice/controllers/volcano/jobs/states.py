"""The phases of a Job: which action leads where, and where it goes by itself.

```
            ┌────────────── Restarting ◀─────────────────────┐ ResumeJob
            ▼                 ▲   └──▶ Failed                │
  (new) ─▶ Pending ◀──▶ Running ──▶ Completed, Failed        │
            │                 │                              │
            └── AbortJob ─────┴──▶ Aborting ─────▶ Aborted ──┘
                CompleteJob   ───▶ Completing ───▶ Completed
                TerminateJob  ───▶ Terminating ──▶ Terminated
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import names
from pumice.controllers.volcano.jobs import reading
from pumice.controllers.volcano.jobs.reading import (
    ABORTED,
    ABORTING,
    COMPLETED,
    COMPLETING,
    FAILED,
    PENDING,
    RESTARTING,
    RUNNING,
    TERMINATED,
    TERMINATING,
)
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.volcano.jobs.members import Members
    from pumice.controllers.volcano.jobs.reading import Job

RESTART_JOB: Final = "RestartJob"
RESUME_JOB: Final = "ResumeJob"
TERMINATE_JOB: Final = "TerminateJob"
SYNC_JOB: Final = "SyncJob"
RESTARTS_OF_SOME: Final = ("RestartTask", "RestartPod", "RestartPartition")
ENDINGS: Final[Mapping[str, str]] = {"AbortJob": ABORTING, TERMINATE_JOB: TERMINATING, "CompleteJob": COMPLETING}
ORDERS: Final = (*ENDINGS, RESTART_JOB, RESUME_JOB, SYNC_JOB)
"""What a Command may ask for: what is for one pod or task alone is left to policies, as a Command names none."""
_WHEN_EMPTY: Final[Mapping[str, str]] = {ABORTING: ABORTED, COMPLETING: COMPLETED, TERMINATING: TERMINATED}
AT_WORK: Final = ("", PENDING, RUNNING)


class Change(msgspec.Struct, frozen=True):
    """A phase that an action leads to; `counts` if that uses up a retry, `whole` if all pods made so far are of the past then."""

    phase: str
    counts: bool
    whole: bool


def acted(job: Job, action: str) -> Change | None:
    """Give where an action leads, None if it changes nothing in the present phase."""
    if job.phase in (ABORTING, ABORTED):
        return Change(RESTARTING, counts=True, whole=True) if action == RESUME_JOB else None
    if job.phase not in (*AT_WORK, RESTARTING):
        return None
    if action in ENDINGS:
        return Change(ENDINGS[action], counts=False, whole=True)
    if job.phase == RESTARTING:
        # What happens during a restart is part of it: nothing more is counted.
        anew = action == RESTART_JOB and job.reason not in ("", RESTART_JOB)
        return Change(RESTARTING, counts=False, whole=True) if anew else None
    if action == RESTART_JOB:
        return Change(RESTARTING, counts=True, whole=True)
    return Change(RESTARTING, counts=True, whole=False) if action in RESTARTS_OF_SOME else None


def moved(job: Job, found: Members, *, held_open: bool = False) -> str:
    """Give the phase that a Job goes to by itself, which may be the one it has."""
    if job.phase in _WHEN_EMPTY:
        left = found.terminating + found.count(names.PHASE_PENDING) + found.count(names.PHASE_RUNNING)
        return job.phase if left + found.count(names.PHASE_UNKNOWN) else _WHEN_EMPTY[job.phase]
    if job.phase == RESTARTING:
        return _restarted(job, found)
    if job.phase in ("", PENDING):
        started = found.count(names.PHASE_RUNNING) + found.ended
        return RUNNING if job.phase and job.min_available <= started else PENDING
    return _ran(job, found, held_open=held_open) if job.phase == RUNNING else job.phase


def _restarted(job: Job, found: Members) -> str:
    if job.is_at_its_last:
        return FAILED
    least = manifests.number(job.status, "minAvailable", job.min_available)
    return PENDING if job.replicas - found.terminating >= min(least, job.replicas) else RESTARTING


def _ran(job: Job, found: Members, *, held_open: bool) -> str:
    succeeded = found.count(names.PHASE_SUCCEEDED)
    if not job.replicas:
        return RUNNING
    if job.min_success is not None and succeeded >= job.min_success:
        return COMPLETED
    if found.ended == job.replicas and not held_open:
        return COMPLETED if _ended_well(job, found, succeeded) else FAILED
    return PENDING if found.count(names.PHASE_PENDING) > job.replicas - job.min_available else RUNNING


def _ended_well(job: Job, found: Members, succeeded: int) -> bool:
    if job.min_available >= sum(role.least for role in job.roles):
        counts = found.role_counts()
        for role in job.roles:
            if role.min_available is None or role.name not in counts:
                continue
            if counts[role.name].get(names.PHASE_SUCCEEDED, 0) < role.min_available:
                return False
    return job.min_success is None and succeeded >= job.min_available


def is_ending(phase: str) -> bool:
    """Tell whether everything that still runs has to go in a phase."""
    return phase not in (*AT_WORK, RESTARTING)


def is_finished(phase: str) -> bool:
    """Tell whether a Job is over for good."""
    return phase in reading.FINISHED
