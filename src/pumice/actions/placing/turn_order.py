"""Whose turn it is: the first job of the first queue, as both are by now, while turns are taken that may be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.framework.priority_queues import HeapQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.framework.priority_queues import Entry, PriorityQueue
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

    __slots__ = ("_gone", "_job", "_led", "_queue", "_taken", "_waiting", "is_alone")

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        # Whether no queue waits but the one whose turn it is.
        self.is_alone = False
        self._queue: Queue | None = None
        self._job: Job | None = None
        # Who waits for no other turn; they come back if turns are taken back.
        self._gone: list[tuple[PriorityQueue[Any], Queue | Job]] = []
        # The jobs whose turns were begun together, with where they came from, and how many of these were taken.
        self._led: tuple[HeapQueue[Job], list[Entry[Job]]] | None = None
        self._taken = 0

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

    # -- many turns of the only queue that waits ---------------------------------------------------------------

    def lead(self, count: int, suits: Callable[[Job], bool]) -> list[Entry[Job]]:
        """Return the first jobs of the queue, in order, up to one that does not suit; nobody if they are fewer than two."""
        jobs = None if self._queue is None else self._waiting.jobs[self._queue.name]
        if not isinstance(jobs, HeapQueue) or len(jobs) < 2:
            return []
        entries = jobs.lead(count)
        self._led = (jobs, entries)
        suitable = next((number for number, entry in enumerate(entries) if not suits(entry[2])), len(entries))
        return entries[:suitable] if suitable > 1 else []

    def first(self, count: int) -> list[Job]:
        """Return the first jobs of the queue, which wait on; nobody if they are fewer than two."""
        jobs = [entry[2] for entry in self.lead(count, lambda _: True)]
        self.put_back()
        return jobs

    def leave(self, turns: Sequence[Entry[Job]]) -> int:
        """Let jobs that lead begin their turns; returns how many did before another one would come first."""
        return self._led[0].leave_together(turns) if self._led is not None else 0

    def take_back(self, turns: Sequence[Entry[Job]]) -> None:
        """Let jobs that lead not have begun their turns."""
        if self._led is not None:
            self._led[0].take_back(turns)

    @property
    def is_unmoved(self) -> bool:
        """Tell whether nothing that waits behind those that lead has to be moved."""
        return self._led is not None and self._led[0].unmoved

    def is_next(self, entry: Entry[Job]) -> bool:
        """Tell whether none that waits would come before a job that leads."""
        return self._led is not None and self._led[0].is_next(entry)

    def took(self, job: Job, *, again: bool) -> None:
        """End the turn of the next job that leads; it may have another one."""
        self._taken += 1
        if again and self._led is not None:
            self._led[0].push(job)

    def put_back(self, taken: int = 0) -> None:
        """Let those that lead wait on, but for the first whose turns were taken."""
        if self._led is not None:
            jobs, entries = self._led
            jobs.put_back(entries[taken:])
            self._led = None

    # -- turn by turn ------------------------------------------------------------------------------------------

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
        self.put_back(self._taken if kept else 0)
        queue, job = self._queue, self._job
        if queue is not None and job is not None:
            self._waiting.jobs[queue.name].push(job)
        if queue is not None:
            self._waiting.queues.push(queue)
        for holder, item in self._gone if not kept else ():
            holder.push(item)
