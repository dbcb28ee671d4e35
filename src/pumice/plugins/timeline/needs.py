"""What a job needs to start, as far as amounts tell: so many pods of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.framework.subject import Subject
from pumice.model.job import BEST_EFFORT_PENDING
from pumice.plugins.timeline.profile import Need

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task


class Needs(msgspec.Struct, frozen=True, eq=False):
    """Kinds of pods, and what is the same of two jobs that need the same."""

    kinds: tuple[Need, ...]
    key: tuple[tuple[int, int], ...]


NOTHING_KNOWN = Needs((), ())


def of(session: Session, job: Job, beyond: Sequence[Task] = ()) -> Needs:
    """Return the least that a job needs, or one of its members beyond the minimum; nothing is known of a job that may choose among unequal members."""
    waiting = beyond or _waiting(job)
    lacking = 1 if beyond else job.min_member - job.tally.ready - job.tally.counts[BEST_EFFORT_PENDING]
    if lacking <= 0 or len(waiting) < lacking:
        return NOTHING_KNOWN
    alike: dict[int, list[Task]] = {}
    for task in waiting:
        alike.setdefault(task.shape.serial, []).append(task)
    if len(alike) > 1 and len(waiting) > lacking:
        return NOTHING_KNOWN
    kinds = {serial: (tasks[0], min(len(tasks), lacking)) for serial, tasks in alike.items()}
    key = tuple((serial, count) for serial, (_, count) in kinds.items())
    return Needs(tuple(_need(session, task, count) for task, count in kinds.values()), key)


def beyond(job: Job) -> Sequence[Task]:
    """Return the members of a job that wait beyond its minimum, nobody if it does not have that."""
    return _waiting(job) if job.tally.is_ready(job.min_member) else ()


def _waiting(job: Job) -> list[Task]:
    return [task for task in job.pending.values() if not task.best_effort and not task.externally_gated]


def _need(session: Session, task: Task, count: int) -> Need:
    request = task.shape.request
    may = session.evaluator.static_mask(Subject(task, session.queue_of(task.job) if task.job is not None else None))
    return Need(request.asked, request.needed, count, None if may.all() else may)
