"""numa-aware: pods go where the kubelet can give them CPUs that are close together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.api import names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_TASKS
from pumice.framework.reasons import Code
from pumice.plugins.numa_aware import alignment
from pumice.plugins.numa_aware.columns import Columns, written
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import NodeRecord, Nodes, NodeTable, Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

_UNALIGNED: Final = ("", "none")
_REMEMBERED: Final = 10_000
NO_CELLS: Final = "node(s) did not have the pod's NUMA topology policy"
NOT_ALIGNED: Final = "node(s) could not align the CPUs of a container"


class NumaAwareSettings(Settings):
    """How much closeness counts."""

    weight = settings.whole("weight", 1, help="weight of the score; 0 switches it off")


class NumaAware(Plugin):
    """Choose nodes on which the kubelet's topology manager will admit a pod, and those on which its CPUs are in the fewest NUMA cells.

    What a node has is told by the Numatopology object of its name. Only pods that are guaranteed what they ask for are looked at, and of their containers those that ask for whole CPUs. A pod with the annotation `volcano.sh/numa-topology-policy` (`best-effort`, `restricted`, `single-numa-node`) needs a node with the
    CPU manager's policy `static` and that same policy of the topology manager; one without goes by the policy of the node. Cells that were chosen travel with the bind in the annotation `volcano.sh/topology-decision`, and count as taken until the node's agent lists the pod. The score is 100 times `weight` where all CPUs are in one cell and others are in many, less the more cells they are in.
    """

    name = "numa-aware"
    points = frozenset({"Predicate", "NodeOrder"})
    settings = Configured(NumaAwareSettings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self._columns = Columns()

    def open(self, session: Session) -> None:
        """Register the rules, if any node has told of its cells."""
        columns = self._columns
        self._session = session
        self._added: dict[str, tuple[int, Vector]] = {}
        self._known: dict[tuple[Hashable, ...], alignment.Alignment] = {}
        self._none = session.reason(self.name, Code.ERROR, NO_CELLS)
        self._apart = session.reason(self.name, Code.UNRESOLVABLE, NOT_ALIGNED)
        self._any = columns.update(session.cluster)
        for node, problem in columns.problems.items():
            session.record.say(self.name, f"Numatopology {node}: {problem}")
        session.predicate.add(self.fits, reads=NODE_TASKS, details=self.detail, ahead=True)
        if self._any:
            if self.settings.weight:
                session.score.add(self.spans, normalise=self.scaled, reads=NODE_TASKS, follow=self._spans_ahead)
            session.add_handler(self.follow)

    def align(self, numa: tuple[str, ...], rows: Rows, free: Matrix) -> alignment.Alignment:
        """Align a pod's CPUs on some nodes with so many free; one node, which is asked about after each placement, is often in a state that another was in."""
        columns = self._columns
        if len(rows) != 1:
            return self._aligned(numa, rows, free)
        row = int(rows[0])
        key = (numa, columns.total[row].tobytes(), free.tobytes(), int(columns.strictness[row]))
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._aligned(numa, rows, free)
        return known

    def _aligned(self, numa: tuple[str, ...], rows: Rows, free: Matrix) -> alignment.Alignment:
        columns = self._columns
        needs = [int(count) for count in numa[1:]]
        return alignment.align(columns.masks, columns.total[rows], free, columns.strictness[rows], needs)

    def free(self, numa: tuple[str, ...], rows: Rows, steps: Vector | None = None) -> Matrix:
        """Return the free CPUs of nodes by cell, with so many more of these pods on each."""
        free: Matrix = self._columns.free[rows]
        if steps is None:
            return free
        for step in range(1, int(steps.max(initial=0)) + 1):
            more = np.flatnonzero(steps >= step)
            free[more] -= self.align(numa, rows[more], free[more]).taken
        return free

    def _suits(self, policy: str, rows: Rows, free: Matrix) -> Mask:
        """Mark nodes with the policy that a pod asks for."""
        columns = self._columns
        same = np.array([columns.policies[row] == policy for row in rows.tolist()], dtype=np.bool_)
        suits: Mask = columns.is_static[rows] & same & (free.sum(axis=1) > 0)
        return suits

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes whose kubelet would refuse the pod."""
        numa, rows = subject.shape.constraints.numa, nodes.index
        if not numa:
            return None
        asked = numa[0] not in _UNALIGNED
        if not self._any:
            return np.full(len(nodes), self._none, dtype=np.int16) if asked else None
        free = self.free(numa, rows, nodes.steps)
        aligned = self.align(numa, rows, free)
        if asked:
            suits = self._suits(numa[0], rows, free)
            return np.where(suits, np.where(aligned.admitted, 0, self._apart), self._none).astype(np.int16)
        aligns = self._columns.is_static[rows] & (self._columns.strictness[rows] > 0)
        return np.where(aligns & ~aligned.admitted, self._apart, 0).astype(np.int16)

    def detail(self, subject: Subject, node: NodeRecord) -> str:
        """Say what a node has, and what it could not align."""
        columns, row = self._columns, node.row
        if not self._any or not columns.numbers[row]:
            return f"without a Numatopology that can be read, which {subject.shape.constraints.numa[0]} needs"
        numa = subject.shape.constraints.numa
        free = dict(zip(columns.numbers[row], columns.free[row].tolist(), strict=False))
        at = f"of policy {columns.policies[row] or 'none'} with free CPUs {free} by NUMA cell"
        refused = int(self.align(numa, np.array([row]), columns.free[[row]]).refused[0])
        if refused < 0:
            return f"{at}, and the pod asks for policy {numa[0]}"
        return f"{at}, where container {subject.task.pod.spec.containers[refused].name} asks for {numa[refused + 1]}"

    def spans(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Give each node the number of cells that the pod would be spread over."""
        numa = subject.shape.constraints.numa
        if not numa or numa[0] in _UNALIGNED:
            return None
        return self.align(numa, nodes.index, self.free(numa, nodes.index, nodes.steps)).spans.astype(np.float64)

    def _spans_ahead(self, subject: Subject, table: NodeTable) -> Spans:
        """Keep step with equal pods that are placed one after another."""
        return Spans(self, subject, table)

    def scaled(self, raw: Floats) -> Floats:
        """Let fewer cells be better."""
        most = float(raw.max(initial=0.0))
        points = MAX_SCORE - np.floor(MAX_SCORE * raw / most) if most else np.full(len(raw), MAX_SCORE)
        weighted: Floats = points * self.settings.weight
        return weighted

    def follow(self, run: Run, sign: int) -> None:
        """Take the cells of pods that are placed, and give back those of pods that are not any more."""
        numa = run.tasks[0].shape.constraints.numa
        if not numa:
            return
        for task, target in zip(run.tasks, run.targets, strict=True):
            if sign < 0:
                self._give_back(task)
            elif target is not None and target.row < len(self._columns.numbers):
                self._take(task, target.row, numa)

    def _take(self, task: Task, row: int, numa: tuple[str, ...]) -> None:
        columns = self._columns
        if task.uid in self._added or not columns.is_static[row]:
            return
        taken = self.align(numa, np.array([row]), columns.free[[row]]).taken[0]
        if taken.any():
            columns.free[row] -= taken
            self._added[task.uid] = row, taken
            decision = written(columns.numbers[row], taken)
            self._session.cluster.with_bind.stamp(task.uid, {names.TOPOLOGY_DECISION: decision})

    def _give_back(self, task: Task) -> None:
        added = self._added.pop(task.uid, None)
        if added is not None:
            row, taken = added
            self._columns.free[row] += taken
            self._session.cluster.with_bind.unstamp(task.uid, (names.TOPOLOGY_DECISION,))


class Spans:
    """The score while equal pods are placed one after another: the free CPUs of nodes without those, and the cells that the next would be spread over."""

    def __init__(self, plugin: NumaAware, subject: Subject, table: NodeTable) -> None:
        self._plugin = plugin
        self._numa = subject.shape.constraints.numa
        self._free = plugin.free(self._numa, table.rows)
        self._next = plugin.align(self._numa, table.rows, self._free)
        self._raw: Floats = self._next.spans.astype(np.float64)
        self._taken: dict[int, Vector] = {}

    def place(self, row: int) -> None:
        """Count one more pod on a row."""
        self._free[row] -= self._taken.get(row, self._next.taken[row])
        after = self._plugin.align(self._numa, np.array([row]), self._free[row : row + 1])
        self._taken[row], self._raw[row] = after.taken[0], float(after.spans[0])

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:
        """Score candidates."""
        del sizes  # how many are alike changes nothing
        return self._plugin.scaled(self._raw[rows])
