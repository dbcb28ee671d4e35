"""priority: more important work first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.framework.subject import EvictionContext
    from pumice.model.job import Job, SubJob
    from pumice.model.task import Task


class Priority(Plugin):
    """Order jobs and tasks by priority, and let only lower priority be preempted.

    A job's priority is the value of its PodGroup's PriorityClass, else that of the cluster's global default, else 0. A task's is the annotation
    `volcano.sh/task-priority`, else the pod's, else 1. A job counts as starving while some of its tasks are not placed.
    """

    name = "priority"
    points = frozenset({"JobOrder", "TaskOrder", "SubJobOrder", "Preemptable", "UnifiedEvictable", "JobStarving"})

    def open(self, session: Session) -> None:
        """Register orders, the victim rule and the starving rule."""
        session.job_order.add(_job_key)
        session.task_order.add(_task_key)
        session.sub_job_order.add(_sub_job_key)
        kube_batch = session.configuration.rules == "kube-batch"
        session.preemptable.add(of_lower_jobs if kube_batch else lower_than, reads=Reads(0))
        session.unified_evictable.add(lower_for_gangs, reads=Reads(0))
        session.job_starving.add(_is_starving, reads=Reads(0))


def _job_key(job: Job) -> int:
    return -job.priority


def _task_key(task: Task) -> int:
    return -task.priority


def _sub_job_key(sub_job: SubJob) -> int:
    return -sub_job.priority


def lower_than(claimant: Task, candidates: Sequence[Task]) -> list[Task]:
    """Keep candidates of jobs with lower priority; inside the claimant's own job, tasks with lower priority."""
    own = claimant.job
    if own is None:
        return []
    kept = []
    for task in candidates:
        if task.job is own:
            if task.priority < claimant.priority:
                kept.append(task)
        elif task.job is not None and task.job.priority < own.priority:
            kept.append(task)
    return kept


def of_lower_jobs(claimant: Task, candidates: Sequence[Task]) -> list[Task]:
    """Keep candidates of jobs with lower priority, as kube-batch did; a job never preempts itself."""
    own = claimant.job
    return [
        task for task in candidates if own is not None and task.job is not None and task.job.priority < own.priority
    ]


def lower_for_gangs(context: EvictionContext, candidates: Sequence[Task]) -> list[Task]:
    """Keep candidates of jobs with lower priority for gangpreempt, all of them for gangreclaim."""
    if context.kind != "gangpreempt":
        return list(candidates)
    return [task for task in candidates if task.job is not None and task.job.priority < context.job.priority]


def _is_starving(job: Job) -> bool:
    """Tell whether some task of the job, finished or failed ones included, is neither placed nor waiting for release."""
    return job.tally.ready + job.tally.waiting < len(job.tasks)
