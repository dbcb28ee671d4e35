"""Which members of a job an explanation is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Vector
    from pumice.model.task import Task


def waiting(session: Session, job: Job) -> list[Task]:
    """Return the members without a node, in the order in which they are served."""
    return session.task_order.sort(job.pending.values()) if job.pending else []


def demanded(session: Session, job: Job) -> list[Task]:
    """Return the members that a job asks its queue for: those it lacks to its minimum, or the next one; none if it was not let in."""
    if session.findings.phase(job) == names.PHASE_PENDING:
        return []
    tasks = [task for task in waiting(session, job) if not task.best_effort and not task.externally_gated]
    return tasks[: max(1, job.min_member - job.tally.ready - job.tally.waiting)]


def wanted(session: Session, job: Job) -> Vector:
    """Return what a job asks its queue for: its `minResources` while it waits to be let in, then what the members ask for."""
    cluster = session.cluster
    tasks = demanded(session, job)
    if tasks:
        return subject.demand(tasks).amounts
    if session.findings.phase(job) == names.PHASE_PENDING and job.min_resources is not None:
        return cluster.vocabulary.vector(job.min_resources)
    return np.zeros(len(cluster.vocabulary), dtype=np.int64)


def alike(tasks: Iterable[Task]) -> list[list[Task]]:
    """Put tasks together that filters and scores cannot tell apart, in the order of their first."""
    groups: dict[Hashable, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.likeness, []).append(task)
    return list(groups.values())
