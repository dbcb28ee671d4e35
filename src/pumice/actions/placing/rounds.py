"""Rounds: turns that are taken as they come, and begun and ended together.

Whoever is first by now is served next, with one pod. Nodes are proposed for many turns at once: those of small jobs of the only queue that waits are drafted for all of them (`drafted`), those of
equal pods are chosen ahead (`nodes_ahead`). What is proposed is put into one statement, and each turn is verified there: that it is this job's, that its queue may have it, that the job is ready with
one pod more. Whatever is out of the ordinary (no free room, a queue that may have no more, a plugin that refuses or breaks down) ends the round before the turn that it is about, which is then taken by
itself. So each pod goes where it would have gone, and nothing else is said of it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from pumice.actions.placing import drafted, round_size, task_runs
from pumice.actions.placing.nodes_ahead import NodesAhead
from pumice.actions.placing.round_size import RoundSize
from pumice.actions.placing.turn_order import TurnOrder
from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.actions.placing.turn_order import Waiting
    from pumice.framework.no_room import NoRoom
    from pumice.framework.priority_queues import Entry
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task

SMALL = 8
"""Pods of a job that takes a turn together with others, at the most: all of them are counted when the queue is asked."""


class Round(msgspec.Struct, frozen=True):
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

    def last(self, session: Session) -> Task:
        """Return the last of the equal tasks that come first."""
        if self.end <= self.start:
            self.end = self.start + len(task_runs.next_run(session, self.tasks, self.start))
        return self.tasks[self.end - 1]

    def run(self, session: Session) -> list[Task]:
        """Return the equal tasks that come first: all of them are counted when the queue is asked, since what it says of them is told in a turn."""
        self.last(session)
        return self.tasks[self.start : self.end]

    def go_on(self) -> None:
        """Forget the tasks that were placed, once they are to be bound."""
        self.tasks = self.tasks[self.start :]
        self.end -= self.start
        self.start = 0

    def begin(self, tasks: list[Task]) -> None:
        """Begin with some tasks, as if a round had not come anywhere."""
        self.tasks = tasks
        self.start = self.end = 0


class Rounds:
    """Plays rounds as large as they turn out to be of use."""

    __slots__ = ("_enabled", "_lines", "_no_room", "_nodes", "_session", "_size", "_statement", "_waiting")

    def __init__(self, session: Session, waiting: Waiting, no_room: NoRoom) -> None:
        self._session = session
        self._no_room = no_room
        self._waiting = waiting
        self._statement = session.statement()
        self._size = RoundSize()
        self._enabled = round_size.may_be_played(session)
        self._lines: dict[str, Line] = {}
        self._nodes = NodesAhead(session)

    def play(self) -> Round | None:
        """Place what the next turns would place; None if the next turn has to be taken alone."""
        if self._size.rests() or not self._enabled or self._session.handlers.may_refuse:
            return None
        served = self._tried()
        self._size.adapt(len(served))
        return Round(self._statement, served) if served else None

    def _tried(self) -> list[tuple[Job, int]]:
        """Take turns together; returns whose they were with how many tasks were left to each, nobody, with everything as it was, if it cannot be done."""
        session, work = self._session, self._waiting.work
        self._statement, trying = session.statement(), session.breakdowns.trying
        order, kept = TurnOrder(self._waiting), False
        served: list[tuple[Job, int]] = []
        try:
            with self._statement.trial() as trial:
                if not self._serve_together(order, served):
                    self._serve(order, served)
                # What a plugin says that refuses is said in the job's own turn.
                if served and not session.handlers.may_refuse:
                    trial.keep()
                    kept = True
        except Exception as error:  # noqa: BLE001  whatever it is, it comes again in a turn of the job's own, which it is put on
            self._enabled = False
            session.observer.retreated("rounds", error)
        finally:
            session.breakdowns.trying = trying
            order.end(kept=kept)
        if not kept:
            return []  # if anybody was served in vain, no round is played after this one
        for key in {job.key: None for job, _ in served}:
            line = self._lines[key]
            line.go_on()
            work[key] = line.tasks
        return served

    # -- many turns at once ------------------------------------------------------------------------------------

    def _serve_together(self, order: TurnOrder, served: list[tuple[Job, int]]) -> bool:
        """Take turns of small jobs of the only queue that waits; False, with everything as it was, if there are none or it does not take all of their tasks on."""
        session, statement, queue = self._session, self._statement, order.queue()
        if queue is None or not order.is_alone or session.overused(queue) is not None:
            return False
        turns = order.lead(self._size.turns, self._is_small)
        tasks = [self._lines[entry[2].key].tasks for entry in turns]
        if not turns or not self._may_take_on(queue, tasks):
            order.put_back()
            return False
        firsts = [each[0] for each in tasks]
        if self._no_room.is_too_large(firsts[0]):
            return True  # the first turn ends without a place, and so does the round
        left = order.leave(turns)
        placed = firsts[: drafted.place(session, statement, queue, firsts[:left])]
        if placed and order.is_unmoved and self._may_have(queue, placed):
            count = self._verified(order, turns[: len(placed)], served)
            if count < len(placed):
                statement.rollback(count)
        else:
            statement.rollback(0)
            order.take_back(turns[:left])
            self._serve_listed(order, queue, turns, served)
        return True

    def _serve_listed(
        self, order: TurnOrder, queue: Queue, turns: Sequence[Entry[Job]], served: list[tuple[Job, int]]
    ) -> None:
        """Place the first task of each of some jobs, one after the other, while it is their turn."""
        session, statement = self._session, self._statement
        nodes = NodesAhead(session, [self._lines[entry[2].key].tasks[0] for entry in turns])
        for entry in turns:
            job = session.breakdowns.trying = entry[2]
            if (served and session.overused(queue) is not None) or not order.leave([entry]):
                return
            mark = statement.checkpoint()
            if not self._is_placed(queue, job, self._lines[job.key].tasks[0], nodes):
                statement.rollback(mark)
                return
            self._took(order, job, served)

    def _is_small(self, job: Job) -> bool:
        """Tell whether the turn of a job is likely to end with its first task, and it has few."""
        line = self._line(job)
        return line.ordinary and len(line.tasks) <= SMALL and _ends_with(job, line.tasks[0])

    def _may_take_on(self, queue: Queue, tasks: Iterable[Sequence[Task]]) -> bool:
        """Tell whether the queue takes all tasks of several jobs on; limits only ever allow fewer as more is asked."""
        allocatable = self._session.allocatable
        return not allocatable.active or allocatable(queue, subject.demand([*itertools.chain(*tasks)])) is None

    def _may_have(self, queue: Queue, placed: Sequence[Task]) -> bool:
        """Tell whether a queue may have a turn more before the last of some placements, and so before each of them."""
        session, statement, last = self._session, self._statement, placed[-1]
        if session.overused(queue) is None:
            return True
        record = last.node
        statement.rollback(statement.checkpoint() - 1)
        return session.overused(queue) is None and record is not None and bool(statement.allocate([last], [record]))

    def _verified(self, order: TurnOrder, turns: Sequence[Entry[Job]], served: list[tuple[Job, int]]) -> int:
        """Count the first turns that are their jobs' and with which these are ready; whatever was placed for the others has to be taken back."""
        session = self._session
        for entry in turns:
            job = session.breakdowns.trying = entry[2]
            if (served and not order.is_next(entry)) or not session.job_ready(job):
                break
            self._took(order, job, served)
        return len(served)

    def _took(self, order: TurnOrder, job: Job, served: list[tuple[Job, int]]) -> None:
        """End the turn of a job that leads."""
        line = self._lines[job.key]
        line.start += 1
        served.append((job, len(line.tasks) - line.start))
        order.took(job, again=line.start < len(line.tasks))

    # -- turn by turn ------------------------------------------------------------------------------------------

    def _serve(self, order: TurnOrder, served: list[tuple[Job, int]]) -> None:
        """Place the first task of each job whose turn it is, as long as all is as usual."""
        session = self._session
        last: Job | None = None
        promised = self._promised(order)
        while len(served) < self._size.turns:
            session.breakdowns.trying = None
            queue = order.queue()
            if queue is None or session.overused(queue) is not None:
                return
            job = session.breakdowns.trying = order.job(queue)
            line = self._line(job)
            task, left = line.tasks[line.start], len(line.tasks) - line.start - 1
            if not line.ordinary or not _ends_with(job, task) or self._is_given_ahead(order, queue, job, left, last):
                return
            mark = self._statement.checkpoint()
            if line.last(session) is not promised.get(job.key):
                # Whoever was not asked about takes what others were promised.
                promised.clear()
                if not self._is_allowed(queue, line):
                    return
            if not self._is_placed(queue, job, task, self._nodes):
                self._statement.rollback(mark)
                return
            line.start += 1
            served.append((job, left))
            last = job
            order.go_on(queue, job, again=left > 0)

    @staticmethod
    def _is_given_ahead(order: TurnOrder, queue: Queue, job: Job, left: int, last: Job | None) -> bool:
        """Tell whether there is a better way: who has turn after turn is given ahead what it gets (`surplus`)."""
        return (job is last and left >= SMALL) or (last is None and not order.is_contended(queue))

    def _is_allowed(self, queue: Queue, line: Line) -> bool:
        """Tell whether the queue takes a task on with those equal to it."""
        allocatable = self._session.allocatable
        return not allocatable.active or allocatable(queue, subject.equal_tasks(line.run(self._session))) is None

    def _promised(self, order: TurnOrder) -> dict[str, Task]:
        """Ask the only queue that waits about those who come first, with the equals of their first tasks; returns the last of these by job, nobody if it does not take all of them on."""
        queue = order.queue()
        if queue is None or not order.is_alone:
            return {}
        lines = {job.key: self._line(job) for job in order.first(self._size.turns)}
        runs = [line.run(self._session) for line in lines.values()]
        if not runs or not self._may_take_on(queue, runs):
            return {}
        return {key: run[-1] for key, run in zip(lines, runs, strict=True)}

    def _is_placed(self, queue: Queue, job: Job, task: Task, nodes: NodesAhead) -> bool:
        """Place a task on free room, and tell whether its job is ready then."""
        session = self._session
        looked_for = subject.Subject(task, queue)
        row = nodes.next(looked_for) if session.pre_predicate(looked_for) is None else None
        if row is None or not self._statement.allocate([task], [session.cluster.nodes.records[row]]):
            return False
        return session.job_ready(job)

    def _line(self, job: Job) -> Line:
        """Return what a job has left."""
        tasks, line = self._waiting.work[job.key], self._lines.get(job.key)
        if line is None:
            special = (job.min_task_member and job.roles_enforced) or True in [task.gated for task in tasks]
            steered = (job.policies or job.topology is not None) and self._session.topology.steers(job)
            line = self._lines[job.key] = Line(tasks, ordinary=not (special or steered))
        elif line.tasks is not tasks:
            # It had a turn of its own since.
            line.begin(tasks)
        return line


def _ends_with(job: Job, task: Task) -> bool:
    """Tell whether the turn of a job is likely to end with a task, placed anywhere."""
    return not task.nominated and job.min_member - job.tally.expected <= 1
