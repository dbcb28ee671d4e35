"""Gangs whose members differ in size: where they do not fit in their own order, the largest may be tried first.

In the order of the job a small member may take the only node on which a large one would fit, and the gang would wait though it could start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.placing import minimum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.model.job import SubJob
    from pumice.model.nodes import Rows
    from pumice.model.resources import Vector
    from pumice.model.task import Task


def differ(tasks: Sequence[Task]) -> bool:
    """Tell whether some tasks ask for something else than others."""
    first = tasks[0].shape
    return any(task.shape is not first for task in tasks)


def reordered(
    turn: Turn, rows: Rows | slice, tasks: Sequence[Task], part: SubJob | None, *, released: bool
) -> list[Task] | None:
    """Return the tasks of a job, or of a part of it, with the largest first of those that its minimum names; None if that cannot help.

    It can if they differ, and the rows have enough for them in sum. Who is named stays the same, but for those that fit nowhere even alone.
    """
    table = turn.session.cluster.nodes
    free = table.future_idle_at(rows) if released else table.idle_at(rows)
    possible = _fitting_alone(free, tasks)
    listed, count = minimum.named_first(turn.session, turn.job, possible, part)
    named = listed[:count]
    shapes = {task.shape.serial: task.shape.request.vector for task in named}
    if len(shapes) < 2 or (np.maximum(free, 0).sum(axis=0) < sum(shapes[task.shape.serial] for task in named)).any():
        return None
    offered = np.maximum(table.allocatable[rows].sum(axis=0), 1)
    share = {serial: float((vector / offered).max()) for serial, vector in shapes.items()}
    # Sorting is stable: among equals the order of tasks stays.
    largest = sorted(named, key=lambda task: -share[task.shape.serial])
    return None if largest == named else [*largest, *listed[count:]]


def _fitting_alone(free: Vector, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks for which some row has room."""
    shapes = {task.shape.serial: task.shape.request for task in tasks}
    fitting = {
        serial: bool((free[:, request.asked] >= request.vector[request.asked]).all(axis=1).any())
        for serial, request in shapes.items()
    }
    return [task for task in tasks if fitting[task.shape.serial]]
