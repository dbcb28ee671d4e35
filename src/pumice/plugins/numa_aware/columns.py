"""The cells of all nodes as columns, with what pods hold that no agent has reported yet; only nodes that changed are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from pumice.api import kinds, names, nodeinfo
from pumice.model import statuses
from pumice.plugins.numa_aware import alignment, cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.evaluation import Mask
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

_HOLDING: Final = statuses.SETTLED | {statuses.Status.UNKNOWN} | statuses.GOING


class Decision(msgspec.Struct, frozen=True):
    """How many CPUs of each cell a pod was given, as the annotation has it: `{"numa": {"1": {"cpu": "4"}}}`."""

    numa: dict[str, dict[str, str]] = {}


_DECODER: Final = msgspec.json.Decoder(Decision)


def written(numbers: tuple[int, ...], taken: Vector) -> str:
    """Write a decision down."""
    held = {str(cell): {"cpu": str(int(count))} for cell, count in zip(numbers, taken, strict=False) if count}
    return msgspec.json.encode(Decision(numa=held)).decode()


def decided(text: str) -> Mapping[int, int]:
    """Read a decision; one that cannot be read gave nothing."""
    try:
        found = _DECODER.decode(text)
        return {int(cell): int(amounts.get("cpu", "0")) for cell, amounts in found.numa.items()}
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError):
        return {}


class Columns:
    """Total and free CPUs of each cell, a row per node; kept from cycle to cycle."""

    def __init__(self) -> None:
        self.masks = alignment.Masks(0)
        self.total: Matrix = np.zeros((0, 0), dtype=np.int64)
        self.free = self.total
        self.is_static: Mask = np.zeros(0, dtype=np.bool_)
        self.policies: list[str] = []
        self.strictness: Vector = np.zeros(0, dtype=np.int64)
        self.numbers: list[tuple[int, ...]] = []
        self.problems: dict[str, str] = {}
        self._structure = self._position = -1

    def update(self, cluster: Cluster) -> bool:
        """Bring the columns up to date; tells whether any node has cells."""
        known = cluster.objects.get(kinds.NUMATOPOLOGY.name)
        table = cluster.nodes
        if not known:
            self._structure = -1
            return False
        changed = table.rows_since(self._position) if self._structure == table.structure else None
        if changed is None:
            self._read_all(cluster)
        else:
            for row in changed:
                self._read(cluster, table.records[row])
        self._structure, self._position = table.structure, table.position
        return bool(self.is_static.any())

    def _read_all(self, cluster: Cluster) -> None:
        table = cluster.nodes
        self.masks = alignment.Masks(cells.MOST_CELLS)
        self.total = np.zeros((table.count, cells.MOST_CELLS), dtype=np.int64)
        self.free = self.total.copy()
        self.is_static = np.zeros(table.count, dtype=np.bool_)
        self.strictness = np.zeros(table.count, dtype=np.int64)
        self.policies = [""] * table.count
        self.numbers = [()] * table.count
        self.problems = {}
        for record in table.records[: table.count]:
            self._read(cluster, record)
        # Masks over as many cells as there are: most nodes have two, and each more doubles the work.
        width = max((len(each) for each in self.numbers), default=0)
        self.masks = alignment.Masks(width)
        self.total, self.free = self.total[:, :width].copy(), self.free[:, :width].copy()

    def _read(self, cluster: Cluster, record: NodeRecord) -> None:
        row = record.row
        self.total[row] = self.free[row] = 0
        self.is_static[row], self.policies[row], self.numbers[row], self.strictness[row] = False, "", (), 0
        self.problems.pop(record.name, None)
        found = cluster.objects[kinds.NUMATOPOLOGY.name].get(record.name)
        if not isinstance(found, nodeinfo.Numatopology):
            return
        try:
            known = cells.read(found)
        except cells.CellsError as error:
            self.problems[record.name] = str(error)
            return
        if len(known.numbers) > self.total.shape[1]:
            self._structure = -1  # wider than before: read anew by the next cycle
            return
        self.numbers[row], self.is_static[row], self.policies[row] = known.numbers, known.is_static, known.policy
        self.strictness[row] = alignment.STRICTNESS.get(known.policy, alignment.ANYTHING)
        self.total[row, : len(known.total)] = known.total
        self.free[row, : len(known.free)] = known.free
        for task in record.tasks.values():
            if task.uid not in known.known and task.status in _HOLDING:
                self._charge(cluster, task, row)

    def _charge(self, cluster: Cluster, task: Task, row: int) -> None:
        """Take off what a pod was given and no agent has reported yet."""
        text = cluster.with_bind.stamped(task, names.TOPOLOGY_DECISION)
        for cell, count in decided(text).items() if text else ():
            if cell in self.numbers[row]:
                at = self.numbers[row].index(cell)
                self.free[row, at] -= count
