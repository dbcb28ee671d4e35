"""Buckets: the tasks of a job that belong together by the affinities of their roles, built once and followed through placements.

A task joins the bucket where most of the roles it is drawn to, and fewest of those it shuns, are. One heap per role holds the buckets by that score, so that building
costs the number of tasks times that of roles, whatever the number of buckets. A placement moves a task from waiting to placed, an undo moves it back; the bucket
stays the same.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from pumice.api import names
from pumice.model import resources, statuses
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.framework.runs import Run
    from pumice.model.task import Task

SELF_ANTI, INTER_AFFINITY, SELF_AFFINITY, INTER_ANTI = 4, 3, 2, 1
MIB = 2**20
PLACED = statuses.ALLOCATED_LIKE | {Status.PIPELINED}


class VoidTopologyError(ValueError):
    """A topology that cannot be meant: which annotation, and what is wrong with it."""


def role_of(task: Task) -> str:
    """Return the role of a task: as in Volcano that of its annotation alone."""
    return task.pod.metadata.annotations.get(names.TASK_SPEC, "")


class Roles:
    """What the roles of a job are to each other."""

    __slots__ = ("affine", "anti", "priority", "rank")

    def __init__(self, annotations: Mapping[str, str], known: Mapping[str, object]) -> None:
        self.affine: dict[str, dict[str, None]] = {}
        self.anti: dict[str, dict[str, None]] = {}
        self.priority: dict[str, int] = {}
        for group in _groups(annotations, names.TASK_TOPOLOGY_AFFINITY, known):
            self._relate(self.affine, group, SELF_AFFINITY, INTER_AFFINITY)
        for group in _groups(annotations, names.TASK_TOPOLOGY_ANTI_AFFINITY, known):
            self._relate(self.anti, group, SELF_ANTI, INTER_ANTI)
        order = [role for group in _groups(annotations, names.TASK_TOPOLOGY_TASK_ORDER, known) for role in group]
        # The order that the user gave comes first, roles that it does not name last.
        self.rank = {role: order.index(role) if role in order else len(order) for role in known}

    def _relate(self, relation: dict[str, dict[str, None]], group: Sequence[str], alone: int, together: int) -> None:
        """Relate the roles of a group to each other, one that stands alone to itself."""
        for role in group:
            others = group if len(group) == 1 else [other for other in group if other != role]
            relation.setdefault(role, {}).update(dict.fromkeys(others))
            strength = alone if len(group) == 1 else together
            self.priority[role] = max(self.priority.get(role, 0), strength)

    def order(self, role: str) -> tuple[int, int]:
        """Return the place of a role: as the user said, else the more it is bound by others the earlier."""
        return self.rank[role], -self.priority[role]

    def liking(self, role: str, counts: Mapping[str, int]) -> int:
        """Return how much a role is drawn to tasks of some roles, less how much it shuns them."""
        drawn = sum(counts.get(other, 0) for other in self.affine.get(role, ()))
        return drawn - self.shunned(role, counts)

    def shunned(self, role: str, counts: Mapping[str, int]) -> int:
        """Count the tasks that a role shuns."""
        return sum(counts.get(other, 0) for other in self.anti.get(role, ()))


def _groups(annotations: Mapping[str, str], key: str, known: Mapping[str, object]) -> list[list[str]]:
    """Read groups of roles, `a,b;c`; one that names an unknown role, or one twice, voids the topology."""
    found = []
    for text in annotations.get(key, "").split(";"):
        group = [role for part in text.split(",") if (role := part.strip())]
        for position, role in enumerate(group):
            if role not in known:
                raise VoidTopologyError(f"{key} names role {role}, which no pod of the job has")
            if role in group[:position]:
                raise VoidTopologyError(f"{key} names role {role} twice in {text.strip()}")
        if group:
            found.append(group)
    return found


class Bucket:
    """Tasks that should be on one node."""

    __slots__ = ("counts", "index", "placed", "tasks", "version", "waiting", "weight")

    def __init__(self, index: int) -> None:
        self.index = index
        self.tasks: list[Task] = []
        self.counts: dict[str, int] = {}  # tasks by role
        self.placed: dict[int, int] = {}  # tasks by row
        self.waiting: dict[str, Task] = {}
        self.weight = 0  # of what the waiting tasks ask for, when it was built
        self.version = 0

    def add(self, task: Task, role: str) -> None:
        """Let a task join."""
        self.tasks.append(task)
        self.counts[role] = self.counts.get(role, 0) + 1
        if task.node is not None:
            self.placed[task.node.row] = self.placed.get(task.node.row, 0) + 1
        else:
            self.waiting[task.uid] = task
            self.weight += _weight(task)
        self.version += 1

    def in_order(self) -> list[Task]:
        """Return the waiting tasks in the order in which they joined."""
        return [task for task in self.tasks if task.uid in self.waiting]


def _weight(task: Task) -> int:
    """Weigh a request: millicores, MiB and thousandths of everything else, in parts of 2**20."""
    total = 0
    for name, units in task.shape.request.amounts.items():
        match name:
            case "memory":
                total += units
            case "cpu" | "pods":
                total += units * MIB
            case _:
                total += units * MIB * 1000 // resources.factor(name)
    return total


class Buckets:
    """All buckets of one job."""

    def __init__(self, roles: Roles, tasks: Iterable[Task]) -> None:
        self.roles = roles
        self.all: list[Bucket] = []
        self.of: dict[str, Bucket] = {}
        self.on_row: dict[int, dict[str, int]] = {}  # placed tasks of any role, by row and role
        self._heaps: dict[str, list[tuple[int, int, int, int]]] = {}
        listed = [(task, role_of(task)) for task in tasks if _takes_part(task)]
        for task, role in listed:
            if task.node is not None:
                self._count(task.node.row, role, 1)
        related = [(task, role) for task, role in listed if role in roles.priority]
        self._fill(sorted(related, key=lambda pair: (pair[0].node is None, roles.order(pair[1]), pair[0].name)))
        self.largest = max((len(bucket.tasks) for bucket in self.all), default=0)
        self._heaps.clear()

    def _fill(self, ordered: Iterable[tuple[Task, str]]) -> None:
        at_row: dict[int, Bucket] = {}
        for task, role in ordered:
            if task.node is None:
                bucket = self._best(role) or self._new()
            else:
                row = task.node.row
                bucket = at_row[row] = at_row.get(row) or self._new()
            bucket.add(task, role)
            self.of[task.uid] = bucket
            for other, heap in self._heaps.items():
                heapq.heappush(heap, self._entry(other, bucket))

    def _new(self) -> Bucket:
        self.all.append(Bucket(len(self.all)))
        return self.all[-1]

    def _entry(self, role: str, bucket: Bucket) -> tuple[int, int, int, int]:
        return -self.roles.liking(role, bucket.counts), bucket.weight, bucket.index, bucket.version

    def _best(self, role: str) -> Bucket | None:
        """Return the bucket that a role likes best, the lightest and then the oldest among equals; None if it shuns them all."""
        heap = self._heaps.get(role)
        if heap is None:
            heap = self._heaps[role] = [self._entry(role, bucket) for bucket in self.all]
            heapq.heapify(heap)
        while heap and heap[0][3] != self.all[heap[0][2]].version:
            heapq.heappop(heap)
        return self.all[heap[0][2]] if heap and heap[0][0] <= 0 else None

    def _count(self, row: int, role: str, sign: int) -> None:
        counts = self.on_row.setdefault(row, {})
        counts[role] = counts.get(role, 0) + sign
        if not counts[role]:
            del counts[role]
            if not counts:
                del self.on_row[row]

    def follow(self, run: Run, sign: int) -> None:
        """Take over that tasks were placed (sign 1) or have left their nodes (-1)."""
        waits = run.step.value != "evict"  # an evicted task leaves its node and does not wait for another
        for task, target in zip(run.tasks, run.targets, strict=True):
            if target is None:
                continue
            self._count(target.row, role_of(task), sign)
            bucket = self.of.get(task.uid)
            if bucket is None:
                continue
            left = bucket.placed.get(target.row, 0) + sign
            bucket.placed[target.row] = left
            if not left:
                del bucket.placed[target.row]
            if waits and sign > 0:
                bucket.waiting.pop(task.uid, None)
            elif waits:
                bucket.waiting[task.uid] = task


def _takes_part(task: Task) -> bool:
    """Tell whether a task waits for a node or holds one; those that are going or have ended do not count."""
    return task.status == Status.PENDING or (task.status in PLACED and task.node is not None)
