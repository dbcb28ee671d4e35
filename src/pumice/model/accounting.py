"""Accounting: what tasks contribute to the sums of their node, their job and its queue, by the status they are in.

Inside a cycle sums follow every move; events between cycles may be gathered and entered at once. Taking away exactly what was added restores every sum, in any order.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from pumice.model import counted, statuses
from pumice.model.gathering import GatheredSums, Moved
from pumice.model.statuses import Status
from pumice.model.sums import add_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.model.counted import Changes
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord, NodeTable
    from pumice.model.resources import Vocabulary
    from pumice.model.shape import Shape
    from pumice.model.sums import QueueSums, Sums
    from pumice.model.task import Task

    # Where and what tasks were, the rows with one for each task that has a node, and where and what they are.
    Side = tuple[list[int], Status]

NOBODY = object()
FEW = 8
"""Up to so many kinds of tasks are entered kind by kind: beyond that numpy costs less than as many calls of it."""


class Accounting:
    """The sums of all nodes, jobs and queues."""

    __slots__ = ("_gathered", "_jobs", "_nodes", "_queues", "outdated")

    def __init__(self, nodes: NodeTable, jobs: Sums, queues: QueueSums) -> None:
        self._nodes = nodes
        self._jobs = jobs
        self._queues = queues
        self._gathered: GatheredSums | None = None
        self.outdated = (
            False  # the vocabulary has grown: everything is counted anew, in the new width, before the next cycle
        )

    # -- one task ----------------------------------------------------------------------------------------------

    def count(self, task: Task, sign: int) -> None:
        """Count a task that has come (sign 1), or is going (-1)."""
        # A static or daemon pod stays with its node whatever is evicted; it counts until it is gone.
        if task.stays and task.node is not None and not self.outdated:
            self._nodes.fixed[task.node.row] += sign * task.shape.request.vector
            self._nodes.fixings += 1
        self._count(task.job, task.shape, ([task.node.row] if task.node else [], task.status), sign, 1)

    def _count(self, job: Job | None, shape: Shape, side: Side, sign: int, tasks: int) -> None:
        """Add (sign 1) or take away (sign -1) what equal tasks of one job contribute in a status to every sum."""
        rows, status = side
        if self.outdated:
            return
        if self._gathered is not None:
            queue_row = None if job is None else self._queues.rows[job.queue]
            self._gathered.add(shape, rows, status, sign, tasks, None if job is None else job.row, queue_row)
            return
        if rows and counted.COLUMNS[status]:
            self._enter_nodes(shape, rows, counted.REACHED[status] if sign > 0 else counted.LEFT[status])
        if job is None:
            if status in statuses.PLACED and status != Status.RELEASING:
                for row in rows:
                    self._nodes.foreign[row] += sign * shape.request.vector
            return
        name = counted.SUMMED.get(status)
        self._enter_owners(job, shape, () if name is None else ((name, sign),), tasks)

    # -- moves -------------------------------------------------------------------------------------------------

    def follow(
        self,
        tasks: Sequence[Task],
        nodes: tuple[Sequence[NodeRecord | None], Sequence[NodeRecord | None]],
        befores: Sequence[Status],
        after: Status,
    ) -> None:
        """Follow tasks of any jobs that went each from one node to another, and from the status beside it to the same."""
        sources, targets = nodes
        kinds = _kinds(tasks, befores)
        usual = not self.outdated and self._gathered is None
        if usual and len(kinds) > FEW and None not in [tasks[number].job for number in kinds]:
            if befores.count(befores[0]) == len(befores):
                self._follow_many(tasks, nodes, befores[0], after)
                return
            for before in dict.fromkeys(befores):
                numbers = [number for number, each in enumerate(befores) if each is before]
                places = [sources[number] for number in numbers], [targets[number] for number in numbers]
                self._follow_many([tasks[number] for number in numbers], places, before, after)
            return
        for start, end in itertools.pairwise((*kinds, len(tasks))):
            first = tasks[start]
            left = [record.row for record in sources[start:end] if record is not None]
            reached = [record.row for record in targets[start:end] if record is not None]
            self._follow_equal(first.job, first.shape, (left, befores[start]), (reached, after), end - start)

    def follow_one(self, task: Task, source: NodeRecord | None, before: Status) -> None:
        """Follow one task that was on a node, or on none, in a status."""
        left, reached = [] if source is None else [source.row], [] if task.node is None else [task.node.row]
        self._follow_equal(task.job, task.shape, (left, before), (reached, task.status), 1)

    def _follow_equal(self, job: Job | None, shape: Shape, origin: Side, goal: Side, tasks: int) -> None:
        """Follow equal tasks of one job."""
        (left, before), (reached, after) = origin, goal
        stayed, held = counted.STAYED[before, after], counted.HELD[before, after]
        if left == reached and not stayed and not held:
            # Nothing is added up differently; but who looks at single tasks has to look again.
            self._nodes.touch_all(reached)
            return
        if job is None or self.outdated or self._gathered is not None:
            self._count(job, shape, origin, -1, tasks)
            self._count(job, shape, goal, 1, tasks)
            return
        if left != reached:
            if left:
                self._enter_nodes(shape, left, counted.LEFT[before])
            if reached:
                self._enter_nodes(shape, reached, counted.REACHED[after])
        elif reached:
            self._enter_nodes(shape, reached, stayed)
        self._enter_owners(job, shape, held, tasks)

    def _follow_many(
        self,
        tasks: Sequence[Task],
        nodes: tuple[Sequence[NodeRecord | None], Sequence[NodeRecord | None]],
        before: Status,
        after: Status,
    ) -> None:
        """Follow tasks of many jobs or shapes that were in one status: the cost of calling numpy is shared."""
        left, reached = ([record.row for record in side if record is not None] for side in nodes)
        stayed, held = counted.STAYED[before, after], counted.HELD[before, after]
        if left == reached and not stayed and not held:
            self._nodes.touch_all(reached)  # as where they are equal
            return
        moved = Moved([task.shape for task in tasks])
        if left == reached:
            moved.enter_nodes(self._nodes, left, stayed)
        else:
            moved.enter_nodes(self._nodes, left, counted.LEFT[before] if left else ())
            moved.enter_nodes(self._nodes, reached, counted.REACHED[after] if reached else ())
        if held:
            jobs = [job for task in tasks if (job := task.job) is not None]
            queue_rows = [self._queues.rows[job.queue] for job in jobs]
            moved.enter_sums(self._jobs, [job.row for job in jobs], held)
            moved.enter_sums(self._queues, queue_rows, held)
            self._queues.changes += queue_rows

    # -- entering ----------------------------------------------------------------------------------------------

    def _enter_nodes(self, shape: Shape, rows: Sequence[int], changes: Changes) -> None:
        """Change the columns that equal tasks count in for their nodes, a row for each task."""
        nodes = self._nodes
        if len(rows) == 1:
            row = rows[0]
            for name, sign in changes:
                if name == "non_zero":
                    nodes.non_zero[row, 0] += sign * shape.non_zero[0]
                    nodes.non_zero[row, 1] += sign * shape.non_zero[1]
                else:
                    add_times(getattr(nodes, name)[row], shape.request.vector, sign)
            nodes.touch(row)
            return
        times: dict[int, int] = {}
        for row in rows:
            times[row] = times.get(row, 0) + 1
        distinct = np.array(list(times), dtype=np.int64)
        count = np.array(list(times.values()), dtype=np.int64)[:, None]
        for name, sign in changes:
            amounts = np.array(shape.non_zero, dtype=np.int64) if name == "non_zero" else shape.request.vector
            getattr(nodes, name)[distinct] += sign * count * amounts
        nodes.touch_all(times)

    def _enter_owners(self, job: Job, shape: Shape, changes: Changes, tasks: int) -> None:
        """Change the sums that equal tasks count in for their job and its queue."""
        jobs, queues = self._jobs, self._queues
        queue_row = queues.rows[job.queue]
        queues.changes.append(queue_row)
        vector = shape.request.vector
        for name, sign in changes:
            add_times(getattr(jobs, name)[job.row], vector, sign * tasks)
            add_times(getattr(queues, name)[queue_row], vector, sign * tasks)

    # -- between cycles ----------------------------------------------------------------------------------------

    def gather(self) -> None:
        """Gather what events change until everything is brought up to date at once; nobody reads sums before that."""
        if self._gathered is None:
            self._gathered = GatheredSums()

    def enter_gathered(self) -> None:
        """Enter what was gathered so far."""
        if self._gathered is not None:
            if not self.outdated:
                self._gathered.enter(self._nodes, self._jobs, self._queues)
            self._gathered.clear()

    def prepare(self, tasks: Iterable[Task], vocabulary: Vocabulary) -> None:
        """Bring every sum up to date; no more is gathered."""
        if self.outdated:
            self.recount(tasks, vocabulary)
        self.enter_gathered()
        self._gathered = None
        self._queues.changes.clear()

    def recount(self, tasks: Iterable[Task], vocabulary: Vocabulary) -> None:
        """Compute every sum anew from the tasks."""
        self.outdated = False
        self._gathered = None
        self._jobs.widen()
        self._queues.widen()
        nodes = self._nodes
        for matrix in (nodes.used, nodes.releasing, nodes.pipelined, nodes.foreign, nodes.fixed, nodes.non_zero):
            matrix[:] = 0
        for task in tasks:
            task.shape.request.lay(vocabulary)
            self.count(task, 1)

    def carry(self, job: Job, sign: int) -> None:
        """Add the sums of a job to those of its queue, or take them away."""
        if job.tasks:
            self.enter_gathered()
            self._queues.carry(job.queue, self._jobs, job.row, sign)


def _kinds(tasks: Sequence[Task], befores: Sequence[Status]) -> list[int]:
    """Tell where tasks of one job, one shape and one status begin."""
    found: list[int] = []
    job: object = NOBODY
    shape = status = None
    for number, (task, before) in enumerate(zip(tasks, befores, strict=True)):
        if task.shape is not shape or task.job is not job or before is not status:
            found.append(number)
            job, shape, status = task.job, task.shape, before
    return found
