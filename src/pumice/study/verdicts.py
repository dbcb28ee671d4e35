"""What becomes of a job: whether a cycle starts it, how far it comes, and why it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from pumice.api import names
from pumice.framework import causes, closing

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task
    from pumice.study.rehearsal import Outlet

Standing = Literal["starts", "starts after evictions", "is let in", "waits"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What becomes of a job: `placed` of its waiting pods find a node, `nodes` are the first of these, `evicted` have to go.

    `created` of its pods are made by its controller on the way, and `seconds` pass until it starts. Of one that waits `reason` says what it waits for then,
    and `settled` whether nothing more would have happened; more than some cycles are not looked at.
    """

    standing: Standing
    placed: int = 0
    nodes: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    reason: str = ""
    created: int = 0
    seconds: int = 0
    settled: bool = True

    @property
    def starts(self) -> bool:
        """Whether the job starts, at once or later."""
        return self.standing in ("starts", "starts after evictions")


class Target(msgspec.Struct, frozen=True):
    """Who should start: a job, or one pod of it."""

    job: str
    pod: str = ""  # its uid

    def bound(self, outlet: Outlet) -> list[tuple[Task, str]]:
        """Return which of its pods a cycle binds, and where."""
        return [
            (task, node)
            for task, node in outlet.bound.values()
            if task.job_key == self.job and self.pod in ("", task.uid)
        ]

    def has_started(self, session: Session, outlet: Outlet) -> bool:
        """Tell whether a cycle that is not over yet has started it: pods of it are bound, and as many as its minimum have a node."""
        job = session.cluster.jobs.get(self.job)
        if job is None or not self.bound(outlet):
            return False
        return bool(self.pod) or (session.job_ready(job) and job.is_ready)

    def reason(self, session: Session) -> str:
        """Give the one reason for which it waits in this cycle."""
        job = session.cluster.jobs.get(self.job)
        return "it has neither group nor pods" if job is None else _reason(session, job)

    def lacks_pods(self, session: Session) -> bool:
        """Tell whether its group is let in and has no pods."""
        job = session.cluster.jobs.get(self.job)
        return job is not None and not job.tasks and session.findings.phase(job) == names.PHASE_INQUEUE

    def fitting(self, session: Session) -> int:
        """Count the members that would find a place if the others did."""
        job = session.cluster.jobs.get(self.job)
        return 0 if job is None else closing.tentative(session, job)


def _reason(session: Session, job: Job) -> str:
    """Give the one reason that stands for the job: its cause, else the last word about it."""
    if cause := causes.of_job(session, job):
        return cause
    said = [verdict.text for verdict in session.record.verdicts(job.key)]
    return said[-1] if said else job.bad or closing.reason(session, job)
