"""proportion as kube-batch had it: weights only, with its tolerances, for files that follow its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import resources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.framework.session import Session
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector, Vocabulary
    from pumice.model.task import Task

MEMORY_TOLERANCE = 10 * 2**20
TOLERANCE = 10  # thousandths: a hundredth of a core, of a device


def register(session: Session, deserved: Matrix, share: Callable[[Queue], float]) -> None:
    """Register the three functions that kube-batch's proportion had."""
    sums, vocabulary, queues = session.cluster.queue_sums, session.cluster.vocabulary, session.cluster.queues
    tolerance = tolerances(vocabulary)

    def overused(queue: Queue) -> str | None:
        held = sums.held(queue.row)
        if not covered(deserved[queue.row], held, tolerance):
            return None
        pairs = zip(vocabulary.names, held.tolist(), deserved[queue.row].tolist(), strict=True)
        told = [f"{name} {resources.shown(name, a)} of {resources.shown(name, b)}" for name, a, b in pairs if b]
        return f"allocated {', '.join(told)} deserved" if told else "it deserves nothing"

    def above(_claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        left: dict[str, Vector] = {}
        offered = []
        for task in candidates:
            queue = queues.get(task.job.queue) if task.job is not None else None
            if queue is None:
                continue
            if queue.name not in left:
                left[queue.name] = sums.held(queue.row)
            if _all_less(left[queue.name], task.shape.request.vector):
                continue
            # Taken off whether or not it is offered, as kube-batch did (test_legacy_candidates_count_even_if_not_offered).
            left[queue.name] = left[queue.name] - task.shape.request.vector
            if covered(deserved[queue.row], left[queue.name], tolerance):
                offered.append(task)
        return offered

    session.queue_order.add(share)
    session.overused.add(overused)
    session.reclaimable.add(above)


def tolerances(vocabulary: Vocabulary) -> Vector:
    """Return by how much an amount may be missed and still count as reached."""
    row = [TOLERANCE if resources.factor(name) > 1 else 0 for name in vocabulary.names]
    row[resources.MEMORY] = MEMORY_TOLERANCE
    return np.array(row, dtype=np.int64)


def covered(left: Vector, right: Vector, tolerance: Vector) -> bool:
    """Tell whether the first amount is at most the second, within the tolerance, in every resource but pods."""
    fits = (left <= right) | (left - right < tolerance)
    fits[resources.PODS] = True
    return bool(fits.all())


def _all_less(left: Vector, right: Vector) -> bool:
    less = (left < right) | ((left == 0) & (right == 0))
    less[resources.PODS] = True
    return bool(less.all())
