"""No ping-pong: a plan that the next cycle would undo by the same rules is not made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import votes
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actions.eviction.plan import Plan
    from pumice.model.job import Job
    from pumice.model.task import Task

SEARCHES = 16
LOOKS = 64


def those_who_would_return(plan: Plan, takes_from: Callable[[Job, Plan], bool]) -> list[Task]:
    """Return the victims whose job would ask for the claimant's room once it runs, and be given it; `takes_from` searches for it."""
    victims = plan.victims
    member, rules = plan.members[0], plan.rules
    jobs = {t.job.key: t.job for t in victims if t.job is not None and rules.concerns(t, member)}
    jobs = {key: job for key, job in jobs.items() if reaches(plan, job)}
    if not jobs:
        return []
    with plan.statement.trial():
        plan.statement.suppose(victims, [None] * len(victims), Status.PENDING)
        plan.statement.suppose(plan.members, [member.node for member in plan.members], Status.RUNNING)
        asking = [job for job in jobs.values() if _might_ask(plan, job)]
        if len(asking) > SEARCHES:
            # Searching for each would take long; none of them is trusted not to come back.
            plan.bounds[f"no more than {SEARCHES} jobs were searched for whether they would take the room back"] = None
            returning = asking
        else:
            returning = [job for job in asking if takes_from(job, plan)]
    keys = {job.key for job in returning}
    return [task for task in victims if task.job is not None and task.job.key in keys]


def reaches(plan: Plan, job: Job) -> bool:
    """Tell whether the claimant is not more important than a job, so that neither this nor whoever goes for it, and so on, could take its pods."""
    return not (plan.rules.protects_important and job.priority < plan.job.priority)


def _might_ask(plan: Plan, job: Job) -> bool:
    """Tell whether a victim's job would be starving, and some of the claimant's pods offered to it."""
    if not plan.session.job_starving(job):
        return False
    # Victims of one shape ask alike.
    asking = list({id(task.shape): task for task in job.pending.values()}.values())
    nodes = list({id(member.node): member.node for member in plan.members if member.node is not None}.values())
    if len(nodes) * len(asking) > LOOKS:
        return any(_is_offered(plan, victim, plan.members) for victim in asking)
    return any(
        task.job is plan.job
        for victim in asking
        for node in nodes
        for task in votes.offered(plan.rules, victim, node, plan.domain)
    )


def _is_offered(plan: Plan, victim: Task, members: Sequence[Task]) -> bool:
    """Ask about all members at once, as if they were on one node."""
    rules = plan.rules
    candidates = [member for member in members if rules.may_go(victim, member)]
    return bool(candidates) and bool(votes.ask(rules, victim, rules.in_order(victim, candidates), plan.domain))
