"""sla: let in and start what has waited long enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.extensions import ABSTAIN, PERMIT, Vote
from pumice.framework.plugin import Plugin

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.job import Job


class SlaSettings(Settings):
    """How long jobs may wait."""

    waiting_time = settings.period(
        "sla-waiting-time",
        None,
        minimum=1,
        replacement=None,
        help="how long a job may wait, such as 1h30m; none by default, and one that is not above 0 is none",
    )


class Sla(Plugin):
    """Give jobs a time after which they are let in, and may hold room, whatever plugins of later tiers think.

    The time of a job is the PodGroup annotation `volcano.sh/sla-waiting-time` (or `sla-waiting-time`), else the argument. Jobs with a limit come before those
    without, the one that is due first at the front. A plugin of the same or an earlier tier that rejects a job still wins: to override `overcommit` or `gang`, list
    `sla` in an earlier tier than theirs.
    """

    name = "sla"
    points = frozenset({"JobOrder", "JobEnqueueable", "JobPipelined"})
    settings = Configured(SlaSettings)

    def open(self, session: Session) -> None:
        """Register the order and both votes."""
        self.limit = self.settings.waiting_time
        session.job_order.add(self.order)
        session.job_enqueueable.add(lambda job: self.vote(session, job))
        session.job_pipelined.add(lambda job: self.vote(session, job))

    def due(self, job: Job) -> int | None:
        """Return when a job has waited long enough."""
        limit = job.waiting_time or self.limit
        return None if limit is None else job.creation + limit

    def order(self, job: Job) -> tuple[bool, int]:
        """Put the job that is due first at the front, those without a limit last."""
        due = self.due(job)
        return (True, 0) if due is None else (False, due)

    def vote(self, session: Session, job: Job) -> Vote:
        """Permit a job that is due; for another, ask for a cycle when it will be."""
        due = self.due(job)
        if due is None:
            return ABSTAIN
        # The start of the cycle rather than `session.now`: time changes this answer only at `due`, so quiet cycles until then can be skipped.
        if session.started >= due:
            return PERMIT
        session.wake_at(due)
        return ABSTAIN
