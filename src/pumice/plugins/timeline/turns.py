"""Queues take turns: no queue has a second reservation before every queue with a job that finds no room has one. Who is not even tried, and members beyond a minimum, are told when they could start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.framework.searching import Search
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task
    from pumice.plugins.timeline.holders import Holders


def is_to_wait(session: Session, holders: Holders, job: Job) -> bool:
    """Tell whether the queue of a job has had its turn, and some other queue where jobs wait has not."""
    if holders.is_full:
        return False
    served = _served(session, holders)
    if job.queue not in served:
        return False
    return any(each.queue not in served for each in session.cluster.pending_jobs.values())


def reserve(session: Session, search: Search, holders: Holders, later: Mapping[str, Job]) -> None:
    """Reserve for jobs whose queues had their turn, now that it is known who else waits: the next turn is always that of a queue with the fewest."""
    waiting = dict(later)
    while waiting and not holders.is_full:
        served = _served(session, holders)
        key = min(waiting, key=lambda each: served.get(waiting[each].queue, 0))
        holders.reserve(session, search, waiting.pop(key))


def _served(session: Session, holders: Holders) -> dict[str, int]:
    """Count by queue the jobs that hold a reservation, or of which no start is known."""
    counts: dict[str, int] = {}
    for key in holders.served:
        if (job := session.cluster.jobs.get(key)) is not None:
            counts[job.queue] = counts.get(job.queue, 0) + 1
    return counts


def left_out(session: Session, known: Sequence[Mapping[str, object]], most: int) -> dict[str, Job]:
    """Return the jobs that nobody tried, and that wait for room all the same: those of queues that have too much, then groups that were not let in."""
    if not session.overused.active and not session.findings.kept_out:
        return {}
    over: dict[str, bool] = {}
    found: tuple[list[Job], list[Job]] = ([], [])
    for job in session.cluster.pending_jobs.values():
        if any(job.key in each for each in known) or job.tally.is_ready(job.min_member) or not session.usable(job):
            continue
        if session.closed(job) is not None or session.job_valid(job) is not None:
            continue
        is_kept_out = session.findings.phase(job) == names.PHASE_PENDING
        if not is_kept_out and job.queue not in over:
            over[job.queue] = session.overused(session.cluster.queues[job.queue]) is not None
        if is_kept_out or over[job.queue]:
            found[is_kept_out].append(job)
    listed = [job for jobs in found for job in session.job_order.sort(jobs)]
    return {job.key: job for job in (listed[: max(0, most - sum(map(len, known)))] if most else listed)}


def beyond(session: Session, most: int) -> dict[str, Sequence[Task]]:
    """Return the members beyond the minimum that found no room, of jobs that have theirs, in planning order: who is tried first may depend on whose limit is hit first; of so many jobs at most, 0 for all."""
    found: dict[str, Sequence[Task]] = {}
    jobs = [session.cluster.jobs.get(key) for key in session.findings.fit_errors]
    for job in session.job_order.sort([job for job in jobs if job is not None and job.tally.is_ready(job.min_member)]):
        if most and len(found) >= most:
            break
        waiting = [task for uid in session.findings.errors(job) if (task := job.pending.get(uid)) is not None]
        waiting = [task for task in waiting if not task.best_effort and not task.gated]
        if waiting and session.usable(job) and session.closed(job) is None:
            found[job.key] = session.task_order.sort(waiting)
    return found
