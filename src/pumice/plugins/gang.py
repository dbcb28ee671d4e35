"""gang: all of a job's minimum starts, or nothing does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names, scheduling
from pumice.framework import closing, standings
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Invalid
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.model.job import Job, SubJob, Tally
    from pumice.model.task import Task

READY_TEXT = "tasks in gang are ready to be scheduled"


class Gang(Plugin):
    """Start a job only when `minMember` of its pods (and the minimum of every role and sub-group) can be placed together.

    Jobs that are not ready come before those that are; first come those of which some members have started, so that a gang whose binding was
    interrupted gets the room for the rest: it is let in without a vote, and if it is the first of its queue it is served before other queues (none of
    this under kube-batch's rules, nor with `compatibility: volcano`). Victims are offered only as far as their job keeps its minimum. At the end of a
    cycle every job that waits to be let in or has pods gets the condition `Unschedulable` or `Scheduled`; the one that no longer holds becomes False. The reason is `NotEnoughResources`, or
    `NotEnoughTasks` or `NotEnoughPodsOfTask` while none of its pods has started and too few exist.
    """

    name = "gang"
    points = frozenset(
        {
            "JobValid",
            "JobOrder",
            "SubJobOrder",
            "JobReady",
            "SubJobReady",
            "JobPipelined",
            "SubJobPipelined",
            "JobStarving",
            "Preemptable",
            "Reclaimable",
            "UnifiedEvictable",
        }
    )

    def open(self, session: Session) -> None:
        """Register validity, order, readiness, starvation and the victim rule."""
        session.job_valid.add(check, reads=Reads(0))
        session.job_order.add(_job_key if session.gangs_are_kept else _is_ready)
        session.sub_job_order.add(_sub_job_key)
        kube_batch = session.configuration.rules == "kube-batch"
        self._ready = is_ready_for_kube_batch if kube_batch else is_ready
        session.job_ready.add(self._ready)
        session.announced.minimums_count = any(each.plugin == self.name for each in session.job_ready)
        session.sub_job_ready.add(_sub_job_is_ready)
        session.job_pipelined.add(vote, reads=Reads(0))
        session.sub_job_pipelined.add(_sub_job_vote)
        session.job_starving.add(_is_starving, reads=Reads(0))
        rule = spared_by_kube_batch if kube_batch else spared
        session.preemptable.add(rule, reads=Reads(0))
        session.reclaimable.add(rule, reads=Reads(0))
        session.unified_evictable.add(_everybody, reads=Reads(0))

    def close(self, session: Session) -> None:
        """Judge every job that was looked at or changed."""
        for standing in standings.standings(session):
            first = standing.jobs[0]
            if not self._ready(first):
                for job in standing.jobs:
                    _refuse(session, job)
            elif first.tasks:
                session.findings.condition_all(standing.jobs, _SCHEDULED)

    def is_settled(self, session: Session) -> bool:
        """Say that placements let no gang start: what its own members do is all that counts for it."""
        del session
        return True


def _refuse(session: Session, job: Job) -> None:
    """Say that a gang cannot start, unless it is ending, or was let in and its pods are yet to be made: who makes them would warn of it again and again."""
    was_let_in = session.findings.phase(job) != names.PHASE_PENDING
    if not _is_ending(job) if job.tasks else not was_let_in:
        message = closing.unschedulable(session, job)
        session.findings.condition(job, _condition(names.CONDITION_UNSCHEDULABLE, _reason(session, job), message))


def _reason(session: Session, job: Job) -> str:
    """Name why a gang cannot start: too few of its pods exist, or there is no room; the peers know only the latter, and so it stays once members have started."""
    is_new = session.findings.phase(job) != names.PHASE_PENDING and not job.tally.ready
    invalid = check(job) if is_new else None
    return names.REASON_NOT_ENOUGH_RESOURCES if invalid is None else invalid.reason


def _condition(kind: str, reason: str, message: str) -> scheduling.PodGroupCondition:
    return scheduling.PodGroupCondition(type=kind, status="True", reason=reason, message=message)


_SCHEDULED = _condition(names.CONDITION_SCHEDULED, READY_TEXT, "")


def check(job: Job) -> Invalid | None:
    """Refuse a job that has too few pods to ever be complete."""
    # Most jobs have neither roles nor sub-groups, and every job that waits is asked about by every action.
    if job.min_task_member and (role := job.short_role()) is not None:
        name, valid, minimum = role
        return Invalid(
            names.REASON_NOT_ENOUGH_PODS_OF_TASK, f"role {name} has {valid} valid pods, {minimum} are needed"
        )
    if job.policies and (policy := job.short_policy()) is not None:
        name, exist, minimum = policy
        return Invalid(
            names.REASON_NOT_ENOUGH_PODS_OF_TASK, f"policy {name} has {exist} sub-groups, {minimum} are needed"
        )
    valid = job.tally.valid
    if valid >= job.min_member:
        return None
    return Invalid(names.REASON_NOT_ENOUGH_TASKS, f"the group has {valid} valid pods, minMember is {job.min_member}")


def is_ready(job: Job) -> bool:
    """Tell whether the job may start: the gang, its roles and its sub-groups."""
    if not job.tally.is_ready(job.min_member):
        return False
    # Most jobs have neither roles nor sub-groups, and this is asked after every placement.
    return (not job.min_task_member or job.roles_reach(pipelined=False)) and (
        not job.policies or job.sub_jobs_reach(pipelined=False)
    )


def is_ready_for_kube_batch(job: Job) -> bool:
    """Tell whether the job may start by kube-batch's rule: best-effort members count once they have a node, roles do not."""
    return job.tally.ready >= job.min_member


def vote(job: Job) -> Vote:
    """Vote whether the job may start once room that is being released is free."""
    if job.is_pipelined and job.roles_reach(pipelined=True) and job.sub_jobs_reach(pipelined=True):
        return PERMIT
    tally = job.tally
    return reject(f"{tally.ready} of {job.min_member} members placed, {tally.waiting} waiting for release")


def _is_ready(job: Job) -> bool:
    return job.is_ready


def _job_key(job: Job) -> int:
    """Put a gang that was left incomplete before those that have not begun, and those before the ones that are ready."""
    if job.tally.is_ready(job.min_member):
        return 2
    return 0 if job.is_interrupted else 1


def _sub_job_key(sub_job: SubJob) -> bool:
    return sub_job.tally.is_ready(sub_job.minimum)


def _sub_job_is_ready(sub_job: SubJob) -> bool:
    return sub_job.tally.is_ready(sub_job.minimum)


def _sub_job_vote(sub_job: SubJob) -> Vote:
    if sub_job.tally.is_pipelined(sub_job.minimum):
        return PERMIT
    return reject(f"{sub_job.key}: {sub_job.tally.ready} of {sub_job.minimum} members placed")


def _is_starving(job: Job) -> bool:
    return job.is_starving


def spared(_claimant: object, candidates: Sequence[Task]) -> list[Task]:
    """Offer candidates in the given order while their job, and the role and sub-group they are in, keep their minimums."""
    taken: dict[int, int] = {}
    offered = []
    for task in candidates:
        if task.job is not None and _can_spare(task.job, task, taken):
            for tally in task.tallies:
                taken[id(tally)] = taken.get(id(tally), 0) + 1
            offered.append(task)
    return offered


def _can_spare(job: Job, task: Task, taken: dict[int, int]) -> bool:
    """Tell whether a job keeps every minimum without a task, beside those that were taken already."""

    def left(tally: Tally) -> int:
        return tally.ready - taken.get(id(tally), 0)

    if job.whole or left(job.tally) <= job.min_member:
        return False
    role = job.roles.get(task.role)
    if job.roles_enforced and role is not None and left(role) <= job.min_task_member.get(task.role, 0):
        return False
    sub_job = task.sub_job
    needed = sub_groups_needed(job, sub_job) if sub_job is not None else 0
    if not needed or sub_job is None or left(sub_job.tally) != sub_job.minimum:
        return True
    complete = sum(1 for s in job.sub_jobs.values() if s.group == sub_job.group and left(s.tally) >= s.minimum)
    return complete > needed


def sub_groups_needed(job: Job, sub_job: SubJob) -> int:
    """Return how many complete sub-groups the policy of a sub-group asks for."""
    return next((p.min_sub_groups for p in job.policies if f"{job.key}/{p.name}" == sub_job.group), 0)


def _everybody(_context: object, candidates: Sequence[Task]) -> list[Task]:
    """Allow all: in the gang forms the bundles keep minimums."""
    return list(candidates)


def spared_by_kube_batch(_claimant: object, candidates: Sequence[Task]) -> list[Task]:
    """Judge each candidate on its own, as kube-batch did: its job keeps the minimum without it, or has a minimum of one."""
    return [
        task
        for task in candidates
        if task.job is not None and (task.job.min_member <= task.job.tally.ready - 1 or task.job.min_member == 1)
    ]


def _is_ending(job: Job) -> bool:
    """Tell whether the gang was complete and is now ending, by deletion or by failures: that is no lack of resources."""
    counts = job.tally.counts
    scheduled = counts[Status.BOUND] + counts[Status.RUNNING] + counts[Status.SUCCEEDED] + counts[Status.FAILED]
    waiting = counts[Status.PENDING] + counts[Status.PIPELINED]
    return waiting == 0 and scheduled + job.leaving >= job.min_member
