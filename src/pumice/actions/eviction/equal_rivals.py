"""Waiting jobs that are like a claimant's: of two that nothing tells apart neither could take room from the other and keep it.

Who may take a hold over could evict the claimant if it ran, and not be evicted by it in turn. If they are equal, one follows from the other, and nobody need be moved to find that out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import refused_jobs
from pumice.actions.eviction.queue_protections import reads_only_queues
from pumice.framework.points import Reads

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.actions.eviction.planning import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.model.job import Job
    from pumice.model.task import Task


def is_one(rules: Rules, plan: Plan, job: Job) -> bool:
    """Tell whether a waiting job is like the one that a plan is made for, as far as rules can tell; if in doubt, it is not."""
    members = plan.members
    if not _are_equal(plan.job, job, len(members)) or not _are_blind(rules):
        return False
    kinds = {_kind(member) for member in members}
    waiting = [task for task in job.pending.values() if _may_ask(plan, task)]
    if len(kinds) > 1 or len(waiting) < len(members) or any(_kind(task) not in kinds for task in job.pending.values()):
        return False
    return all(rules.protection(members[0], task) is None and not rules.is_spared(task) for task in waiting)


def _are_equal(own: Job, other: Job, members: int) -> bool:
    """Tell whether jobs have equal numbers, one of them with so many members that wait for room, and lack just these."""
    if (own.queue, own.priority, own.min_member) != (other.queue, other.priority, other.min_member):
        return False
    ready = own.tally.ready
    if ready != other.tally.ready or own.tally.waiting != members or other.tally.waiting:
        return False
    if any(job.roles_enforced or job.policies or job.topology is not None for job in (own, other)):
        return False
    return own.min_member - ready == members and (own.group is None) == (other.group is None)


def _are_blind(rules: Rules) -> bool:
    """Tell whether nobody who has a say knows who a job is, how long a pod has been there, or who else goes."""
    known = (each.reads for each in rules.session.protection)
    return refused_jobs.is_enough(rules) and all(not reads & ~Reads.TASK or reads_only_queues(reads) for reads in known)


def _kind(task: Task) -> Hashable:
    return *task.likeness, task.namespace, task.priority, task.pod.spec.priority_class_name


def _may_ask(plan: Plan, task: Task) -> bool:
    return not task.gated and plan.session.may_try(task) and task.pod.spec.preemption_policy != "Never"
