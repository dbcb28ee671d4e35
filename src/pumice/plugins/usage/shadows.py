"""What pods will use that nobody has measured yet, by node, followed through a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import quantity
from pumice.model.statuses import Status
from pumice.model.task import instant
from pumice.plugins.sharing.loads import FULL

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.model.nodes import NodeRecord, NodeTable, Rows
    from pumice.model.resources import Matrix
    from pumice.model.task import Task
    from pumice.plugins.sharing.loads import Loads
    from pumice.plugins.usage.estimates import Estimator

_ON_THEIR_WAY = frozenset({Status.ALLOCATED, Status.BINDING, Status.BOUND})


class Recent:
    """Pods that are no part of the measured load yet, by the row of their node; only nodes that changed, or have some, are looked at again."""

    def __init__(self) -> None:
        self.by_row: dict[int, list[Task]] = {}
        self.capacity: Matrix = np.zeros((0, 2), dtype=np.int64)  # millicores and bytes of each node as it was built
        self._structure = self._position = -1

    def update(self, table: NodeTable, now: int, interval: int) -> int | None:
        """Find them as of now, and return when the first of them will have run for long enough."""
        changed = None if self._structure != table.structure else table.rows_since(self._position)
        rows = range(table.count) if changed is None else sorted({*changed, *self.by_row})
        self._structure, self._position = table.structure, table.position
        if changed is None:
            self.by_row, self.capacity = {}, np.zeros((table.count, 2), dtype=np.int64)
        ends: list[int] = []
        for row in rows:
            self.capacity[row] = _capacity(table.records[row])
            found = [task for task in table.records[row].tasks.values() if _is_unmeasured(task, now, interval)]
            ends += [_started(task) + interval for task in found if task.status == Status.RUNNING and _started(task)]
            self.by_row.pop(row, None)
            if found:
                self.by_row[row] = found
        return min(ends, default=None)


def _started(task: Task) -> int:
    return instant(task.pod.status.start_time)


def _is_unmeasured(task: Task, now: int, interval: int) -> bool:
    """Tell whether a pod has not run for long enough to be part of the measured load."""
    if task.status in _ON_THEIR_WAY:
        return True
    return task.status == Status.RUNNING and (not _started(task) or _started(task) + interval > now)


class Shadows:
    """Millicores and bytes that are expected beyond the measured load, a row per node; what was added for a pod is taken back as it was added."""

    def __init__(
        self, session: Session, loads: Loads, recent: Recent, estimator: Estimator, weights: tuple[int, int]
    ) -> None:
        self._loads = loads
        self._estimator = estimator
        self._weights = np.array(weights, dtype=np.float64)
        table = session.cluster.nodes
        self._capacity = recent.capacity
        self.expected: Matrix = np.zeros((table.count, 2), dtype=np.int64)
        self._added: dict[str, tuple[int, tuple[int, int]]] = {}
        for row, tasks in recent.by_row.items():
            for task in tasks:
                self._add(task, table.records[row])

    def follow(self, run: Run, sign: int) -> None:
        """Expect the use of pods that are placed, and no longer that of pods that are taken back."""
        for task, target in zip(run.tasks, run.targets, strict=True):
            if sign < 0:
                self._take_back(task)
            elif target is not None and target.row < len(self.expected):
                self._add(task, target)

    def _add(self, task: Task, record: NodeRecord) -> None:
        if task.uid in self._added:
            return
        load = float(self.weighted(np.array([record.row]))[0])
        units = self._estimator.estimate(task, risky=load >= self._estimator.told.risk_threshold)
        self._added[task.uid] = record.row, units
        self.expected[record.row] += units

    def _take_back(self, task: Task) -> None:
        added = self._added.pop(task.uid, None)
        if added is not None:
            row, units = added
            self.expected[row] -= units

    def composite(self, rows: Rows) -> Floats:
        """Return how busy nodes will be, cpu and memory each between 0 and 1: measured load and what is expected beside it."""
        measured = np.stack((self._loads.cpu[rows], self._loads.memory[rows]), axis=1) / FULL
        room = self._capacity[rows]
        expected = np.divide(self.expected[rows], room, out=np.zeros_like(measured), where=room > 0)
        both: Floats = np.clip(measured + expected, 0.0, 1.0)
        return both

    def weighted(self, rows: Rows) -> Floats:
        """Return the mean of both by their weights; 0 where neither counts."""
        total = self._weights.sum()
        if not total:
            return np.zeros(len(rows))
        mean: Floats = self.composite(rows) @ self._weights / total
        return mean


def _capacity(record: NodeRecord) -> tuple[int, int]:
    """Return millicores and bytes of a node, whatever is set aside of them."""
    if record.object is None:
        return 0, 0
    amounts = record.object.status.capacity or record.object.status.allocatable
    return _units(amounts.get("cpu", 0), 1000), _units(amounts.get("memory", 0), 1)


def _units(text: quantity.QuantityText, scale: int) -> int:
    try:
        return max(0, quantity.scaled(text, scale))
    except quantity.QuantityError:
        return 0
