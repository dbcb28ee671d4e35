"""reclaim: take back from other queues what a queue is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.allocate import PlacingSettings
from pumice.actions.eviction import candidate_reasons, listed, rules, search
from pumice.actions.eviction.settings import EvictingSettings
from pumice.actions.eviction.successors import Successors
from pumice.framework.configuration import Configured
from pumice.framework.plugin import Action

if TYPE_CHECKING:
    from pumice.framework.explaining.explanations import EvictionVerdict
    from pumice.framework.session import Session
    from pumice.model.job import Job


class ReclaimSettings(EvictingSettings, PlacingSettings):
    """What reclaim may be told."""


class Reclaim(Action):
    """Evict pods of queues that hold more than they are due, for starving jobs of queues that hold less.

    Which queue may ask and who may be taken is decided by the sharing plugins. A plan stands before anybody is evicted, as for preempt.
    """

    name = "reclaim"
    settings = Configured(ReclaimSettings)

    def candidates(self, session: Session, job: Job) -> EvictionVerdict | None:
        """Say whom this action could think of for a job, and what keeps them."""
        return candidate_reasons.verdict(rules.Reclaim(session, self.settings.asked), job)

    def execute(self, session: Session) -> None:
        """Serve starving jobs of queues that are not overused."""
        asked = self.settings.asked
        found = search.Search(session, rules.Reclaim(session, asked), Successors(session, listed.searches))
        starving = found.starving.jobs()
        for queue in session.queue_order.sort(session.cluster.queues[name] for name in starving):
            if (reason := session.overused(queue)) is not None:
                for job in starving[queue.name]:
                    session.record.judge(job.key, self.name, f"queue {queue.name} is overused: {reason}")
                continue
            for job in session.job_order.sort(starving[queue.name]):
                with session.attempt(job):
                    if session.job_starving(job):
                        found.serve(queue, job)
