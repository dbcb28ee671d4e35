"""What a job asks for: which members, in which order, and when it has enough."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import votes
from pumice.actions.placing import minimum
from pumice.framework.reasons import OfQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task

FEW = 4
# Candidates that the plugins are asked about at a time, at the most.
TOGETHER = 256


class Wanted(msgspec.Struct, frozen=True):
    """What a plan is looked for: members of a job, of which as many have to be placed as make it enough."""

    queue: Queue
    job: Job
    tasks: Sequence[Task]
    done: Callable[[], bool]

    @property
    def claimant(self) -> Task:
        """The first member, for which the others stand."""
        return self.tasks[0]

    @property
    def with_requests(self) -> Sequence[Task]:
        """The members with requests; those without any ask only where there are no others."""
        return [task for task in self.tasks if not task.best_effort] or self.tasks


def is_anybody_offered(rules: Rules, claimant: Task, sources: Iterable[Job], *, ask: bool) -> bool:
    """Tell whether anybody of some jobs may go for a job for which one of its members stands, and, if the plugins are asked, whether they offer anybody.

    Whom they refuse with nobody gone yet they refuse with others gone too, so that asking about many at a time is enough to find that there is nobody,
    unless somebody counts those as gone whom he refuses: then each is asked about alone as well.
    """
    pending = () if claimant.job is None else claimant.job.pending.values()
    kinds = list({(task.priority, *task.likeness): task for task in pending}.values())
    unprotected = _unprotected(rules, claimant, sources)
    if not ask or len(kinds) > FEW:
        return next(unprotected, None) is not None
    size = FEW  # as a rule one of the first is offered
    while chunk := list(itertools.islice(unprotected, size)):
        asked = [chunk, *([task] for task in chunk)] if rules.facts.votes_count_who_goes else [chunk]
        if any(votes.ask(rules, kind, some) for some in asked for kind in kinds):
            return True
        size = min(2 * size, TOGETHER)
    return False


def _unprotected(rules: Rules, claimant: Task, sources: Iterable[Job]) -> Iterator[Task]:
    """Give the pods of some jobs that are neither out of reach nor protected; a queue that protects all of its own is asked about once."""
    kept: dict[str, None] = {}
    for source in sources:
        if source.queue in kept:
            continue
        for task in source.tasks.values():
            if not rules.reaches(claimant, task):
                continue
            reason = rules.protection(claimant, task)
            if reason is None:
                yield task
            elif isinstance(reason, OfQueue):
                kept[source.queue] = None
                break


def may_ask(session: Session, task: Task) -> bool:
    """Tell whether a waiting member may have others evicted."""
    return not task.gated and session.may_try(task) and task.pod.spec.preemption_policy != "Never"


def claimants(session: Session, job: Job) -> list[Task]:
    """Return the members of a job that may ask, in task order."""
    waiting = [task for task in job.pending.values() if may_ask(session, task)]
    if len(waiting) < 2:
        return waiting
    ordered = session.task_order.sort(waiting)
    if not job.policies:
        # Room is made for what the minimum lacks before surplus.
        return minimum.named_first(session, job, ordered)[0]
    # Sub-groups start whole: members of one come together, in the order in which allocate serves them.
    ranks = {sub.key: rank for rank, sub in enumerate(session.sub_job_order.sort(job.sub_jobs.values()))}
    return sorted(ordered, key=lambda task: ranks[task.sub_job.key] if task.sub_job is not None else 0)


def is_enough(session: Session, job: Job) -> bool:
    """Tell whether a job could start once room is free, and leaves no sub-group of which only a part waits."""
    if not session.is_pipelined(job):
        return False
    return not job.policies or not any(
        sub.tally.waiting and not session.is_sub_job_pipelined(job, sub) for sub in job.sub_jobs.values()
    )


def wishes(session: Session, job: Job, tasks: Sequence[Task]) -> Iterator[tuple[list[Task], Callable[[], bool]]]:
    """Give what a job beyond its minimum asks for, one plan each: a further member, or a sub-group that has not started; and when it has it."""
    if not job.policies:
        yield from (([task], lambda: True) for task in tasks)
        return
    for _, members in itertools.groupby(tasks, key=lambda task: task.sub_job):
        group = list(members)
        sub_job = group[0].sub_job
        if sub_job is None or session.is_sub_job_pipelined(job, sub_job):
            yield from (([task], lambda: True) for task in group)
        else:
            yield group, functools.partial(session.is_sub_job_pipelined, job, sub_job)


def members_lacking(job: Job, tasks: Sequence[Task]) -> list[Task]:
    """Return the first tasks that would bring a job to its minimum, all of them if that cannot be told from the number alone."""
    lacking = job.min_member - job.tally.expected
    if job.roles_enforced or job.policies or lacking <= 0:
        return list(tasks)
    return list(tasks[:lacking])


def least_need(job: Job, tasks: Sequence[Task]) -> Vector:
    """Return what the members still needed ask for at the least, resource by resource."""
    asked = np.sort(np.stack([task.shape.request.vector for task in tasks]), axis=0)
    least: Vector = asked[: number_lacking(job)].sum(axis=0)
    return least


def number_lacking(job: Job) -> int:
    """Return how many members more a plan for a job places at the least."""
    return max(1, job.min_member - job.tally.expected)
