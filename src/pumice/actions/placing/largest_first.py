"""Gangs whose members differ in size: where they do not fit in their own order, the largest may be tried first.

In the order of the job a small member may take the only node on which a large one would fit, and the gang would wait though it could start. Largest is meant by the largest share of the cluster, with
and without a look at what else those ask for that tie in it, and then by each requested dimension in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.placing import minimum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pumice.actions.placing.turns import Turn
    from pumice.model.job import SubJob
    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.resources import Vector
    from pumice.model.task import Task


def differ(tasks: Sequence[Task]) -> bool:
    """Tell whether some tasks ask for something else than others."""
    first = tasks[0].shape
    return any(task.shape is not first for task in tasks)


def reordered(
    turn: Turn, rows: Rows | slice, tasks: Sequence[Task], part: SubJob | None, *, released: bool
) -> Iterator[list[Task]]:
    """Give the tasks of a job, or of a part of it, with the largest first of those that its minimum names, in each order that may help.

    It may if they differ, and the rows have enough for them in sum. Who is named stays the same, but for those that fit nowhere even alone.
    """
    table = turn.session.cluster.nodes
    free = table.future_idle_at(rows) if released else table.idle_at(rows)
    possible = _fitting_alone(free, tasks)
    listed, count = minimum.named_first(turn.session, turn.job, possible, part)
    named = listed[:count]
    shapes = {task.shape.serial: task.shape.request.vector for task in named}
    if len(shapes) < 2 or (np.maximum(free, 0).sum(axis=0) < sum(shapes[task.shape.serial] for task in named)).any():
        return
    for largest in by_size(table, rows, named):
        yield [*largest, *listed[count:]]


def by_size(table: NodeTable, rows: Rows | slice, tasks: Sequence[Task]) -> list[list[Task]]:
    """Return tasks in every order by size that is not the one they have; among equals the order of tasks stays."""
    offered = np.maximum(table.allocatable[rows].sum(axis=0), 1)
    shares = {task.shape.serial: task.shape.request.vector / offered for task in tasks}
    found: list[list[Task]] = []
    for key in _keys(shares):
        ranks = [key[task.shape.serial] for task in tasks]
        order = [tasks[position] for position in sorted(range(len(tasks)), key=ranks.__getitem__)]
        if order != tasks and order not in found:
            found.append(order)
    return found


def _keys(shares: Mapping[int, Vector]) -> Iterator[dict[int, tuple[float, ...]]]:
    """Give the keys to sort shapes by, one after the other."""
    largest = {serial: -float(share.max()) for serial, share in shares.items()}
    asked = np.flatnonzero(np.array(list(shares.values())).any(axis=0)).tolist()
    yield {serial: (largest[serial],) for serial in shares}
    yield {serial: (largest[serial], *(-share[asked]).tolist()) for serial, share in shares.items()}
    for column in asked:
        yield {serial: (-float(share[column]), largest[serial]) for serial, share in shares.items()}


def _fitting_alone(free: Vector, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks for which some row has room."""
    shapes = {task.shape.serial: task.shape.request for task in tasks}
    fitting = {
        serial: bool((free[:, request.asked] >= request.vector[request.asked]).all(axis=1).any())
        for serial, request in shapes.items()
    }
    return [task for task in tasks if fitting[task.shape.serial]]
