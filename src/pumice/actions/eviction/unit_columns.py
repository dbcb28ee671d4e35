"""Units as columns of whole numbers, those of each node behind each other, in an order that plain comparisons of these numbers give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from numpy.typing import NDArray

    from pumice.framework.evaluation import Mask
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

# A loss is a whole number of any size; as columns it is cut into digits of so many bits, the highest first.
DIGIT = 50
# Priorities are whole numbers of so many bits.
PRIORITY = 32
HALF = 1 << PRIORITY - 1
_COLUMNS = ("alive", "priority", "breaks", "count", "loss", "freed", "job", "queue", "groups", "items")


class Item(msgspec.Struct, frozen=True, gc=False):
    """A unit on one node; its groups tell for whom the protections of queues have one answer."""

    priority: int
    breaks: bool
    count: int
    loss: int
    freed: Vector
    tasks: tuple[Task, ...]
    groups: int
    job: int
    queue: int


class UnitColumns:
    """The units of all nodes; the `log` holds the nodes that were laid out again, in order, and a new `epoch` begins whenever places in the columns have moved."""

    def __init__(self) -> None:
        self.epoch = 0
        self.log: list[int] = []

    def clear(self, nodes: int, width: int, bits: int) -> None:
        """Forget all units; there are so many nodes and resources, and losses of so many bits."""
        self.digits = -(-bits // DIGIT)
        self._allot(np.ones(nodes, dtype=np.int64), width)

    def _allot(self, sizes: Rows, width: int) -> None:
        """Make room for so many units on each node."""
        self.ends: Rows = np.cumsum(sizes)
        self.starts: Rows = self.ends - sizes
        length = int(sizes.sum())
        self.alive: Mask = np.zeros(length, dtype=np.bool_)
        self.priority: Rows = np.zeros(length, dtype=np.int64)
        self.breaks: Mask = np.zeros(length, dtype=np.bool_)
        self.count: Rows = np.zeros(length, dtype=np.int64)
        self.loss: Matrix = np.zeros((length, self.digits), dtype=np.int64)
        self.freed: Matrix = np.zeros((length, width), dtype=np.int64, order="F")
        self.job: Rows = np.zeros(length, dtype=np.int64)
        self.queue: Rows = np.zeros(length, dtype=np.int64)
        self.groups: Rows = np.zeros(length, dtype=np.int64)
        self.items: NDArray[np.object_] = np.full(length, None, dtype=np.object_)
        self._everywhere = (slice(None), self.starts, np.repeat(np.arange(len(sizes)), sizes))
        self.epoch += 1
        self.log.clear()

    def _widen(self, sizes: Rows) -> None:
        """Make room for more units, with all that there are in it."""
        before = {name: getattr(self, name) for name in _COLUMNS}
        starts, (_, _, segment) = self.starts, self._everywhere
        self._allot(sizes, self.freed.shape[1])
        at = np.arange(len(segment)) + (self.starts - starts)[segment]
        for name, values in before.items():
            getattr(self, name)[at] = values

    def write(self, laid: Mapping[int, Sequence[Item]]) -> None:
        """Lay out nodes again."""
        sizes = self.ends - self.starts
        crowded = {row: len(items) for row, items in laid.items() if len(items) > sizes[row]}
        if crowded:
            for row, count in crowded.items():
                sizes[row] = count + count // 2 + 1
            self._widen(sizes)
        places: list[int] = []
        for row, items in laid.items():
            start, end = int(self.starts[row]), int(self.ends[row])
            self.alive[start:end] = False
            self.items[start:end] = None
            places += range(start, start + len(items))
        self._enter(places, [item for items in laid.values() for item in items])
        self.log += laid

    def _enter(self, places: list[int], items: Sequence[Item]) -> None:
        """Write units into some places of the columns."""
        if not items:
            return
        at = np.array(places, dtype=np.int64)
        self.alive[at] = True
        self.priority[at] = [item.priority for item in items]
        self.breaks[at] = [item.breaks for item in items]
        self.count[at] = [item.count for item in items]
        digits = {loss: split(loss, self.digits) for loss in {item.loss for item in items}}
        self.loss[at] = [digits[item.loss] for item in items]
        # Pods of one shape give back the same vector.
        vectors = {id(item.freed): item.freed for item in items}
        numbers = dict(zip(vectors, range(len(vectors)), strict=True))
        self.freed[at] = np.array(list(vectors.values()))[[numbers[id(item.freed)] for item in items]]
        self.job[at] = [item.job for item in items]
        self.queue[at] = [item.queue for item in items]
        self.groups[at] = [item.groups for item in items]
        for place, item in zip(places, items, strict=True):
            self.items[place] = item

    def items_of(self, row: int) -> list[Item]:
        """Return the units of a node."""
        found: list[Item] = [
            item for item in self.items[self.starts[row] : self.ends[row]].tolist() if item is not None
        ]
        return found

    def spread(self, rows: Rows) -> tuple[Rows | slice, Rows, Rows]:
        """Return where the units of some nodes are, where each node's begin among them, and whose each of them is."""
        if len(rows) == len(self.starts):
            return self._everywhere
        starts, sizes = self.starts[rows], self.ends[rows] - self.starts[rows]
        begins = np.cumsum(sizes) - sizes
        segment = np.repeat(np.arange(len(rows)), sizes)
        return np.arange(len(segment)) - begins[segment] + starts[segment], begins, segment

    def having(self, uids: Container[str]) -> Mask:
        """Mark the units that hold one of some pods."""
        held = [item is not None and any(task.uid in uids for task in item.tasks) for item in self.items.tolist()]
        return np.array(held, dtype=np.bool_)


def code(job: int, pod: int) -> int:
    """Write the priorities of a job and of a pod as one number, so that numbers compare as they do."""
    return (job << PRIORITY) + pod + HALF


def decoded(number: int) -> tuple[int, int]:
    """Return the two priorities that a number stands for."""
    return number >> PRIORITY, (number & (2 * HALF - 1)) - HALF


def split(loss: int, digits: int) -> list[int]:
    """Cut a whole number into digits, the highest first."""
    return [loss >> DIGIT * place & (1 << DIGIT) - 1 for place in range(digits - 1, -1, -1)]


def join(digits: Sequence[int]) -> int:
    """Put a whole number together again."""
    total = 0
    for digit in digits:
        total = (total << DIGIT) + digit
    return total
