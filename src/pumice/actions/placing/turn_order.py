"""Whose turn it is: the first job of the first queue, as both are by now, while turns are taken that may be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.priority_queues import PriorityQueue
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class Waiting(msgspec.Struct, frozen=True):
    """Who waits for a turn: queues, the jobs of each of them, and the tasks that each job has left."""

    queues: PriorityQueue[Queue]
    jobs: Mapping[str, PriorityQueue[Job]]
    work: dict[str, list[Task]]


class TurnOrder:
    """Turns as they are taken one after the other; whoever had one waits on at its present place, if it has another to come."""

    __slots__ = ("_gone", "_job", "_queue", "_waiting", "is_alone")

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        # Whether no queue waits but the one whose turn it is.
        self.is_alone = False
        self._queue: Queue | None = None
        self._job: Job | None = None
        # Who waits for no other turn; they come back if turns are taken back.
        self._gone: list[tuple[PriorityQueue[Any], Queue | Job]] = []

    def queue(self) -> Queue | None:
        """Return the queue whose turn it is, None if no queue has jobs left."""
        if self._queue is not None:
            return self._queue
        queues = self._waiting.queues
        while waiting := len(queues):
            queue = queues.pop()
            if len(self._waiting.jobs[queue.name]):
                self.is_alone = waiting == 1
                self._queue = queue
                return queue
            self._gone.append((queues, queue))
        return None

    def job(self, queue: Queue) -> Job:
        """Return the job whose turn it is."""
        self._job = self._waiting.jobs[queue.name].pop()
        return self._job

    def is_contended(self, queue: Queue) -> bool:
        """Tell whether anybody waits beside the job whose turn it is."""
        return not self.is_alone or len(self._waiting.jobs[queue.name]) > 0

    def go_on(self, queue: Queue, job: Job, *, again: bool) -> None:
        """End a turn; the job may have another one."""
        jobs = self._waiting.jobs[queue.name]
        self._job = None
        if again:
            jobs.push(job)
        else:
            self._gone.append((jobs, job))
        # Where no other queue waits nobody could come first, wherever this one would stand.
        if not self.is_alone or not len(jobs):
            self._queue = None
            self._waiting.queues.push(queue)

    def end(self, *, kept: bool) -> None:
        """Let everybody wait on who has a turn to come: where turns were not kept, whoever waited before."""
        queue, job = self._queue, self._job
        if queue is not None and job is not None:
            self._waiting.jobs[queue.name].push(job)
        if queue is not None:
            self._waiting.queues.push(queue)
        for holder, item in self._gone if not kept else ():
            holder.push(item)
