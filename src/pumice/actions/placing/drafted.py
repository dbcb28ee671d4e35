"""Placing tasks of different shapes together: nodes are drafted for all of them, each as if those before it were placed, and then they are placed in one go.

Whatever is out of the ordinary (a plugin that names the node, refuses placements or has to hear of each before the next) leaves tasks to be placed one by one, as does whatever has changed its mind
by the time they are placed.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pumice.framework import subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.queue import Queue
    from pumice.model.task import Task


def are_usual(session: Session) -> bool:
    """Tell whether nodes are chosen by scores alone, and whoever follows placements can be told of many at once."""
    return not (session.best_node.active or session.handlers_may_refuse or session.handlers_look_around)


def place(session: Session, statement: Statement, queue: Queue, tasks: Sequence[Task]) -> int:
    """Place the first of some tasks on free room, each where it would go alone after those before it; returns how many, none if they have to be placed one by one.

    They have to be settled (`Cluster.settle`), or taken back (`Statement.take_back`).
    """
    if len(tasks) < 2 or not are_usual(session):
        return 0
    asking = [subject.Subject(task, queue) for task in itertools.takewhile(_is_usual, tasks)]
    asking = list(itertools.takewhile(lambda each: _is_welcome(session, each), asking))
    blocks, table = session.evaluator.blocks, session.cluster.nodes
    rows = blocks.draft(asking)
    count = len(rows)
    if count < 2:
        return 0
    mark = statement.checkpoint()
    if not statement.allocate_together(tasks[:count], [table.records[row] for row in rows]):
        return 0
    # Who has nothing to say before and after all of them are placed had nothing to say in between.
    if all(_is_welcome(session, each) for each in asking[:count]) and blocks.stand_alone(asking[:count]):
        return count
    statement.take_back(mark, tasks[:count])
    return 0


def _is_usual(task: Task) -> bool:
    return not (task.nominated or task.gated or task.shape.constraints.has_volumes)


def _is_welcome(session: Session, asking: subject.Subject) -> bool:
    session.breakdowns.trying = asking.job
    return session.pre_predicate(asking) is None
