"""reclaim: take back from other queues what a queue is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.allocate import ERROR_CACHE
from pumice.actions.eviction import rules, search
from pumice.framework import subject
from pumice.framework.plugin import Action

if TYPE_CHECKING:
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue


class Reclaim(Action):
    """Evict pods of queues that hold more than they are due, for starving jobs of queues that hold less.

    Which queue may ask and who may be taken is decided by the sharing plugins. A plan stands before anybody is evicted, as for preempt.
    """

    name = "reclaim"
    arguments = (ERROR_CACHE,)

    def execute(self, session: Session) -> None:
        """Serve starving jobs of queues that are not overused."""
        starving = search.starving_jobs(session)
        found = search.Search(session, rules.Reclaim(session))
        for queue in session.queue_order.sort(session.cluster.queues[name] for name in starving):
            if (reason := session.overused(queue)) is not None:
                for job in starving[queue.name]:
                    session.record.judge(job.key, self.name, f"queue {queue.name} is overused: {reason}")
                continue
            for job in session.job_order.sort(starving[queue.name]):
                if session.job_starving(job) and self._may_ask(session, queue, job):
                    found.serve(queue, job)

    def _may_ask(self, session: Session, queue: Queue, job: Job) -> bool:
        """Ask whether the queue may reclaim for at least the first member."""
        tasks = search.claimants(session, job)
        if not tasks:
            return False
        reason = session.preemptive(queue, subject.equal_tasks(tasks[:1]))
        if reason is not None:
            session.record.judge(job.key, self.name, f"queue {queue.name} may not reclaim: {reason}")
        return reason is None
