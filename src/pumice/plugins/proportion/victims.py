"""Whom proportion lets be reclaimed: pods of queues that hold more than they deserve, down to what is guaranteed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.reasons import OfQueue
from pumice.model import resources
from pumice.plugins.sharing.gang_units import Units

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task


class Dues:
    """What queues are due in one cycle, and which of them hold no more: that is found out once until a step changes what somebody holds."""

    def __init__(self, cluster: Cluster, due: Callable[[], Matrix]) -> None:
        self._cluster = cluster
        self._sums = cluster.queue_sums
        self._of_all = due
        self._read = -1
        self._kept: dict[int, str | None] = {}

    def of(self, queue: Queue) -> Vector:
        """Return what a queue is due."""
        due: Vector = self._of_all()[queue.row]
        return due

    def keeps(self, queue: Queue) -> str | None:
        """Say that a queue holds no more than it is due, as things stand; None if it holds more of something."""
        if self._read != len(self._sums.changes):
            self._read = len(self._sums.changes)
            self._kept.clear()
        if queue.row not in self._kept:
            self._kept[queue.row] = self.is_kept(queue, self._sums.held(queue.row))
        return self._kept[queue.row]

    def is_kept(self, queue: Queue, held: Vector) -> str | None:
        """Say that a queue would be due all of some amounts; None if it would not."""
        due = self.of(queue)
        # Lists of a few resources are looked through sooner than arrays.
        if True in (held > due).tolist():
            return None
        numbers = told(self._cluster.vocabulary.names, held, due)
        return OfQueue(f"queue {queue.name} holds no more than it deserves: {numbers}")


class Victims:
    """The victim rules of one question: what queues hold with the victims accepted so far gone."""

    def __init__(self, cluster: Cluster, dues: Dues, guarantee: Matrix, *, whole: bool) -> None:
        self._cluster = cluster
        self._dues = dues
        self._guarantee = guarantee
        self._units = Units(whole=whole)
        self._left: dict[str, Vector] = {}

    def judge(self, task: Task) -> str | None:
        """Accept the next candidate, or say why it must stay; a gang that goes whole is judged once."""
        queue = self._cluster.queues.get(task.job.queue) if task.job is not None else None
        if queue is None:
            return f"{task.key} is in no queue"
        if self._units.is_gone(task):
            return None
        held = self._left.get(queue.name)
        kept = self._dues.keeps(queue) if held is None else self._dues.is_kept(queue, held)
        if kept is not None:
            return kept
        held = self._cluster.queue_sums.held(queue.row) if held is None else held
        unit = self._units.unit(task)
        amounts: Vector = (
            task.shape.request.vector
            if len(unit) == 1
            else np.sum([each.shape.request.vector for each in unit], axis=0)
        )
        guarantee, left = self._guarantee[queue.row], held - amounts
        if True in ((amounts > 0) & (left < guarantee)).tolist():
            numbers = told(self._cluster.vocabulary.names, left, guarantee, "guaranteed")
            return f"queue {queue.name} would hold less than is guaranteed to it: {numbers}"
        self._left[queue.name] = left
        self._units.take(unit)
        return None


def told(names: Sequence[str], held: Vector, bound: Vector, word: str = "deserved") -> str:
    """Write what a queue holds of what it deserves."""
    return _told(tuple(zip(names, held.tolist(), bound.tolist(), strict=True)), word)


@functools.lru_cache(maxsize=256)
def _told(numbers: tuple[tuple[str, int, int], ...], word: str) -> str:
    """Write it once: of one queue the same is said of every pod that it keeps."""
    parts = [
        f"{name} {resources.shown(name, have)} of {resources.shown(name, due)}"
        for name, have, due in numbers
        if have or due
    ]
    return f"allocated {', '.join(parts)} {word}" if parts else "it deserves nothing of what the nodes offer"
