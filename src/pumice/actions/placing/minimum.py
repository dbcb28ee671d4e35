"""The minimum first: until a job has its minimum, the members that the minimum names come before its surplus.

Otherwise executors would take the room of their own driver, in every cycle again. Named are, where minimums of roles count, as many of each role as it lacks, then as
many others as the job lacks; among both the order of tasks stays. Volcano and kube-batch go by the order of tasks alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model.job import BEST_EFFORT_PENDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.model.job import Job, SubJob, Tally
    from pumice.model.task import Task


def comes_first(session: Session) -> bool:
    """Tell whether members that the minimum names come first, and misfits are judged one by one; for Volcano and kube-batch they do not."""
    settings = session.configuration
    return settings.rules == "current" and settings.compatibility != "volcano"


def lacking(tally: Tally, minimum: int) -> int:
    """Return how many tasks are neither placed nor waiting for room; pending ones without requests count as placed."""
    return max(0, minimum - tally.expected - tally.counts[BEST_EFFORT_PENDING])


def lacking_of_roles(job: Job) -> dict[str, int]:
    """Return how many tasks each role lacks, as far as minimums of roles count."""
    if not job.roles_enforced:
        return {}
    short = {}
    for role, minimum in job.min_task_member.items():
        tally = job.roles.get(role)
        if count := minimum if tally is None else lacking(tally, minimum):
            short[role] = count
    return short


def named_first(
    session: Session, job: Job, tasks: Sequence[Task], sub_job: SubJob | None = None
) -> tuple[list[Task], int]:
    """Return tasks of a job, or of one of its sub-groups, with those first that its minimum names, and how many these are."""
    tally, minimum = (job.tally, job.min_member) if sub_job is None else (sub_job.tally, sub_job.minimum)
    short = lacking(tally, minimum)
    roles = lacking_of_roles(job) if comes_first(session) else {}
    if not roles:
        return list(tasks), min(short, len(tasks))
    named: list[Task] = []
    others: list[Task] = []
    for task in tasks:
        if roles.get(task.role, 0) and not task.gated:
            roles[task.role] -= 1
            named.append(task)
        else:
            others.append(task)
    return named + others, min(max(short, len(named)), len(tasks))
