"""The scores of network-topology-aware: how full domains would be, how near nodes are to a job, how nodes of full domains attract ordinary pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.plugins.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.evaluation import Floats
    from pumice.model.hypernodes import HyperNode, Totals, Tree
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector, Vocabulary

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

    def __init__(self, tree: Tree, home: HyperNode, rows: Rows, tasks: int, weight: int) -> None:
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

    def points(self, rows: Rows) -> Floats:
        """Score candidates."""
        near = self._lowest[rows]
        return with_ties(self._base[near], self._present[near], self._tasks) * (MAX_SCORE * self._weight)


def _nearness(tree: Tree, home: HyperNode) -> Floats:
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


class Fill:
    """How full the hyper-nodes around each node are, lower tiers counting more, also while equal pods are placed one after another."""

    __slots__ = ("_asked", "_offered", "_per_node", "_scale", "_shares", "_tree", "_used", "_vocabulary", "_weights")

    def __init__(
        self, tree: Tree, totals: Totals, asked: Request, *, vocabulary: Vocabulary, weights: Weights, fading: float
    ) -> None:
        self._tree = tree
        self._asked = asked
        self._vocabulary = vocabulary
        self._weights = weights
        self._used = totals.used(tree).copy()
        self._offered = totals.allocatable(tree)
        self._scale = {tier: fading ** max(0, tier - 1) for tier in tree.by_tier}
        self._shares = weights.fullness(self._used, self._offered, asked, vocabulary)
        total = sum(self._scale.values())
        self._per_node = np.zeros(len(tree.root.rows))
        for tier, domains in tree.by_tier.items():
            weight = self._scale[tier] = self._scale[tier] * MAX_SCORE * weights.whole / total
            self._per_node += weight * np.where(domains < 0, 1.0, self._shares[domains])

    def place(self, row: int) -> None:
        """Count one more pod on a row, in every hyper-node around it."""
        tree = self._tree
        around = [index for domains in tree.by_tier.values() if (index := int(domains[row])) >= 0]
        self._used[around] += self._asked[0]
        now = self._weights.fullness(self._used[around], self._offered[around], self._asked, self._vocabulary)
        for index, share in zip(around, now.tolist(), strict=True):
            domain = tree.domains[index]
            change = (share - float(self._shares[index])) * self._scale[domain.tier]
            self._shares[index] = share
            rows = domain.rows
            if domain is tree.root:
                self._per_node += change
            elif (inside := tree.by_tier[domain.tier][rows] == index).all():
                self._per_node[rows] += change
            else:
                self._per_node[rows[inside]] += change

    def points(self, rows: Rows) -> Floats:
        """Score candidates."""
        return self._per_node[rows]
