"""The scores of network-topology-aware: how full domains would be, how near nodes are to a job, how nodes of full domains attract ordinary pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.evaluation import Floats
    from pumice.model.hypernodes import HyperNode, HyperNodeTree, Totals
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector, Vocabulary

Request = tuple["Vector", tuple[str, ...]]  # amounts over the vocabulary, and the names that no node offers


class Weights(msgspec.Struct, frozen=True):
    """What a used share of each resource counts, and the whole."""

    resources: Mapping[str, int]
    whole: int

    def fullness(self, used: Matrix, offered: Matrix, asked: Request, vocabulary: Vocabulary) -> Floats:
        """Return how full domains would be with a request on top, from 0 to 1; 0 where it would be too much."""
        counted = self._counted(asked, vocabulary)
        if counted is None:
            return np.zeros(len(used))
        columns, parts = counted
        full, room = used[:, columns] + asked[0][columns], offered[:, columns]
        share = np.divide(full, room, out=np.zeros(full.shape), where=room > 0)
        return np.where((full > room).any(axis=1), 0.0, share @ parts)

    def growth(self, used: Matrix, offered: Matrix, asked: Request, vocabulary: Vocabulary) -> Growth:
        """Return how full domains would be with one, two, three such requests."""
        firsts = self.fullness(used, offered, asked, vocabulary)
        counted = self._counted(asked, vocabulary)
        if counted is None:
            return Growth(firsts.tolist(), [0.0] * len(firsts), [0] * len(firsts))
        columns, parts = counted
        amounts, room = asked[0][columns], offered[:, columns]
        limits = ((room - used[:, columns]) // amounts).min(axis=1) - 1
        steps = (amounts / np.maximum(room, 1)) @ parts
        return Growth(firsts.tolist(), steps.tolist(), limits.tolist())

    def _counted(self, asked: Request, vocabulary: Vocabulary) -> tuple[list[int], Floats] | None:
        """Return the columns of a request that count, and what part of the whole each counts; None if it makes nothing fuller."""
        amounts, unoffered = asked
        listed = [name for name, column in vocabulary.columns.items() if amounts[column] and name in self.resources]
        total = sum(self.resources[name] for name in listed)
        if not total or any(name in self.resources for name in unoffered):
            return None
        parts = np.array([self.resources[name] for name in listed], dtype=np.float64) / total
        return [vocabulary.columns[name] for name in listed], parts

    def order(self, fullness: Floats, present: Floats, tasks: int) -> Floats:
        """Score domains: the fuller the better, and among equals at the top those that have more of the tasks already."""
        return with_ties(fullness, present, tasks) * (MAX_SCORE * self.whole)


class Growth(msgspec.Struct, frozen=True):
    """How full each of some domains is with one request on top, how much every further one adds, and how many of these it has room for; one more is too much, and it counts as empty."""

    firsts: list[float]
    steps: list[float]
    limits: list[int]

    def share(self, index: int, more: int) -> float:
        """Return how full a domain is with so many requests on top of the first."""
        return self.firsts[index] + more * self.steps[index] if more <= self.limits[index] else 0.0


def with_ties(scores: Floats, present: Floats, tasks: int) -> Floats:
    """Add, where several share the highest score, the part of the tasks that is there already."""
    if not len(scores) or not tasks:
        return scores
    top = np.abs(scores - scores.max()) < 1e-9
    if np.count_nonzero(top) < 2:
        return scores
    return np.where(top, scores + present / tasks, scores)


class Closeness:
    """How near nodes are to where a sub-job runs, also while more of its pods are placed one after another."""

    __slots__ = ("_base", "_lowest", "_present", "_tasks", "_weight")

    def __init__(self, tree: HyperNodeTree, home: HyperNode, rows: Rows, tasks: int, weight: int) -> None:
        self._lowest = tree.lowest
        self._tasks = tasks
        self._weight = weight
        self._base = _nearness(tree, home)
        # The last place is for nodes that lie in no hyper-node.
        self._present = np.bincount(
            np.where(self._lowest[rows] < 0, len(tree.domains), self._lowest[rows]), minlength=len(tree.domains) + 1
        ).astype(np.float64)
        self._present[-1] = 0

    def place(self, row: int) -> None:
        """Count one more pod on a row."""
        if self._lowest[row] >= 0:
            self._present[self._lowest[row]] += 1

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:  # noqa: ARG002  no choice is made among some that stand for others
        """Score candidates."""
        near = self._lowest[rows]
        return with_ties(self._base[near], self._present[near], self._tasks) * (MAX_SCORE * self._weight)


def _nearness(tree: HyperNodeTree, home: HyperNode) -> Floats:
    """Return how near each domain is to another one: 1 for itself, less the higher the first hyper-node that holds both."""
    highest, lowest = int(tree.tiers.max()), int(tree.tiers.min())
    near = np.zeros(len(tree.domains) + 1)
    above: HyperNode | None = home
    while above is not None:
        value = 1.0 if highest == lowest else (highest - above.tier) / (highest - lowest)
        near[above.inside] = np.maximum(near[above.inside], value)
        above = above.parent
    near[home.index] = 1.0
    # Nodes that lie in no hyper-node are looked up at -1.
    near[-1] = 0.0
    return near


class Cells:
    """The nodes of a tree in cells: those of one cell lie in the same hyper-node of every tier, so whatever hyper-nodes are worth they are worth alike."""

    __slots__ = ("_levels", "_members", "around", "groups", "shared", "tree")

    def __init__(self, tree: HyperNodeTree) -> None:
        self.tree = tree
        marks = np.zeros(len(tree.root.rows), dtype=np.int64)
        for domains in reversed(tree.by_tier.values()):
            # The highest tier counts most, so that the cells of a hyper-node lie behind each other.
            marks = np.unique(marks, return_inverse=True)[1] * (len(tree.domains) + 1) + domains + 1
        _, first, groups = np.unique(marks, return_index=True, return_inverse=True)
        self.groups: Rows = groups
        # For each tier, lowest first, the hyper-node of each cell, -1 where there is none.
        self._levels = {tier: domains[first] for tier, domains in tree.by_tier.items()}
        listed = np.array(list(self._levels.values()), dtype=np.int64).reshape(len(self._levels), len(first)).T
        self.around: list[list[int]] = [[index for index in cell if index >= 0] for cell in listed.tolist()]
        self._members: dict[int, slice | Rows] = {}
        # Whether each hyper-node has more than one cell.
        self.shared: list[bool] = (np.bincount(listed[listed >= 0], minlength=len(tree.domains)) > 1).tolist()

    def __len__(self) -> int:
        return len(self.around)

    def levels(self) -> Mapping[int, Rows]:
        """Return for each tier, lowest first, the hyper-node of each cell, -1 where there is none."""
        return self._levels

    def inside(self, index: int) -> slice | Rows:
        """Return the cells of a hyper-node."""
        known = self._members.get(index)
        if known is None:
            cells = np.flatnonzero(self._levels[self.tree.domains[index].tier] == index)
            begin, end = int(cells[0]), int(cells[-1]) + 1
            known = self._members[index] = slice(begin, end) if end - begin == len(cells) else cells
        return known


class Fill:
    """How full the hyper-nodes around each node are, lower tiers counting more, also while equal pods are placed one after another."""

    __slots__ = ("_cells", "_growth", "_placed", "_scales", "_settled", "_shares", "values")

    def __init__(
        self, cells: Cells, totals: Totals, asked: Request, *, vocabulary: Vocabulary, weights: Weights, fading: float
    ) -> None:
        self._cells = cells
        tree = cells.tree
        self._growth = weights.growth(totals.used(tree), totals.allocatable(tree), asked, vocabulary)
        # How full hyper-nodes are now, and how many pods were placed in those where any was.
        self._shares = list(self._growth.firsts)
        self._placed: dict[int, int] = {}
        # How full those that have changed were when `values` was last brought up to date.
        self._settled: dict[int, float] = {}
        scales = {tier: fading ** max(0, tier - 1) for tier in tree.by_tier}
        whole = MAX_SCORE * weights.whole / sum(scales.values())
        shares = np.array(self._shares)
        self.values = np.zeros(len(cells))
        for tier, domains in cells.levels().items():
            self.values += scales[tier] * whole * np.where(domains < 0, 1.0, shares[domains])
        self._scales = [scales[domain.tier] * whole for domain in tree.domains]

    @property
    def groups(self) -> Rows:
        """The cell of each row: `values` holds the points of cells."""
        return self._cells.groups

    def place(self, row: int) -> None:
        """Count one more pod on a row, in every hyper-node around it."""
        self.advance(int(self._cells.groups[row]), 1)
        self.settle()

    def rising(self, group: int) -> int:
        """Return how many more pods in a cell make the hyper-nodes around it fuller; one more is too much for one of them."""
        limits, placed = self._growth.limits, self._placed
        return max(0, min([limits[index] - placed.get(index, 0) for index in self._cells.around[group]], default=0))

    def advance(self, group: int, count: int) -> tuple[float, float]:
        """Count pods in a cell; returns by how much its points rise, and by how much those of others do at the most. Until it is settled `values` lags behind."""
        own = others = 0.0
        for index in self._cells.around[group]:
            self._placed[index] = placed = self._placed.get(index, 0) + count
            before = self._shares[index]
            self._shares[index] = share = self._growth.share(index, placed)
            self._settled.setdefault(index, before)
            rise = (share - before) * self._scales[index]
            own += rise
            if rise > 0 and self._cells.shared[index]:
                others += rise
        return own, others

    def settle(self) -> None:
        """Bring the points of all cells up to date."""
        for index, before in self._settled.items():
            self.values[self._cells.inside(index)] += (self._shares[index] - before) * self._scales[index]
        self._settled.clear()

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:  # noqa: ARG002  how many are alike does not matter
        """Score candidates."""
        return self.values[self._cells.groups[rows]]
