"""Rounds: the turns of many small jobs of one queue at once, where each would be given one pod and then leave the next turn to another.

Where no other queue waits, the next turns are those of the first jobs of the queue. Their pods are placed one after the other, as in turns of their own, while the queue is asked once whether it takes
all of them on, and binds leave together. Whatever is out of the ordinary (no free room, a job that is not ready with one pod more, a plugin that refuses or breaks down) ends the round before the job that
it is about, which then has a turn of its own; what would have changed whose turn it is takes the round back. So each pod goes where it would have gone, and nothing else is said of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.actions.placing import drafted, round_size
from pumice.actions.placing.nodes_ahead import NodesAhead
from pumice.actions.placing.round_size import RoundSize
from pumice.framework import subject
from pumice.framework.priority_queues import HeapQueue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.framework.priority_queues import Entry, PriorityQueue
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task

SMALL = 8
"""Pods of a job in a round, at the most: all of them are counted when the queue is asked."""


class Round(msgspec.Struct, frozen=True):
    """What was placed and is to be bound: the jobs in the order of their turns, and for each the tasks that are left."""

    statement: Statement
    served: list[tuple[Job, list[Task]]]


class Rounds:
    """Plays rounds as large as they turn out to be of use."""

    __slots__ = ("_enabled", "_session", "_size", "_statement")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._statement = session.statement()
        self._size = RoundSize()
        self._enabled = round_size.may_be_played(session)

    def play(self, queue: Queue, jobs: PriorityQueue[Job], work: Mapping[str, list[Task]]) -> Round | None:
        """Place what the next turns of a queue would place, while no other queue waits; None if the next turn has to be taken alone."""
        if self._size.rests():
            return None
        if not self._enabled or not isinstance(jobs, HeapQueue) or len(jobs) < 2 or self._session.handlers_may_refuse:
            return None
        entries = jobs.lead(self._size.turns)
        turns = entries[: self._suitable(entries, work)]
        served = self._tried(queue, jobs, turns, work) if len(turns) > 1 else []
        jobs.put_back(entries[len(served) :])
        self._size.adapt(len(served))
        return Round(self._statement, served) if served else None

    def _suitable(self, entries: Sequence[Entry[Job]], work: Mapping[str, list[Task]]) -> int:
        """Count the first jobs whose turns are likely to end with their first task, placed anywhere."""
        steers = self._session.topology.steers
        for number, (_, _, job) in enumerate(entries):
            tasks, tally = work[job.key], job.tally
            if len(tasks) > SMALL or tasks[0].nominated or job.min_member - tally.ready - tally.waiting > 1:
                return number
            if (job.policies or job.topology is not None) and steers(job):
                return number
            if (job.min_task_member and job.roles_enforced) or True in [task.gated for task in tasks]:
                return number
        return len(entries)

    def _tried(
        self, queue: Queue, jobs: HeapQueue[Job], turns: Sequence[Entry[Job]], work: Mapping[str, list[Task]]
    ) -> list[tuple[Job, list[Task]]]:
        """Take turns together; returns whose they were with the tasks that are left to each, nobody, with everything as it was, if it cannot be done."""
        session = self._session
        self._statement = session.statement()
        trying = session.breakdowns.trying
        try:
            with self._statement.trial() as trial:
                served = self._served(queue, jobs, turns, work) if self._is_allowed(queue, turns, work) else []
                # What a plugin says that refuses is said in the job's own turn.
                if served and not session.handlers_may_refuse:
                    trial.keep()
                    return served
        except Exception as error:  # noqa: BLE001  whatever it is, it comes again in a turn of the job's own, which it is put on
            self._enabled = False
            session.observer.retreated("rounds", error)
        finally:
            session.breakdowns.trying = trying
        return []

    def _is_allowed(self, queue: Queue, turns: Sequence[Entry[Job]], work: Mapping[str, list[Task]]) -> bool:
        """Tell whether the queue takes all pods of all jobs on; limits only ever allow fewer as more is asked."""
        allocatable = self._session.allocatable
        asking = [task for _, _, job in turns for task in work[job.key]]
        return not allocatable.active or allocatable(queue, subject.demand(asking)) is None

    def _served(
        self, queue: Queue, jobs: HeapQueue[Job], turns: Sequence[Entry[Job]], work: Mapping[str, list[Task]]
    ) -> list[tuple[Job, list[Task]]]:
        """Place the first task of each job, as long as all is as usual and the queue may have one more turn."""
        served = self._served_together(queue, jobs, turns, work)
        return served or self._served_one_by_one(queue, jobs, turns, work)

    def _served_together(
        self, queue: Queue, jobs: HeapQueue[Job], turns: Sequence[Entry[Job]], work: Mapping[str, list[Task]]
    ) -> list[tuple[Job, list[Task]]]:
        """Place the first tasks of the jobs together; nobody, with everything as it was, if the queue may not have all of these turns."""
        session, statement = self._session, self._statement
        mark = statement.checkpoint()
        firsts = [work[entry[2].key][0] for entry in turns]
        left = jobs.leave_together(turns)
        placed = firsts[: drafted.place(session, statement, queue, firsts[:left])]
        if not placed or not jobs.unmoved or not self._may_have(queue, placed):
            statement.rollback(mark)
            jobs.take_back(turns[:left])
            return []
        served: list[tuple[Job, list[Task]]] = []
        for number, (entry, _) in enumerate(zip(turns, placed, strict=False)):
            job = session.breakdowns.trying = entry[2]
            if served and not jobs.is_next(entry):
                statement.rollback(mark + number)
                break
            if not session.job_ready(job):
                statement.rollback(mark + number)
                break
            _, *others = work[job.key]
            served.append((job, others))
            if others:
                jobs.push(job)
        return served

    def _may_have(self, queue: Queue, placed: Sequence[Task]) -> bool:
        """Tell whether a queue may have a turn more before the last of some placements, and so before each of them."""
        session, statement, last = self._session, self._statement, placed[-1]
        if session.overused(queue) is None:
            return True
        record, mark = last.node, statement.checkpoint() - 1
        statement.rollback(mark)
        return session.overused(queue) is None and record is not None and bool(statement.allocate([last], [record]))

    def _served_one_by_one(
        self, queue: Queue, jobs: HeapQueue[Job], turns: Sequence[Entry[Job]], work: Mapping[str, list[Task]]
    ) -> list[tuple[Job, list[Task]]]:
        session = self._session
        served: list[tuple[Job, list[Task]]] = []
        ahead = NodesAhead(session, [work[entry[2].key][0] for entry in turns])
        for entry in turns:
            job = session.breakdowns.trying = entry[2]
            if (served and session.overused(queue) is not None) or not jobs.leave(entry):
                break
            mark = self._statement.checkpoint()
            first, *left = work[job.key]
            if not self._is_placed(queue, job, first, ahead):
                self._statement.rollback(mark)
                break
            served.append((job, left))
            if left:
                jobs.push(job)
        return served

    def _is_placed(self, queue: Queue, job: Job, task: Task, ahead: NodesAhead) -> bool:
        """Place a task on free room, and tell whether its job is ready then."""
        session = self._session
        looked_for = subject.Subject(task, queue)
        if session.pre_predicate(looked_for) is not None:
            return False
        row = ahead.next(looked_for)
        if row is None or not self._statement.allocate([task], [session.cluster.nodes.records[row]]):
            return False
        return session.job_ready(job)
