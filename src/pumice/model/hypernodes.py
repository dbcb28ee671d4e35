"""Hyper-nodes as a tree over the rows of the node table, with sums over the nodes of each that follow what changes.

A tree is made anew only when a HyperNode, the set of nodes or, where labels choose members, a label changes. Its domains stand in the order of tiers, then of
names, the virtual root over all nodes last. Which nodes a domain has is an index array; the domains of a tier lie behind each other in one array, so that any
column over nodes becomes a column over domains in one call.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pumice.model.nodes import EVERY, Amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.model.nodes import NodeTable, Rows
    from pumice.model.resources import Matrix, Vector

ROOT = "<cluster-top-hypernode>"


class HyperNode:
    """One domain: the nodes below it, directly or through other hyper-nodes."""

    __slots__ = ("_inside", "children", "index", "name", "parent", "rows", "tier")

    def __init__(self, name: str, tier: int, rows: Rows) -> None:
        self.name = name
        self.tier = tier
        self.rows = rows
        self.index = -1
        self.parent: HyperNode | None = None
        self.children: list[HyperNode] = []
        self._inside: Rows | None = None

    def __repr__(self) -> str:
        return f"<hyper-node {self.name} tier {self.tier} with {len(self.rows)} nodes>"

    def is_within(self, other: HyperNode) -> bool:
        """Tell whether this is another hyper-node or lies below it."""
        above: HyperNode | None = self
        while above is not None:
            if above is other:
                return True
            above = above.parent
        return False

    def below(self) -> list[HyperNode]:
        """Return this hyper-node and all below it."""
        found = [self]
        for each in found:
            found += each.children
        return found

    @property
    def inside(self) -> Rows:
        """The indexes of this hyper-node and of all below it; asked for once the tree stands."""
        if self._inside is None:
            self._inside = np.array([each.index for each in self.below()], dtype=np.int64)
        return self._inside


class HyperNodeTree:
    """All usable hyper-nodes and the virtual root over all nodes; `problems` says what is wrong with which HyperNode."""

    def __init__(
        self,
        usable: Iterable[HyperNode],
        nodes: int,
        top: int,
        *,
        tier_names: Mapping[str, int] | None = None,
        problems: Mapping[str, str] | None = None,
        is_whole: bool = True,
        version: int = 0,
    ) -> None:
        self.root = HyperNode(ROOT, top, np.arange(nodes, dtype=np.int64))
        self.domains = [*sorted(usable, key=lambda h: (h.tier, h.name)), self.root]
        self.tier_names = dict(tier_names or {})
        self.problems = dict(problems or {})
        # Whether every HyperNode could be read; while one could not, nobody knows what the highest tier is.
        self.is_whole = is_whole
        self.version = version
        self.by_name = {domain.name: domain for domain in self.domains}
        for index, domain in enumerate(self.domains):
            domain.index = index
            if domain.parent is None and domain is not self.root:
                domain.parent = self.root
                self.root.children.append(domain)
        self.tiers: Vector = np.array([domain.tier for domain in self.domains], dtype=np.int64)
        self._lay_out(nodes)

    def _lay_out(self, nodes: int) -> None:
        """Lay the rows of all domains out behind each other, and the domains of all rows likewise."""
        sizes = np.array([len(domain.rows) for domain in self.domains], dtype=np.int64)
        self.sizes = sizes
        self._filled = np.flatnonzero(sizes)
        self._rows: Rows = np.concatenate([domain.rows for domain in self.domains])
        self._starts = (np.cumsum(sizes) - sizes)[self._filled]
        owners = np.repeat(np.arange(len(self.domains)), sizes)
        order = np.argsort(self._rows, kind="stable")
        self._owners = owners[order]
        self._ends = np.cumsum(np.bincount(self._rows, minlength=nodes)) if nodes else np.zeros(0, dtype=np.int64)

    @functools.cached_property
    def lowest(self) -> Rows:
        """The lowest hyper-node of each node, -1 where there is only the root."""
        nodes = len(self.root.rows)
        if not nodes:
            return np.zeros(0, dtype=np.int64)
        first = self._owners[np.concatenate([[0], self._ends[:-1]])]
        return np.where(first == self.root.index, -1, first)

    @functools.cached_property
    def by_tier(self) -> dict[int, Rows]:
        """For each tier, lowest first, the domain of that tier that each node lies in, -1 where there is none."""
        levels: dict[int, Rows] = {}
        for domain in reversed(self.domains):
            level = levels.setdefault(domain.tier, np.full(len(self.root.rows), -1, dtype=np.int64))
            level[domain.rows] = domain.index
        return dict(sorted(levels.items()))

    @property
    def is_flat(self) -> bool:
        """Tell whether there is nothing but the root."""
        return len(self.domains) == 1

    def sums(self, column: Matrix) -> Matrix:
        """Return the sum over the nodes of every domain of a column, or of a matrix with one row per node."""
        total: Matrix = np.zeros((len(self.domains), *column.shape[1:]), dtype=column.dtype)
        if len(self._filled):
            total[self._filled] = np.add.reduceat(column[self._rows], self._starts, axis=0)
        return total

    def containing_all(self, rows: Sequence[int]) -> list[HyperNode]:
        """Return the domains that several nodes lie in together, lowest tier first; without any node, all domains."""
        if not rows:
            return self.domains
        distinct = np.unique(np.array(rows, dtype=np.int64))
        owners, _ = self.owners(distinct)
        common = np.flatnonzero(np.bincount(owners, minlength=len(self.domains)) == len(distinct))
        return [self.domains[index] for index in common.tolist()]

    def owners(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the domains of several rows behind each other, and how many each row has."""
        ends = self._ends[rows]
        begins = np.where(rows > 0, self._ends[rows - 1], 0)
        counts = ends - begins
        offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._owners[np.repeat(begins, counts) + offsets], counts


class DomainAmounts(Amounts):
    """The sums of all domains, a row each."""

    __slots__ = ("allocatable", "pipelined", "releasing", "used")

    def __init__(self, sums: Matrix) -> None:
        self.allocatable, self.used, self.releasing, self.pipelined = (sums[:, kind] for kind in range(4))


class Totals:
    """What the nodes of each domain offer, use, release and promise together: sums that follow the rows that change."""

    __slots__ = ("_known", "_position", "_structure", "_sums", "_table", "_tree")

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._tree: HyperNodeTree | None = None
        self._structure = -1
        self._position = -1
        self._known: Matrix = np.zeros((0, 4, 0), dtype=np.int64)
        self._sums: Matrix = self._known

    def _refresh(self, tree: HyperNodeTree) -> Matrix:
        table = self._table
        if tree is self._tree and self._structure == table.structure:
            if self._position == table.position:
                return self._sums
            rows = table.changed_since(self._position)
            if rows is not None and 4 * len(rows) <= table.count:
                self._follow(tree, rows)
                return self._sums
        self._tree, self._structure, self._position = tree, table.structure, table.position
        self._known = self._read(table.rows)
        self._sums = tree.sums(self._known)
        return self._sums

    def _follow(self, tree: HyperNodeTree, rows: Rows) -> None:
        """Carry what changed on some rows into the sums of their domains."""
        self._position = self._table.position
        if not len(rows):
            return
        now = self._read(rows)
        difference = now - self._known[rows]
        self._known[rows] = now
        owners, counts = tree.owners(rows)
        np.add.at(self._sums, owners, np.repeat(difference, counts, axis=0))

    def _read(self, rows: Rows) -> Matrix:
        table = self._table
        read: Matrix = np.stack(
            [table.allocatable[rows], table.used[rows], table.releasing[rows], table.pipelined[rows]], axis=1
        )
        return read

    def allocatable(self, tree: HyperNodeTree) -> Matrix:
        """Return what the nodes of each domain offer."""
        return DomainAmounts(self._refresh(tree)).allocatable

    def used(self, tree: HyperNodeTree) -> Matrix:
        """Return what is used on the nodes of each domain."""
        return DomainAmounts(self._refresh(tree)).used

    def idle(self, tree: HyperNodeTree) -> Matrix:
        """Return what is free now on the nodes of each domain."""
        return DomainAmounts(self._refresh(tree)).idle_at(EVERY)

    def future_idle(self, tree: HyperNodeTree) -> Matrix:
        """Return what is free on the nodes of each domain once all that is being released is gone and all that waits has come."""
        return DomainAmounts(self._refresh(tree)).future_idle_at(EVERY)
