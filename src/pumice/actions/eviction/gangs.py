"""The two gang forms of eviction, which differ in whom they may take from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import asking, listed
from pumice.actions.eviction.search import Search
from pumice.actions.eviction.successors import Successors
from pumice.framework import subject

if TYPE_CHECKING:
    from pumice.actions.eviction.gang_rules import GangRules
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue


def serve(session: Session, rules: GangRules, *, reclaims: bool) -> None:
    """Serve starving jobs, queue by queue; a queue that reclaims must not be overused."""
    found = Search(session, rules, Successors(session, listed.searches))
    starving = found.starving.jobs()
    for queue in session.queue_order.sort(session.cluster.queues[name] for name in starving):
        if reclaims and session.overused(queue) is not None:
            continue
        for job in session.job_order.sort(starving[queue.name]):
            with session.attempt(job):
                if session.job_starving(job) and (not reclaims or _may_reclaim(session, queue, job, rules.name)):
                    found.serve(queue, job)


def _may_reclaim(session: Session, queue: Queue, job: Job, action: str) -> bool:
    tasks = asking.members_lacking(job, asking.claimants(session, job))
    if not tasks:
        return False
    reason = session.preemptive(queue, subject.demand(tasks))
    if reason is not None:
        session.record.judge(job.key, action, f"queue {queue.name} may not reclaim: {reason}")
    return reason is None
