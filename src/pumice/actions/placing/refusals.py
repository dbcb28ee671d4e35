"""Jobs that are refused without looking for a node: an equal one has just found none, or no node will have so much (`full-waiting-1000`: 2.9 times as fast)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actions.placing import telling
from pumice.framework.no_room import NoRoom
from pumice.framework.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.framework.dormancy import Dormancy
    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class Refusals:
    """What keeps jobs waiting that need not be tried, told to them as trying them would; who cannot be helped in this cycle is left alone in the next ones too."""

    __slots__ = ("_action", "_dormancy", "_known", "_session", "no_room")

    def __init__(self, session: Session, action: str, dormancy: Dormancy) -> None:
        self._session = session
        self._action = action
        self._dormancy = dormancy
        self._known = KnownFailures(session)
        self.no_room = NoRoom(session)

    def begin(self, queue: Queue) -> None:
        """Forget what is not true of a queue's jobs as nodes are now."""
        self._known.begin(queue, self._session.cluster.nodes.position)

    def at_once(self, queue: Queue, job: Job, tasks: list[Task]) -> FitSummary | None:
        """Refuse a job all of whose tasks are alike if no node takes one, and say why; None if it has to be tried."""
        session, first, least = self._session, tasks[0], job.min_member
        if len(tasks) != least or first.nominated or first.gated:
            return None
        if session.reserved and not session.reserved.keys().isdisjoint(job.tasks):
            return None  # what is held for it is its own to use
        known = self._known.of(first)
        if session.topology.steers(job) or (least > 1 and not _are_alike(tasks)):
            return None
        failure = known if known is not None else self.no_room.failure(queue, job, tasks)
        if failure is None:
            return None
        session.findings.attempt(job)
        if session.findings.errors(job):
            session.findings.note_fit(tasks, failure)
            said = telling.shortfall(session, job, 0)
        else:
            uids = [first.uid] if least == 1 else [task.uid for task in tasks]
            session.findings.note_fit_of_all(job, uids, failure)
            self._let_lie(queue, job, tasks, failure)
            said = telling.Shortfall(0, least - job.tally.ready, least, len(job.pending), first.name, failure)
        session.record.judge(job.key, self._action, said)
        if known is None:
            self._known.add(first, failure)
        return failure

    def remember(self, queue: Queue, job: Job, tasks: Sequence[Task]) -> None:
        """Keep why a job failed with the first task that was tried, for its other members and for its equals."""
        session = self._session
        errors = session.findings.errors(job)
        if errors and len(tasks) == job.min_member and not tasks[0].gated and _are_alike(tasks):
            failure = next(iter(errors.values()))
            session.findings.forget_fit(job, tasks)
            session.findings.note_fit(tasks, failure)
        if session.breakdowns.has(job) or not session.shortcuts.equal_jobs:
            return  # a breakdown about one says nothing about its equals
        if errors and session.independence.equals_share_answers:
            uid, failure = next(iter(errors.items()))
            if session.job_delay.active and not failure.is_shortage:
                return  # what is promised to others may be in the way of this one alone
            self.begin(queue)
            self._known.add(job.tasks[uid], failure)
            self._let_lie(queue, job, tasks, failure)

    def let_lie(self, queue: Queue, job: Job, tasks: Sequence[Task]) -> None:
        """Have a gang left alone of which a part was placed, as long as nodes have too little room for all of it; but not where somebody reads for how many there is room."""
        session = self._session
        errors = session.findings.errors(job)
        if errors and not session.record.is_followed and self.no_room.is_short(tasks[0], len(tasks)):
            self._dormancy.note(session, queue, job, tasks, next(iter(errors.values())))

    def _let_lie(self, queue: Queue, job: Job, tasks: Sequence[Task], failure: FitSummary) -> None:
        """Have a job left alone until something changes for it, if nothing else can help it; what its queue is due may give way yet in this cycle."""
        session = self._session
        if failure.due and session.lending.enabled:
            return
        if failure.queue or (session.independence.equals_share_answers and self.no_room.is_too_large(tasks[0])):
            placed = session.findings.last_transactions
            if not placed or placed.keys().isdisjoint(job.pending):
                self._dormancy.note(session, queue, job, tasks, failure)


class KnownFailures:
    """Why tasks of one queue found no node, by what nodes see of a task; true until some node changes."""

    __slots__ = ("_evaluator", "_known", "_queue", "_when")

    def __init__(self, session: Session) -> None:
        self._evaluator = session.evaluator
        self._queue: Queue | None = None
        self._when: tuple[str, int] = ("", -1)
        self._known: dict[Hashable, FitSummary] = {}

    def begin(self, queue: Queue, position: int) -> None:
        """Forget what was said of tasks of another queue, or before the log of changed rows came to where it is."""
        if self._when != (queue.name, position):
            self._when, self._queue = (queue.name, position), queue
            self._known = {}

    def add(self, task: Task, failure: FitSummary) -> None:
        """Keep why a task found no node; of amounts all of its shape have too little."""
        self._known[(*task.likeness, () if failure.is_shortage else self._apart(task))] = failure

    def of(self, task: Task) -> FitSummary | None:
        """Return why one like this task found no node, None if none was tried."""
        if not self._known:
            return None
        apart = self._apart(task)
        return self._of(task, ()) or (self._of(task, apart) if apart else None)

    def _of(self, task: Task, apart: Hashable) -> FitSummary | None:
        # Most often equals share their bond too; only those that do not have to be compared by what it means.
        same = (task.shape, task.bond, apart)
        failure = self._known.get(same)
        if failure is None:
            failure = self._known.get((*task.likeness, apart))
            if failure is not None:
                self._known[same] = failure
        return failure

    def _apart(self, task: Task) -> Hashable:
        """Return what filters and scores see of a task beyond its shape and its bond."""
        evaluator = self._evaluator
        return evaluator.apart(Subject(task, self._queue)) if evaluator.functions.aparts else ()


def _are_alike(tasks: Sequence[Task]) -> bool:
    """Tell whether nodes see the same in all tasks."""
    first = tasks[0]
    return all(task.shape is first.shape and task.bond is first.bond for task in tasks)
