"""What allocate says of a job: how far it got, and why not further."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.job import Job


def holds_room(job: Job) -> str:
    """Say that a job keeps room for members that wait for pods being released."""
    ready, waiting = job.tally.ready, job.tally.waiting
    return f"holds room: {ready} of {job.min_member} members placed, {waiting} wait for pods being released"


def placed(count: int, left: int) -> str:
    """Say how many pods were placed."""
    return f"{count} pods placed, {left} left"


class Shortfall(msgspec.Struct, frozen=True, gc=False):
    """How far a job got and why not further."""

    placed: int
    lacking: int
    minimum: int
    pending: int
    task: str
    failure: FitSummary | None

    def __str__(self) -> str:
        why = f"; {self.task}: {self.failure}" if self.failure is not None else ""
        if self.lacking <= 0:
            return f"has its minimum of {self.minimum}; {self.pending} more pods wait{why}"
        return f"{self.placed} of the {self.lacking} members it still needs could be placed{why}"


def shortfall(session: Session, job: Job, placed: int) -> Shortfall:
    """Say how far a job got that is not ready."""
    failures = session.findings.errors(job)
    uid = next(iter(failures)) if failures else ""
    failure = failures[uid] if failures else None
    lacking = job.min_member - job.tally.ready
    return Shortfall(placed, lacking, job.min_member, len(job.pending), job.tasks[uid].name if uid else "", failure)
