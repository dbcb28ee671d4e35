"""What pods without GPUs may hold on each node that has GPUs, and what they hold there, as columns; only rows that changed are read again."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.api import names, quantity
from pumice.model import resources, selectors, statuses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import meta
    from pumice.framework.evaluation import Mask
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import Nodes
    from pumice.model.records import NodeRecord
    from pumice.model.resources import Matrix
    from pumice.model.task import Task

PERCENTAGE: Final = "percentage-"
_WHOLE: Final = 100
_REMEMBERED: Final = 10_000


class QuotaError(ValueError):
    """An amount or a percentage that cannot be read, and why."""


def amount(name: str, text: str) -> int:
    """Read an amount of a resource in the units of the model."""
    try:
        found = quantity.scaled(text, resources.factor(name))
    except quantity.QuantityError as error:
        raise QuotaError(str(error)) from None
    if found < 0:
        raise QuotaError(f"{text!r} is negative")
    return found


def percentage(text: str) -> Fraction:
    """Read a percentage above 0 and up to 100."""
    try:
        found = Fraction(text.strip()) if len(text) <= 20 else Fraction(0)
    except (ValueError, ZeroDivisionError):
        raise QuotaError(f"{text!r:.40} is no percentage") from None
    if not 0 < found <= _WHOLE:
        raise QuotaError(f"{text!r:.40} is not above 0 and at most {_WHOLE}")
    return found


class Stated:
    """What the configuration says: whose nodes and pods are meant, and how much they may hold."""

    def __init__(
        self,
        patterns: Iterable[str],
        limited: tuple[str, ...],
        amounts: Mapping[str, str],
        percentages: Mapping[str, str],
        selector: meta.LabelSelector | None,
    ) -> None:
        self.names = limited
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._amounts = {name: amount(name, text) for name, text in amounts.items()}
        self._percentages = {name: percentage(text) for name, text in percentages.items()}
        self._selector = selector
        self._gpus: dict[str, bool] = {}
        self._without: dict[int, bool] = {}  # by the number of a shape

    def is_gpu(self, name: str) -> bool:
        """Tell whether a resource is one of GPUs."""
        known = self._gpus.get(name)
        if known is None:
            known = self._gpus[name] = any(pattern.search(name) for pattern in self._patterns)
        return known

    def concerns(self, task: Task) -> bool:
        """Tell whether a pod is one of those that are limited: without GPUs, and with the labels that are asked for."""
        shape = task.shape
        without = self._without.get(shape.serial)
        if without is None:
            if len(self._without) >= _REMEMBERED:
                self._without.clear()
            asked = shape.request.amounts.items()
            without = self._without[shape.serial] = not any(units and self.is_gpu(name) for name, units in asked)
        return without and (self._selector is None or selectors.matches(self._selector, task.pod.metadata.labels))

    def quota(self, name: str, allocatable: int, annotations: Mapping[str, str], problems: list[str]) -> int:
        """Say how much of a resource may be held on a node: as its annotations say, else as the configuration does, else all of it."""
        for key in (f"{names.CROSS_QUOTA}{name}", f"{names.CROSS_QUOTA}{PERCENTAGE}{name}"):
            text = annotations.get(key, "").strip()
            if not text:
                continue
            try:
                if key.startswith(f"{names.CROSS_QUOTA}{PERCENTAGE}"):
                    return int(allocatable * percentage(text) / _WHOLE)
                return amount(name, text)
            except QuotaError as error:
                problems.append(f"annotation {key}: {error}; the configuration counts")
        if name in self._amounts:
            return self._amounts[name]
        share = self._percentages.get(name)
        return allocatable if share is None else int(allocatable * share / _WHOLE)


class Quotas:
    """The columns: a row per node, a column per limited resource that some node offers."""

    def __init__(self, stated: Stated) -> None:
        self.stated = stated
        self.names: list[str] = []
        self.columns: list[int] = []
        self.has_gpus: Mask = np.zeros(0, dtype=np.bool_)
        self.limits: Matrix = np.zeros((0, 0), dtype=np.int64)
        self.problems: dict[str, list[str]] = {}
        self._held = self._going = self.limits
        self._gpu_columns: list[int] = []
        self._state: tuple[int, int] = (-1, -1)
        self._position = -1

    def update(self, cluster: Cluster) -> bool:
        """Bring the columns up to date; tells whether any node has GPUs."""
        table, vocabulary = cluster.nodes, cluster.vocabulary
        state = (table.structure, len(vocabulary))
        changed = table.rows_since(self._position) if state == self._state else None
        if changed is None:
            known = vocabulary.columns
            self.names = [name for name in self.stated.names if name in known]
            self.columns = [known[name] for name in self.names]
            self._gpu_columns = [column for name, column in known.items() if self.stated.is_gpu(name)]
            shape = (table.count, len(self.columns))
            self.limits, self._held, self._going = (np.zeros(shape, dtype=np.int64) for _ in range(3))
            self.has_gpus = np.zeros(table.count, dtype=np.bool_)
            self.problems = {}
            changed = list(range(table.count))
        for row in changed:
            self._read(table.records[row], table.allocatable[row].tolist())
        self._state, self._position = state, table.position
        return bool(self.has_gpus.any())

    def held(self, nodes: Nodes) -> Matrix:
        """Return what pods without GPUs hold on the nodes of a view, without those on the way out if these count as gone."""
        held: Matrix = self._held[nodes.index]
        return held - self._going[nodes.index] if nodes.released else held

    def _read(self, record: NodeRecord, allocatable: list[int]) -> None:
        row = record.row
        self.problems.pop(record.name, None)
        self.has_gpus[row] = any(allocatable[column] > 0 for column in self._gpu_columns)
        self._held[row] = self._going[row] = 0
        if not self.has_gpus[row]:
            return
        annotations = record.object.metadata.annotations if record.object is not None else {}
        problems: list[str] = []
        for place, (name, column) in enumerate(zip(self.names, self.columns, strict=True)):
            self.limits[row, place] = self.stated.quota(name, allocatable[column], annotations, problems)
        if problems:
            self.problems[record.name] = problems
        for task in record.tasks.values():
            if self.stated.concerns(task):
                amounts = task.shape.request.vector[self.columns]
                self._held[row] += amounts
                if task.status in statuses.GOING:
                    self._going[row] += amounts
