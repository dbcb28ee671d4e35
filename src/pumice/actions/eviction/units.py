"""What goes together: a pod that its job can spare goes alone, one that its job cannot spare takes the whole job along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.model.statuses import ALLOCATED_LIKE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.task import Task


class Unit(msgspec.Struct, frozen=True):
    """Victims that go or stay together; a job that is complete `ends` if it is lost with them, and that `breaks` a gang unless its minimum is one."""

    tasks: tuple[Task, ...]
    whole: bool
    breaks: bool = False
    ends: bool = False

    @property
    def is_job_of_one(self) -> bool:
        """Whether all that goes is a job of a single pod, of which nothing can be left behind."""
        job = self.tasks[0].job
        return self.whole and job is not None and len(job.tasks) == 1

    @property
    def priority(self) -> tuple[int, int]:
        """The highest priority among the victims: that of the job, then that of the pod."""
        return max((task.job.priority if task.job else 0, task.priority) for task in self.tasks)


def keeps_its_minimum(job: Job, without: Sequence[Task] = ()) -> bool:
    """Tell whether the gang, its roles and its sub-groups are complete by members that are placed, without counting some of these.

    A member that waits for room is none: nobody may take a running one for it. One without requests waits for no room, and counts as placed.
    """
    if job.surplus < len(without):
        return False
    if not job.roles_enforced and not job.policies:
        return True
    return job.roles_reach(pipelined=False, without=without) and job.sub_jobs_reach(pipelined=False, without=without)


def rest_of(job: Job, tasks: Sequence[Task]) -> list[Task]:
    """Return the placed members of a job beside some, in an order that does not depend on how pods were listed: so they are evicted."""
    known = {task.uid for task in tasks}
    rest = [task for task in job.tasks.values() if task.status in ALLOCATED_LIKE and task.uid not in known]
    return sorted(rest, key=lambda task: task.uid)


def whole_job(job: Job, tasks: tuple[Task, ...]) -> Unit:
    """Return all that is left of a job as one unit."""
    ends = keeps_its_minimum(job)
    return Unit(tasks, whole=True, breaks=job.min_member > 1 and ends, ends=ends)


def may_all_go(rules: Rules, statement: Statement, claimant: Task | None, tasks: Sequence[Task]) -> bool:
    """Tell whether tasks may go together, each asked about with those before it gone; a gang is judged once, when it cannot stay any more, and then budgets alone count."""
    if any(rules.protection(claimant, task) is not None for task in tasks):
        return False
    if len(tasks) == 1:
        return True
    judged: set[str] = set()
    with statement.trial():
        for task in tasks:
            ask = rules.budget if task.job_key in judged else rules.protection
            if ask(claimant, task) is not None:
                return False
            if rules.keeps_gangs and task.job is not None and not keeps_its_minimum(task.job, (task,)):
                judged.add(task.job_key)
            statement.evict([task], rules.name)
    return True


def spared(job: Job, victims: Sequence[Task]) -> list[Task]:
    """Return the victims, taken in order, without all of whom a job stays complete."""
    if not job.roles_enforced and not job.policies:
        return list(victims[: max(0, job.surplus)])
    gone: list[Task] = []
    for victim in victims:
        if keeps_its_minimum(job, (*gone, victim)):
            gone.append(victim)
    return gone
