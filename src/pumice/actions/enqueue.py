"""enqueue: let pending groups in, as far as the plugins think they could ever run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Action

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Amounts


class EnqueueSettings(Settings):
    """What a vote counts as free."""

    eviction_aware = settings.truth(
        "evictionAware",
        default=True,
        help="whether a vote counts as free what the group could evict, if an evicting action is configured; false is Volcano's vote",
    )


class Enqueue(Action):
    """Move PodGroups from Pending to Inqueue: queues by QueueOrder, jobs of a queue by JobOrder.

    A group without `minResources` is always let in, and so are one for which room is held and a gang with started members if what it lacks of its minimum is free; the
    others need the vote of JobEnqueueable. One that is refused does not hold up those behind it.
    Controllers create the pods of a group when they see the phase Inqueue.
    """

    name = "enqueue"
    settings = Configured(EnqueueSettings)

    def execute(self, session: Session) -> None:
        """Work through the queues until nobody is left to ask."""
        waiting: dict[str, list[Job]] = {}
        for job in session.usable_jobs(session.cluster.phases.jobs(names.PHASE_PENDING)):
            waiting.setdefault(job.queue, []).append(job)
        jobs = {name: session.job_order.queue(members) for name, members in waiting.items()}
        queues = session.queue_order.queue(session.cluster.queues[name] for name in jobs)
        while len(queues):
            queue = queues.pop()
            asking = jobs[queue.name]
            while len(asking):
                job = asking.pop()
                with session.attempt(job):
                    self._ask(session, job)
                if len(queues):  # where no other queue waits nobody could come first
                    queues.push(queue)
                    break

    def _ask(self, session: Session, job: Job) -> None:
        """Let one job in, or note who was against it and why."""
        if job.min_resources is not None and not _is_expected(session, job, job.min_resources):
            vote = session.job_enqueueable(job)
            if vote.value < 0:
                session.findings.attempt(job)
                session.record.judge(job.key, self.name, f"not let in: {vote.reason}")
                session.findings.keep_out(job, vote)
                return
        session.job_enqueued(job)
        session.findings.set_phase(job, names.PHASE_INQUEUE)
        session.record.acquit(job.key, self.name)
        session.record.say(self.name, "let in", job.key)


def _is_expected(session: Session, job: Job, minimum: Amounts) -> bool:
    """Tell whether a group needs no vote: room is held for it, or it only has to be finished."""
    if session.holds_room(job):
        # Victims have gone for it: whoever refused it now would leave their room empty. A queue that is not open takes nobody all the same.
        return session.cluster.queues[job.queue].is_open
    return _may_be_finished(session, job, minimum)


def _may_be_finished(session: Session, job: Job, minimum: Amounts) -> bool:
    """Tell whether a gang was left incomplete, and what it lacks of its minimum is free in sum: votes would count what it holds twice."""
    if not (session.gangs_are_kept and job.is_interrupted):
        return False
    cluster = session.cluster
    columns, table = cluster.vocabulary.columns, cluster.nodes
    held, free = cluster.job_sums.allocated[job.row], (table.allocatable - table.used)[table.rows].sum(axis=0)
    return all(
        (column := columns.get(name)) is not None and units <= held[column] + free[column]
        for name, units in minimum.items()
        if units and name != "pods"
    )
