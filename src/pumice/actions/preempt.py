"""preempt: make room for starving jobs within their queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.actions.allocate import PlacingSettings
from pumice.actions.eviction import candidate_reasons, listed, rules, search
from pumice.actions.eviction.settings import Asked, EvictingSettings
from pumice.actions.eviction.successors import Successors
from pumice.framework.configuration import Configured, settings
from pumice.framework.plugin import Action

if TYPE_CHECKING:
    from pumice.framework.explaining.explanations import EvictionVerdict
    from pumice.framework.session import Session
    from pumice.model.job import Job

_ALL_NODES = "accepted for compatibility; all nodes are looked at"


class PreemptSettings(EvictingSettings, PlacingSettings):
    """What preempt may be told."""

    topology_aware = settings.truth(
        "enableTopologyAwarePreemption",
        default=False,
        help="also ask plugins that register at the simulation points; every plan is tried out against all others anyway, on all nodes",
    )
    protect_important = settings.truth(
        "protectMoreImportant",
        default=True,
        help="whether a pod that is more important than the claimant is safe where priority is listed; false, as under `compatibility: volcano`, lets later tiers give it away",
    )
    workers = settings.whole("topologyAwarePreemptWorkerNum", 16, minimum=1, help="accepted for compatibility; unused")
    candidates_percentage = settings.whole("minCandidateNodesPercentage", 10, minimum=0, maximum=100, help=_ALL_NODES)
    least_candidates = settings.whole("minCandidateNodesAbsolute", 1, minimum=0, help=_ALL_NODES)
    most_candidates = settings.whole("maxCandidateNodesAbsolute", 100, minimum=1, help=_ALL_NODES)

    @property
    def asked(self) -> Asked:
        """How victims are looked for."""
        return msgspec.structs.replace(
            super().asked, simulates=self.topology_aware, protects_important=self.protect_important
        )


class Preempt(Action):
    """Evict pods of less important jobs of the same queue for jobs that starve, then pods of a job for more important pods of its own.

    A plan stands before anybody is evicted: every member the gang still needs passes all plugins on its node once the victims are gone, and no victim
    could be spared. The members are nominated to their nodes, and the room is held for them.
    """

    name = "preempt"
    settings = Configured(PreemptSettings)

    def candidates(self, session: Session, job: Job) -> EvictionVerdict | None:
        """Say whom this action could think of for a job, and what keeps them."""
        return candidate_reasons.verdict(rules.Preempt(session, self.settings.asked), job)

    def execute(self, session: Session) -> None:
        """Serve starving jobs, queue by queue: first from other jobs, then from their own."""
        asked = self.settings.asked
        between = search.Search(session, rules.Preempt(session, asked), Successors(session, listed.searches))
        within = search.Search(session, rules.PreemptWithin(session, asked))
        starving, own = between.starving.jobs(), within.starving.jobs()
        for queue in session.queue_order.sort(session.cluster.queues[name] for name in {**starving, **own}):
            for job in session.job_order.sort(_without_topology(starving.get(queue.name, []))):
                with session.attempt(job):
                    if session.job_starving(job):
                        between.serve(queue, job)
            for job in session.job_order.sort(_without_topology(own.get(queue.name, []))):
                with session.attempt(job):
                    within.serve_each(queue, job)


def _without_topology(jobs: list[Job]) -> list[Job]:
    """Leave out jobs that must stay inside a topology domain; the gang forms are for them."""
    return [job for job in jobs if job.topology is None and not any(policy.topology for policy in job.policies)]
