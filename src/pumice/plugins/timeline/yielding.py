"""Who gives its place up to whom: a holder yields to a job that could evict it if it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import subject

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Vector


def yields(session: Session, holder: Job, job: Job) -> bool:
    """Tell whether a job could evict a holder if that ran: by priority in one queue, by what is due between two."""
    same = holder.queue == job.queue
    if same and job.priority <= holder.priority:
        return False
    if not any(task.preemptable for task in holder.pending.values()):
        return False
    if same:
        return True
    queues = session.cluster.queues
    theirs, ours = queues.get(holder.queue), queues.get(job.queue)
    if theirs is None or ours is None or not theirs.reclaimable or not session.due.active:
        return False
    due = session.due(job)
    if due is None:
        return False
    held = session.cluster.queue_sums.allocated
    asked, wanted = _asked(holder), _asked(job)
    above = asked > 0
    above &= held[theirs.row] + asked > due[theirs.row]
    counted = wanted > 0
    return bool(above.any() and (held[ours.row] + wanted <= due[ours.row])[counted].all())


def _asked(job: Job) -> Vector:
    """Return what the pods of a job that wait ask for, as far as its minimum needs them."""
    waiting = [task for task in job.pending.values() if not task.best_effort]
    lacking = max(1, job.min_member - job.tally.ready)
    if not waiting:
        return np.zeros(0, dtype=np.int64)
    return subject.demand(waiting[:lacking]).amounts
