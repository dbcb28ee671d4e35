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

# How many pods are counted ahead in a hyper-node.
AHEAD = 64

Request = tuple["Vector", tuple[str, ...]]  # amounts over the vocabulary, and the names that no node offers


class Weights(msgspec.Struct, frozen=True):
    """What a used share of each resource counts, and the whole."""

    resources: Mapping[str, int]
    whole: int

    def fullness(self, used: Matrix, offered: Matrix, asked: Request, vocabulary: Vocabulary) -> Floats:
        """Return how full domains would be with a request on top, from 0 to 1; 0 where it would be too much."""
        amounts, unoffered = asked
        listed = [name for name, column in vocabulary.columns.items() if amounts[column] and name in self.resources]
        total = sum(self.resources[name] for name in listed)
        if not total or any(name in self.resources for name in unoffered):
            return np.zeros(len(used))
        columns = [vocabulary.columns[name] for name in listed]
        full, room = used[:, columns] + amounts[columns], offered[:, columns]
        share = np.divide(full, room, out=np.zeros(full.shape), where=room > 0)
        points = share @ np.array([self.resources[name] for name in listed], dtype=np.float64) / total
        return np.where((full > room).any(axis=1), 0.0, points)

    def order(self, fullness: Floats, present: Floats, tasks: int) -> Floats:
        """Score domains: the fuller the better, and among equals at the top those that have more of the tasks already."""
        return with_ties(fullness, present, tasks) * (MAX_SCORE * self.whole)


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

    __slots__ = ("_levels", "_members", "around", "groups", "tree")

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


class Filling(msgspec.Struct):
    """A hyper-node that is being filled: its cells, how full it is, how full it will be with the next pods (the last first), and how many were looked at."""

    index: int
    inside: slice | Rows
    scale: float
    share: float
    ahead: list[float] = []
    counted: int = 0


class Fill:
    """How full the hyper-nodes around each node are, lower tiers counting more, also while equal pods are placed one after another."""

    __slots__ = (
        "_asked",
        "_cells",
        "_fillings",
        "_offered",
        "_scale",
        "_shares",
        "_used",
        "_vocabulary",
        "_weights",
        "values",
    )

    def __init__(
        self, cells: Cells, totals: Totals, asked: Request, *, vocabulary: Vocabulary, weights: Weights, fading: float
    ) -> None:
        self._cells = cells
        self._asked = asked
        self._vocabulary = vocabulary
        self._weights = weights
        tree = cells.tree
        self._used = totals.used(tree)
        self._offered = totals.allocatable(tree)
        self._scale = {tier: fading ** max(0, tier - 1) for tier in tree.by_tier}
        self._shares = weights.fullness(self._used, self._offered, asked, vocabulary)
        self._fillings: dict[int, Filling] = {}
        total = sum(self._scale.values())
        self.values = np.zeros(len(cells))
        for tier, domains in cells.levels().items():
            weight = self._scale[tier] = self._scale[tier] * MAX_SCORE * weights.whole / total
            self.values += weight * np.where(domains < 0, 1.0, self._shares[domains])

    @property
    def groups(self) -> Rows:
        """The cell of each row: `values` holds the points of cells."""
        return self._cells.groups

    def place(self, row: int) -> None:
        """Count one more pod on a row, in every hyper-node around it."""
        values = self.values
        for index in self._cells.around[self._cells.groups[row]]:
            filling = self._fillings.get(index) or self._start(index)
            if not filling.ahead:
                filling.ahead = self._look_ahead(filling)
            share = filling.ahead.pop()
            values[filling.inside] += (share - filling.share) * filling.scale
            filling.share = share

    def _start(self, index: int) -> Filling:
        scale = self._scale[self._cells.tree.domains[index].tier]
        filling = Filling(index, self._cells.inside(index), scale, float(self._shares[index]))
        self._fillings[index] = filling
        return filling

    def _look_ahead(self, filling: Filling) -> list[float]:
        """Return how full a hyper-node is with the next pods, one by one, the last first."""
        amounts = self._asked[0]
        used = (
            self._used[filling.index] + np.arange(filling.counted + 1, filling.counted + AHEAD + 1)[:, None] * amounts
        )
        filling.counted += AHEAD
        offered = np.repeat(self._offered[filling.index][None], AHEAD, axis=0)
        shares: list[float] = self._weights.fullness(used, offered, self._asked, self._vocabulary).tolist()
        return shares[::-1]

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:  # noqa: ARG002  no choice is made among some that stand for others
        """Score candidates."""
        return self.values[self._cells.groups[rows]]
