"""gangpreempt: make room for whole gangs within their queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.eviction import candidate_reasons, gang_rules, gangs
from pumice.actions.eviction.settings import GangSettings
from pumice.framework.configuration import Configured
from pumice.framework.plugin import Action

if TYPE_CHECKING:
    from pumice.framework.explaining.explanations import EvictionVerdict
    from pumice.framework.session import Session
    from pumice.model.job import Job


class GangPreempt(Action):
    """Evict bundles of jobs of lower priority in the same queue: first pods that their jobs can spare, then jobs as a whole.

    Use it instead of preempt. A plan stands before anybody is evicted, and whatever it can do without is spared.
    """

    name = "gangpreempt"
    settings = Configured(GangSettings)

    def candidates(self, session: Session, job: Job) -> EvictionVerdict | None:
        """Say whom this action could think of for a job, and what keeps them."""
        return candidate_reasons.verdict(gang_rules.GangPreempt(session, self.settings.asked), job)

    def execute(self, session: Session) -> None:
        """Serve starving jobs, queue by queue."""
        found = gang_rules.GangPreempt(session, self.settings.asked)
        gangs.serve(session, found, reclaims=False)
