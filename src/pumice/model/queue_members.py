"""Which jobs are in which queue, whether or not it exists, and what they add up to there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model.queue import Queue

if TYPE_CHECKING:
    from pumice.model.accounting import Accounting
    from pumice.model.job import Job
    from pumice.model.sums import QueueSums

NO_QUEUE = ""  # where jobs without a group are: they count for no queue


class QueueMembers:
    """The keys of the jobs that name a queue; a name is known as long as there is such a queue or a job that names it."""

    def __init__(self, sums: QueueSums, accounting: Accounting) -> None:
        self._sums = sums
        self._accounting = accounting
        self.jobs: dict[str, dict[str, None]] = {}

    def open(self, name: str) -> Queue:
        """Make a queue, with the jobs that have named it before it was there."""
        queue = Queue(name, self._sums.join(name))
        queue.jobs = self.jobs.setdefault(name, {})
        return queue

    def close(self, name: str) -> None:
        """Let a queue go; jobs that name it stay under its name."""
        self._part(name)

    def enter(self, job: Job, name: str) -> None:
        """Put a job into a queue."""
        job.queue = name
        self._sums.join(name)
        self._accounting.carry(job, 1)
        self.jobs.setdefault(name, {})[job.key] = None

    def leave(self, job: Job) -> None:
        """Take a job out of its queue."""
        self._accounting.carry(job, -1)
        del self.jobs[job.queue][job.key]
        self._part(job.queue)

    def change(self, job: Job, name: str) -> None:
        """Put a job into another queue, if it is another."""
        if job.queue != name:
            self.leave(job)
            self.enter(job, name)

    def _part(self, name: str) -> None:
        """Use a name once less, and forget one that nobody uses."""
        self._sums.part(name)
        if name not in self._sums.rows:
            del self.jobs[name]
