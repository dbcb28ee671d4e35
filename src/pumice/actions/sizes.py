"""Gangs whose members differ in size: where they do not fit in their own order, the largest may be tried first.

In the order of the job a small member may take the only node on which a large one would fit, and the gang would wait though it could start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.task import Task


def differ(tasks: Sequence[Task]) -> bool:
    """Tell whether some tasks ask for something else than others."""
    first = tasks[0].shape
    return any(task.shape is not first for task in tasks)


def largest_first(
    table: NodeTable, rows: Rows | slice, tasks: list[Task], need: int, *, released: bool
) -> list[Task] | None:
    """Reorder tasks (a stack, first one last) so that of the first `need` the largest come first; None if that cannot help.

    It can if they differ, and the rows have enough for them in sum. Who is needed stays the same.
    """
    needed, rest = tasks[-need:], tasks[:-need]
    shapes = {task.shape.serial: task.shape.request.vector for task in needed}
    if len(shapes) == 1:
        return None
    free = table.future_idle_at(rows) if released else table.idle_at(rows)
    if (np.maximum(free, 0).sum(axis=0) < sum(shapes[task.shape.serial] for task in needed)).any():
        return None
    offered = np.maximum(table.allocatable[rows].sum(axis=0), 1)
    share = {serial: float((vector / offered).max()) for serial, vector in shapes.items()}
    # Sorting is stable: among equals the order of tasks stays.
    ordered = rest + sorted(needed, key=lambda task: share[task.shape.serial])
    return None if ordered == tasks else ordered
