"""What many events change in the sums of nodes, jobs and queues, gathered and entered at once: the cost of calling numpy is shared.

A change and its opposite cancel out before they reach a column: a pod that was bound and now runs takes the same room on the same node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.model import statuses
from pumice.model.counted import COLUMNS, SUMMED
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.model.counted import Changes
    from pumice.model.nodes import NodeTable
    from pumice.model.resources import Matrix
    from pumice.model.shape import Shape
    from pumice.model.sums import QueueSums, Sums

    Times = dict[tuple[int, Shape], int]


class GatheredSums:
    """How many more tasks of each shape there are in each row."""

    __slots__ = ("_jobs", "_nodes", "_queues", "_touched")

    def __init__(self) -> None:
        self._nodes: dict[str, Times] = {}
        self._jobs: dict[str, Times] = {}
        self._queues: dict[str, Times] = {}
        self._touched: list[int] = []

    def add(  # noqa: PLR0917  as `Accounting` has them, with the rows of job and queue
        self,
        shape: Shape,
        rows: Sequence[int],
        status: Status,
        sign: int,
        tasks: int,
        job_row: int | None,
        queue_row: int | None,
    ) -> None:
        """Take in what equal tasks contribute in a status."""
        for row in rows:
            columns = COLUMNS[status]
            for name in columns:
                _count(self._nodes, name, row, shape, sign)
            if columns:
                self._touched.append(row)
            if job_row is None and status in statuses.PLACED and status != Status.RELEASING:
                _count(self._nodes, "foreign", row, shape, sign)
        name = SUMMED.get(status, "")
        if name and job_row is not None and queue_row is not None:
            _count(self._jobs, name, job_row, shape, sign * tasks)
            _count(self._queues, name, queue_row, shape, sign * tasks)

    def enter(self, nodes: NodeTable, jobs: Sums, queues: QueueSums) -> None:
        """Add everything to the columns."""
        for table, gathered in ((nodes, self._nodes), (jobs, self._jobs), (queues, self._queues)):
            for name, times in gathered.items():
                _enter(getattr(table, name), times, zeros=name == "non_zero")
        if self._touched:
            nodes.touch_all(self._touched)

    def clear(self) -> None:
        """Forget what was gathered."""
        self._nodes, self._jobs, self._queues, self._touched = {}, {}, {}, []


class Moved:
    """Tasks that go from one status to another together, by their shapes: what that changes in the sums."""

    __slots__ = ("_non_zero", "_requests")

    def __init__(self, shapes: Sequence[Shape]) -> None:
        numbers: dict[Shape, int] = {}
        places = [numbers.setdefault(shape, len(numbers)) for shape in shapes]
        self._requests = np.array(_vectors(numbers, zeros=False), dtype=np.int64)[places]
        self._non_zero = np.array(_vectors(numbers, zeros=True), dtype=np.int64)[places]

    def enter_nodes(self, nodes: NodeTable, rows: Sequence[int], changes: Changes) -> None:
        """Change columns of the nodes in rows, one for each task."""
        for name, sign in changes:
            self._enter(getattr(nodes, name), rows, sign, zeros=name == "non_zero")
        nodes.touch_all(rows)

    def enter_sums(self, sums: Sums, rows: Sequence[int], changes: Changes) -> None:
        """Change sums of jobs or queues in rows, one for each task."""
        for name, sign in changes:
            self._enter(getattr(sums, name), rows, sign, zeros=False)

    def _enter(self, matrix: Matrix, rows: Sequence[int], sign: int, *, zeros: bool) -> None:
        (np.add if sign > 0 else np.subtract).at(matrix, rows, self._non_zero if zeros else self._requests)


def _count(gathered: dict[str, Times], name: str, row: int, shape: Shape, times: int) -> None:
    """Count tasks in a row; what comes to nothing is dropped when it is entered."""
    column = gathered.get(name)
    if column is None:
        column = gathered[name] = {}
    key = (row, shape)
    column[key] = column.get(key, 0) + times


def _enter(matrix: Matrix, times: Times, *, zeros: bool) -> None:
    """Add shapes, so many times each, to rows; with `zeros`, what stands for them in scores."""
    found = [(row, shape, count) for (row, shape), count in times.items() if count]
    if not found:
        return
    numbers: dict[Shape, int] = {}
    shapes = [numbers.setdefault(shape, len(numbers)) for _, shape, _ in found]
    vectors = np.array(_vectors(numbers, zeros=zeros), dtype=np.int64)
    counts = np.array([count for _, _, count in found], dtype=np.int64)
    rows = np.array([row for row, _, _ in found], dtype=np.int64)
    np.add.at(matrix, rows, vectors[shapes] * counts[:, None])


def _vectors(shapes: Iterable[Shape], *, zeros: bool) -> list[object]:
    return [shape.non_zero if zeros else shape.request.vector for shape in shapes]
