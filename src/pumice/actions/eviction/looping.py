"""No ping-pong: a plan that the next cycle would undo by the same rules is not made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.actions.eviction.planning import Plan
    from pumice.model.job import Job
    from pumice.model.task import Task


def those_who_would_return(plan: Plan) -> list[Task]:
    """Return the victims whose job, pending again, would ask for the claimant's room and be given it."""
    victims = [task for unit in plan.units for task in unit.tasks]
    cluster = plan.session.cluster
    homes = [(task, task.node) for task in victims]
    members = [(task, task.node) for task in plan.members]
    # The world after the plan: the claimant runs, the victims wait again.
    for task, _ in homes:
        cluster.move([task], [None], Status.PENDING)
    for task, record in members:
        cluster.move([task], [record], Status.RUNNING)
    try:
        jobs = {task.job.key: task.job for task in victims if task.job is not None}
        returning = [job for job in jobs.values() if _would_ask(plan, job)]
    finally:
        for task, record in members:
            cluster.move([task], [record], Status.PIPELINED)
        for task, record in homes:
            cluster.move([task], [record], Status.RELEASING)
    keys = {job.key for job in returning}
    return [task for task in victims if task.job is not None and task.job.key in keys]


def _would_ask(plan: Plan, job: Job) -> bool:
    """Tell whether a victim's job would be starving, and the claimant's pods offered to it where its own pods were."""
    session, rules = plan.session, plan.rules
    if not session.job_starving(job):
        return False
    # Victims of one shape ask alike; whoever is offered nobody of all members is offered nobody node by node.
    for victim in {id(task.shape): task for task in job.pending.values()}.values():
        candidates = [member for member in plan.members if rules.may_go(victim, member)]
        if candidates and rules.ask(victim, rules.in_order(victim, candidates)):
            return not _has_room_elsewhere(plan, victim)
    return False


def _has_room_elsewhere(plan: Plan, victim: Task) -> bool:
    evaluation = plan.evaluation(victim)
    return bool(evaluation.mask(released=True).any())
