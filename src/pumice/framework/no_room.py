"""Who asks for more than any node will have free need not look for a node: the machinery of a turn costs ten times what the answer does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.framework import subject
from pumice.framework.reasons import summary
from pumice.model.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeTable
    from pumice.model.queue import Queue
    from pumice.model.resources import Request
    from pumice.model.task import Task

_SEVERAL: Final = -1


class NoRoom:
    """The most and the least that any node has, resource by resource, once all that is being released is gone; true until some node changes."""

    __slots__ = ("_counted", "_least", "_most", "_position", "_roomiest", "_session", "_taken", "_told")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._taken = session.shortcuts.equal_jobs and session.independence.equals_share_answers
        self._position = -1
        kept = session.lasting.setdefault("roomiest", [])
        assert isinstance(kept, list)  # noqa: S101  nobody else has that name
        self._roomiest: list[int] = kept  # by resource, the row that had most of it, in this cycle or an earlier one
        self._most: list[int] = []
        self._least: list[int] = []
        self._told: dict[tuple[int, int], FitSummary] = {}
        self._counted: dict[tuple[int, int], int] = {}  # by shape and position, for how many there is room

    def failure(self, queue: Queue, job: Job, tasks: Sequence[Task]) -> FitSummary | None:
        """Say why equal tasks find no node if it is for want of room alone; None if they have to look, or nobody but nodes may refuse them."""
        if not self._taken or (lack := self._lack(tasks[0].shape.request)) is None:
            return None
        session = self._session
        if not session.allocatable.active and not session.pre_predicate.active and lack != _SEVERAL:
            return self._everywhere(lack)
        with session.attempt(job):
            if session.allocatable.active and session.allocatable(queue, subject.equal_tasks(tasks)) is not None:
                return None
            looked_for = subject.Subject(tasks[0], queue)
            if session.pre_predicate(looked_for) is not None:
                return None
            return session.evaluate(looked_for).failure(released=True) if lack == _SEVERAL else self._everywhere(lack)
        return None

    def is_too_large(self, task: Task) -> bool:
        """Tell whether a task asks for more of something than any node will have free."""
        return self._lack(task.shape.request) is not None

    def is_short(self, task: Task, count: int) -> bool:
        """Tell whether all nodes together will have too little room for so many equal tasks."""
        too_large = self.is_too_large(task)
        if too_large or count == 1:
            return too_large
        table = self._session.cluster.nodes
        key = (task.shape.serial, table.position)
        if key not in self._counted:
            asked = {column: amount for column, amount in task.shape.request.listed if amount}
            room = table.view().future_idle[:, list(asked)] // np.array(list(asked.values()))
            self._counted[key] = int(np.maximum(room.min(axis=1), 0).sum()) if asked else sys.maxsize
        return self._counted[key] < count

    def _lack(self, request: Request) -> int | None:
        """Return the resource that every node lacks before any other, several if not all lack the same first; None if a node may have enough."""
        table = self._session.cluster.nodes
        if self._position != table.position:
            if self._is_there(table, request):
                return None
            self._position = table.position
            room = table.view().future_idle
            self._roomiest[:] = room.argmax(axis=0).tolist() if table.count else []
            self._most = [int(room[row, column]) for column, row in enumerate(self._roomiest)]
            self._least = room.min(axis=0).tolist() if table.count else []
        most, least, first = self._most, self._least, True
        for column, needed in request.listed if most else ():
            if needed > most[column]:
                return column if first and column != PODS else _SEVERAL
            first = first and needed <= least[column]
        return None

    def _is_there(self, table: NodeTable, request: Request) -> bool:
        """Tell whether nodes that once had most of something have enough of it now: then nobody has to look at all nodes again after each placement."""
        rows, count = self._roomiest, table.count
        for column, needed in request.listed:
            if column >= len(rows) or rows[column] >= count or table.future_idle_at((rows[column], column)) < needed:
                return False
        return True

    def _everywhere(self, column: int) -> FitSummary:
        """Say that all nodes lack one thing."""
        cluster = self._session.cluster
        count = cluster.nodes.count
        if (column, count) not in self._told:
            lack = f"Insufficient {cluster.vocabulary.names[column]}"
            self._told[column, count] = summary(count, [(lack, count)])
        return self._told[column, count]
