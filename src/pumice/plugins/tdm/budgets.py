"""How many pods of a job may be missing at once: the budgets that PodGroups state by annotations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pumice.api import names
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.model.job import Job

_AMOUNT = re.compile(r"(\d{1,9})(%?)", re.ASCII)
WITHOUT_BUDGET = 1


def allowed(job: Job) -> int:
    """Return how many running pods of a job may go now; one where no budget can be read, or more are missing than it wants."""
    counts = job.tally.counts
    running = counts[Status.RUNNING]
    kept = amount(job.annotations.get(names.BUDGET_MIN_AVAILABLE), len(job.tasks))
    if kept is not None:
        return running - kept if running >= kept else WITHOUT_BUDGET
    missing = amount(job.annotations.get(names.BUDGET_MAX_UNAVAILABLE), len(job.tasks))
    if missing is not None:
        finished = counts[Status.SUCCEEDED] + counts[Status.FAILED]
        return max(0, missing - (len(job.tasks) - finished - running))
    return WITHOUT_BUDGET


def amount(text: str | None, total: int) -> int | None:
    """Read a number, or a percentage of a total, rounded up; None if it is neither."""
    match = _AMOUNT.fullmatch(text.strip()) if text is not None else None
    if match is None:
        return None
    number = int(match[1])
    return -(-number * total // 100) if match[2] else number
