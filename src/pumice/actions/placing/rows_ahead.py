"""Rows for tasks of several jobs that are placed one after the other: those of equal tasks are chosen together."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pumice.framework import selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.task import Task


class RowsAhead:
    """Chooses rows for tasks that are asked about in their order, each being placed on free room before the next one is asked about."""

    __slots__ = ("_evaluation", "_position", "_rows", "_session", "_tasks")

    def __init__(self, session: Session, tasks: Sequence[Task]) -> None:
        self._session = session
        self._tasks = tasks
        self._position = 0
        # Of whom rows are left over, the last one first: whoever shares an evaluation gets the same answers.
        self._evaluation: Evaluation | None = None
        self._rows: list[int] = []

    def row(self, looked_for: Subject) -> int | None:
        """Return the row of the next task, None if no node takes it."""
        evaluation = self._session.evaluate(looked_for)
        if not self._rows or evaluation is not self._evaluation:
            self._evaluation = evaluation
            table = self._session.cluster.nodes
            self._rows = selection.choose(evaluation, table, self._alike(), released=False)[::-1]
        self._position += 1
        return self._rows.pop() if self._rows else None

    def _alike(self) -> int:
        """Count the tasks from the next one on that look like it; a sampler looks at other nodes for each."""
        if self._session.evaluator.sampler is not None:
            return 1
        first = self._tasks[self._position]
        following = itertools.islice(self._tasks, self._position, None)
        return sum(1 for _ in itertools.takewhile(lambda t: t.shape is first.shape and t.bond is first.bond, following))
