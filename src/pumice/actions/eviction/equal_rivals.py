"""Waiting jobs that are like a claimant's: of two that nothing tells apart neither could take room from the other and keep it.

Who may take a hold over could evict the claimant if it ran, and not be evicted by it in turn. If they are equal, one follows from the other, and nobody need be moved to find that out: the workload preemption-1000 takes half as long again without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import asking

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.rules import Rules
    from pumice.model.job import Job
    from pumice.model.task import Task


def is_one(rules: Rules, plan: Plan, job: Job) -> bool:
    """Tell whether a waiting job is like the one that a plan is made for, as far as rules can tell; if in doubt, it is not."""
    members = plan.members
    if not rules.is_blind or not _are_equal(plan.job, job, len(members)):
        return False
    first = kind(members[0])
    if any(kind(task) != first for task in (*members[1:], *job.pending.values())):
        return False
    waiting = [task for task in job.pending.values() if asking.may_ask(plan.session, task)]
    if len(waiting) < len(members):
        return False
    return all(rules.protection(members[0], task) is None and not rules.is_spared(task) for task in waiting)


def _are_equal(own: Job, other: Job, members: int) -> bool:
    """Tell whether jobs have equal numbers, one of them with so many members that wait for room, and lack just these."""
    if (own.queue, own.priority, own.min_member) != (other.queue, other.priority, other.min_member):
        return False
    ready = own.tally.ready
    if ready != other.tally.ready or own.tally.waiting != members or other.tally.waiting:
        return False
    return own.min_member - ready == members and is_plain(own) and is_plain(other)


def is_plain(job: Job) -> bool:
    """Tell whether nothing but the number of its members says when a job is complete."""
    return job.group is not None and job.topology is None and not (job.roles_enforced or job.policies)


def kind(task: Task) -> tuple[Hashable, ...]:
    """Return what rules that read nothing more see of a pod."""
    return *task.likeness, task.namespace, task.priority, task.pod.spec.priority_class_name
