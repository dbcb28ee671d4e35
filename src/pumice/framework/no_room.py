"""Who asks for more than any node will have free need not look for a node: the machinery of a turn costs ten times what the answer does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.model.task import Task


class NoRoom:
    """The most that any node has, resource by resource, once all that is being released is gone; true until some node changes."""

    __slots__ = ("_most", "_position", "_session", "_taken")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._taken = session.shortcuts.equal_jobs and session.independence.equals_share_answers
        self._position = -1
        self._most: Vector | None = None

    def failure(self, queue: Queue, job: Job, tasks: Sequence[Task]) -> FitSummary | None:
        """Say why equal tasks find no node if it is for want of room alone; None if they have to look, or nobody but nodes may refuse them."""
        if not self._taken or not self.is_too_large(tasks[0]):
            return None
        session = self._session
        with session.attempt(job):
            if session.allocatable.active and session.allocatable(queue, subject.equal_tasks(tasks)) is not None:
                return None
            looked_for = subject.Subject(tasks[0], queue)
            if session.pre_predicate(looked_for) is not None:
                return None
            return session.evaluate(looked_for).failure(released=True)
        return None

    def is_too_large(self, task: Task) -> bool:
        """Tell whether a task asks for more of something than any node will have free."""
        table = self._session.cluster.nodes
        if self._most is None or self._position != table.position:
            if not table.count:
                return False
            self._most, self._position = table.view(released=True).future_idle.max(axis=0), table.position
        request = task.shape.request
        return bool((self._most[request.asked] < request.needed).any())
