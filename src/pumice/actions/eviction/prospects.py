"""Which hyper-nodes are worth a plan, in plain numbers: only a few are looked at, and those must not be wasted on hopeless ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import asking

if TYPE_CHECKING:
    from pumice.actions.eviction.rules import Rules
    from pumice.framework.evaluation import Mask
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Vector


def worthwhile(session: Session, rules: Rules, job: Job) -> Mask | None:
    """Mark the hyper-nodes that would have enough in sum with everybody gone who may go; None if nobody asks."""
    tasks = asking.claimants(session, job)
    if not tasks:
        return None
    table = session.cluster.nodes
    n = table.rows
    free = table.allocatable[n] - table.used[n] + table.releasing[n] - table.pipelined[n]
    room = np.maximum(free, 0)
    leaving: dict[int, tuple[Vector, list[int]]] = {}
    for source in rules.sources(tasks[0]):
        for task in source.tasks.values():
            # Where victims are offered node by node, whoever is in their gang may go with them.
            if task.node is not None and (rules.node_by_node or rules.may_go(tasks[0], task)):
                leaving.setdefault(task.shape.serial, (task.shape.request.vector, []))[1].append(task.node.row)
    for vector, rows in leaving.values():
        np.add.at(room, np.array([row for row in rows if row < len(room)], dtype=np.int64), vector)
    sums, least = session.topology.tree.sums(room), asking.least_need(job, tasks)
    enough: Mask = np.logical_and.reduce(sums >= least, axis=1)
    return enough
