"""enqueue: let pending groups in, as far as the plugins think they could ever run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.placing.round_size import RoundSize
from pumice.api import names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Action
from pumice.framework.priority_queues import HeapQueue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.priority_queues import PriorityQueue
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
        size = RoundSize()
        while len(queues):
            queue = queues.pop()
            asking = jobs[queue.name]
            while len(asking):
                if not len(queues) and self._let_in_together(session, asking, size):
                    continue
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
        self._note(session, [job])

    def _let_in_together(self, session: Session, asking: PriorityQueue[Job], size: RoundSize) -> bool:
        """Let the first jobs of the one queue that waits in, as far as nobody who is asked about all of them has anything against one; tells whether there were any.

        Whoever needs no vote or is refused has a turn of its own.
        """
        if not isinstance(asking, HeapQueue) or not session.job_enqueued.takes_many:
            return False
        if len(asking) < 2 or session.reservations.holds or not session.shortcuts.admissions or size.rests():
            return False
        entries = asking.lead(size.turns)
        jobs = _asked_about([job for _, _, job in entries])
        try:
            permitted = session.job_enqueueable.permitted(jobs)
        except Exception as error:  # noqa: BLE001  whatever it is, it comes again where the job is asked about, which it is put on
            permitted = 0
            session.observer.retreated("letting in", error)
        entered = asking.leave_together(entries[:permitted])
        asking.put_back(entries[entered:])
        size.adapt(entered)
        told: list[Job] = []
        if entered:
            with session.attempt(jobs[0]):
                session.job_enqueued.tell(jobs[:entered])
                told = jobs[:entered]
        if not told:
            asking.put_back(entries[1:entered])  # the first is given up, as where it is let in alone
        self._note(session, told)
        return entered > 0

    def _note(self, session: Session, jobs: Sequence[Job]) -> None:
        """Note that jobs were let in."""
        session.findings.set_phases(jobs, names.PHASE_INQUEUE)
        name, record = self.name, session.record
        for job in jobs:
            record.acquit(job.key, name)
            record.say(name, "let in", job.key)


def _asked_about(jobs: list[Job]) -> list[Job]:
    """Return the jobs before the first that may be let in without a vote, being incomplete."""
    for number, job in enumerate(jobs):
        if job.is_interrupted:
            return jobs[:number]
    return jobs


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
