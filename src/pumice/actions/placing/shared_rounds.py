"""Rounds of several queues, or of jobs with many pods: turns that are taken as they come, and begun and ended together.

Queues and jobs take their turns as they would one by one: whoever is first by now is served next, with one pod. What is done once for all of them is what each turn would begin and end with: binds leave
together, and a queue beside which no other waits is asked once whether it takes all of the pods on. Whatever is out of the ordinary (no free room, a job that is not ready with one pod more, a queue that may have
no more, a plugin that refuses or breaks down) ends the round before the turn that it is about, which is then taken by itself. So each pod goes where it would have gone, and nothing else is said of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.actions.placing import round_size, task_runs
from pumice.actions.placing.nodes_ahead import NodesAhead
from pumice.actions.placing.round_size import RoundSize
from pumice.actions.placing.rounds import SMALL
from pumice.actions.placing.turn_order import TurnOrder
from pumice.framework import subject
from pumice.framework.priority_queues import HeapQueue

if TYPE_CHECKING:
    from pumice.actions.placing.turn_order import Waiting
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class SharedRound(msgspec.Struct, frozen=True):
    """What was placed and is to be bound: the jobs in the order of their turns, and for each how many tasks were left to it."""

    statement: Statement
    served: list[tuple[Job, int]]


class Line:
    """The tasks that a job has left, as far as a round has come: those from `start` on, of which the ones before `end` are equal."""

    __slots__ = ("end", "ordinary", "start", "tasks")

    def __init__(self, tasks: list[Task], *, ordinary: bool) -> None:
        self.tasks = tasks
        self.start = self.end = 0
        self.ordinary = ordinary

    def run(self, session: Session) -> list[Task]:
        """Return the equal tasks that come first: all of them are counted when the queue is asked, since what it says of them is told in a turn."""
        if len(self.tasks) == 1:
            return self.tasks
        self._find_end(session)
        return self.tasks[self.start : self.end]

    def last(self, session: Session) -> Task:
        """Return the last of the equal tasks that come first, without looking at the others: there may be thousands, in every turn."""
        self._find_end(session)
        return self.tasks[self.end - 1]

    def _find_end(self, session: Session) -> None:
        if self.end <= self.start:
            self.end = self.start + len(task_runs.next_run(session, self.tasks, self.start))

    def go_on(self) -> None:
        """Forget the tasks that were placed, once they are to be bound."""
        self.tasks = self.tasks[self.start :]
        self.end -= self.start
        self.start = 0

    def go_back(self) -> None:
        """Begin where the round began."""
        self.start = self.end = 0


class SharedRounds:
    """Plays rounds as large as they turn out to be of use."""

    __slots__ = (
        "_enabled",
        "_granted",
        "_lines",
        "_nodes",
        "_session",
        "_size",
        "_statement",
        "_waiting",
    )

    def __init__(self, session: Session, waiting: Waiting) -> None:
        self._session = session
        self._waiting = waiting
        self._statement = session.statement()
        self._size = RoundSize()
        self._enabled = round_size.may_be_played(session)
        self._lines: dict[str, Line] = {}
        self._nodes = NodesAhead(session)
        # What the only queue that waits was asked about in this round, all at once: by job the last of equal tasks; None before it was asked.
        self._granted: dict[str, Task] | None = None

    def play(self) -> SharedRound | None:
        """Place what the next turns would place; None if the next turn has to be taken alone."""
        if self._size.rests():
            return None
        if not self._enabled or self._session.handlers_may_refuse:
            return None
        served = self._tried()
        self._size.adapt(len(served))
        return SharedRound(self._statement, served) if served else None

    def _tried(self) -> list[tuple[Job, int]]:
        """Take turns together; returns whose they were with how many tasks were left to each, nobody, with everything as it was, if it cannot be done."""
        session = self._session
        self._statement, self._granted = session.statement(), None
        trying = session.breakdowns.trying
        order, kept = TurnOrder(self._waiting), False
        served: list[tuple[Job, int]] = []
        try:
            with self._statement.trial() as trial:
                self._serve(order, served)
                # What a plugin says that refuses is said in the job's own turn.
                if served and not session.handlers_may_refuse:
                    trial.keep()
                    kept = True
        except Exception as error:  # noqa: BLE001  whatever it is, it comes again in a turn of the job's own, which it is put on
            self._enabled = False
            session.observer.retreated("rounds", error)
        finally:
            session.breakdowns.trying = trying
            order.end(kept=kept)
        for key in {job.key: None for job, _ in served}:
            line = self._lines[key]
            if kept:
                line.go_on()
                self._waiting.work[key] = line.tasks
            else:
                line.go_back()
        return served if kept else []

    def _serve(self, order: TurnOrder, served: list[tuple[Job, int]]) -> None:
        """Place the first task of each job whose turn it is, as long as all is as usual."""
        session = self._session
        last: Job | None = None
        while len(served) < self._size.turns:
            session.breakdowns.trying = None
            queue = order.queue()
            if queue is None or session.overused(queue) is not None:
                return
            job = session.breakdowns.trying = order.job(queue)
            line = self._line(job)
            task, left = line.tasks[line.start], len(line.tasks) - line.start - 1
            if self._is_for_others(order, queue, job, left, last) or not line.ordinary or not _ends_with(job, task):
                return
            mark = self._statement.checkpoint()
            if not self._is_allowed(order, queue, job, line) or not self._is_placed(queue, job, task):
                self._statement.rollback(mark)
                return
            line.start += 1
            served.append((job, left))
            last = job
            order.go_on(queue, job, again=left > 0)

    @staticmethod
    def _is_for_others(order: TurnOrder, queue: Queue, job: Job, left: int, last: Job | None) -> bool:
        """Tell whether there is a better way: small jobs of the only queue have rounds of their own, and who has turn after turn is given ahead what it gets."""
        if left < SMALL:
            return last is None and order.is_alone
        return job is last or (last is None and not order.is_contended(queue))

    def _line(self, job: Job) -> Line:
        """Return what a job has left."""
        tasks, line = self._waiting.work[job.key], self._lines.get(job.key)
        if line is None:
            gated = tasks[0].gated if len(tasks) == 1 else any(task.gated for task in tasks)
            special = gated or job.roles_enforced or self._session.topology.steers(job)
            line = self._lines[job.key] = Line(tasks, ordinary=not special)
        elif line.tasks is not tasks:
            # It had a turn of its own since.
            line.tasks = tasks
            line.go_back()
        return line

    def _is_allowed(self, order: TurnOrder, queue: Queue, job: Job, line: Line) -> bool:
        """Tell whether the queue takes a task on with those equal to it; one beside which no other waits is asked about those of many jobs together."""
        allocatable = self._session.allocatable
        if not allocatable.active:
            return True
        if self._granted is None and order.is_alone:
            self._granted = self._grant(queue, job)
        if self._granted:
            if self._granted.get(job.key) is line.last(self._session):
                return True
            # Who was not among them takes what they were promised.
            self._granted = {}
        return allocatable(queue, subject.equal_tasks(line.run(self._session))) is None

    def _grant(self, queue: Queue, first: Job) -> dict[str, Task]:
        """Ask a queue about the jobs whose turns are likely to come in this round; nobody is named if it does not take all of them on."""
        waiting = self._waiting.jobs[queue.name]
        jobs = [first, *(waiting.first(self._size.turns - 1) if isinstance(waiting, HeapQueue) else ())]
        runs = [self._line(job).run(self._session) for job in jobs]
        if len(runs) < 2 or self._session.allocatable(queue, subject.runs(runs)) is not None:
            return {}
        return {job.key: run[-1] for job, run in zip(jobs, runs, strict=True)}

    def _is_placed(self, queue: Queue, job: Job, task: Task) -> bool:
        """Place a task on free room, and tell whether its job is ready then."""
        session = self._session
        looked_for = subject.Subject(task, queue)
        if session.pre_predicate(looked_for) is not None:
            return False
        row = self._nodes.next(looked_for)
        if row is None:
            return False
        record = session.cluster.nodes.records[row]
        return self._statement.allocate([task], [record]) > 0 and session.job_ready(job)


def _ends_with(job: Job, task: Task) -> bool:
    """Tell whether the turn of a job is likely to end with a task, placed anywhere."""
    return not task.nominated and job.min_member - job.tally.ready - job.tally.waiting <= 1
