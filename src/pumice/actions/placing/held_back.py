"""Jobs whose only pod waits on the node that is held for it: what becomes of one that is tried becomes of its equals, as long as nothing changes.

Each is tried with its own hold lifted. What its queue holds then is the same for all that ask for the same, so what a queue refuses to one it refuses to the next; and where one
finds no free room anywhere and waits on its node again, so does an equal one whose node has the same amounts. So nobody need be moved to find out that the next one stays where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.framework.reads import NOTHING, Reads
from pumice.framework.subject import Subject
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class Tried(msgspec.Struct):
    """A holder that is being tried: where it waited, when that was, and why its queue refused it."""

    queue: Queue
    job: Job
    task: Task
    node: NodeRecord
    position: int
    refusal: FitSummary | None = None


class Stays(msgspec.Struct, frozen=True):
    """What trying a holder comes to: it stays where it is, refused by its queue, or since there is no free room."""

    refusal: FitSummary | None = None


STAYS = Stays()


class HeldBack:
    """What became of the holders of each kind; true until something changes, which trying one that ends where it began does not."""

    __slots__ = ("_known", "_session", "_usual", "_when", "trying")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._usual = _are_equals_refused_alike(session)
        self._known: dict[Hashable, Stays] = {}
        self._when: tuple[str, int] = ("", -1)
        self.trying: Tried | None = None

    def known(self, queue: Queue, job: Job, tasks: Sequence[Task]) -> Stays | None:
        """Return what would become of a holder that would stay where it is; None if it has to be tried."""
        table = self._session.cluster.nodes
        if not self._known or self._when != (queue.name, table.position):
            return None
        node = self._waits_on(job, tasks)
        # Where more was given out than there is, the hold could not be put back.
        if node is None or table.future_idle_at(node.row).min() < 0:
            return None
        kind = _kind(job, tasks[0])
        if (stays := self._known.get(kind)) is not None:
            return stays
        placed = self._placed(kind, queue, tasks[0], node)
        return None if placed is None else self._known.get(placed)

    def begin(self, queue: Queue, job: Job, tasks: Sequence[Task]) -> None:
        """Note that a job is about to be tried."""
        node = self._waits_on(job, tasks)
        position = self._session.cluster.nodes.position
        self.trying = None if node is None else Tried(queue, job, tasks[0], node, position)

    def end(self) -> None:
        """Keep what became of the job that was tried, if it is back where it was."""
        tried, self.trying = self.trying, None
        if tried is None or self._session.breakdowns.has(tried.job) or self._session.handlers_may_refuse:
            return
        if self._waits_on(tried.job, [tried.task]) is not tried.node:
            return
        if self._when != (tried.queue.name, tried.position):
            self._known = {}
        self._when = (tried.queue.name, self._session.cluster.nodes.position)
        kind = _kind(tried.job, tried.task)
        if tried.refusal is not None:
            self._known[kind] = Stays(tried.refusal)
        elif not self._session.findings.errors(tried.job) and self._goes_by_amounts(tried):
            placed = self._placed(kind, tried.queue, tried.task, tried.node)
            if placed is not None:
                self._known[placed] = STAYS

    def _waits_on(self, job: Job, tasks: Sequence[Task]) -> NodeRecord | None:
        """Return the node that is held for the only pod of a job and on which it waits; None if there is more to a job than that."""
        if not self._usual or len(tasks) != 1 or len(job.tasks) != 1 or job.min_member < 1:
            return None
        task, session = tasks[0], self._session
        node = task.node
        if task.status != Status.PIPELINED or node is None or task.gated:
            return None
        if task.uid not in session.reserved or task.uid not in session.evicted_for:
            return None
        hold = session.reservations.holds.get(task.uid)
        constraint_class = task.shape.constraint_class
        if hold is None or hold.node != node.name or constraint_class.takes_ports or constraint_class.has_volumes:
            return None
        return None if session.topology.steers(job) else node

    def _goes_by_amounts(self, tried: Tried) -> bool:
        """Tell whether Node objects and amounts alone decide which nodes take a task, all of which are looked at."""
        evaluator = self._session.evaluator
        if evaluator.functions.tells_subjects_apart or evaluator.sampler is not None:
            return False
        evaluation = self._session.evaluate(Subject(tried.task, tried.queue))
        return evaluation.is_by_amounts(released=False) and evaluation.is_by_amounts(released=True)

    def _placed(self, kind: Hashable, queue: Queue, task: Task, node: NodeRecord) -> Hashable | None:
        """Return what its own node has to do with it, which are its amounts; None if that one is not looked at first, or its object does not let the task in."""
        if task.nominated != node.name or not self._session.evaluator.static_mask(Subject(task, queue))[node.row]:
            return None
        return kind, self._session.cluster.nodes.state(node.row)


def _kind(job: Job, task: Task) -> Hashable:
    return *task.likeness, task.namespace, job.priority, job.min_member


def _are_equals_refused_alike(session: Session) -> bool:
    """Tell whether limits of queues go by queues and amounts alone, and nobody takes a job without its minimum for ready or soon so."""
    if not session.minimums_count or session.gates.enabled or session.handlers_may_refuse:
        return False
    limits = all(each.reads in (NOTHING, Reads.QUEUE) for each in session.allocatable)
    return limits and all(each.reads == NOTHING for each in session.job_pipelined)
