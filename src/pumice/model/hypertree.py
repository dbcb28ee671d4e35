"""From HyperNode objects to a tree: who is a member of what, and what is wrong where.

A HyperNode that contradicts another one costs nobody else anything: a hyper-node that two others list belongs to neither, those of a circle are left out, a member
that does not exist is simply missing. A domain is never larger than what every reading of the objects agrees on, so a limit is never broken by mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import topology
from pumice.model import resources
from pumice.model.hypermembers import HYPER_NODE, NODE, Members
from pumice.model.hypernodes import HyperNode, HyperNodeTree, Totals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.api import meta
    from pumice.model.nodes import NodeTable


MOST_LABELS = 64  # of which trees are kept


def check(found: topology.HyperNode) -> None:
    """Raise the `BadValueError` that makes a HyperNode invalid."""
    spec = found.spec
    if spec.tier == topology.NO_TIER:
        raise resources.BadValueError("spec.tier", f"is missing; it has to be in 0..{2**31 - 1}")
    if not 0 <= spec.tier < 2**31:
        raise resources.BadValueError("spec.tier", f"{spec.tier} is outside 0..{2**31 - 1}")
    if not spec.members:
        raise resources.BadValueError("spec.members", "is empty; at least one member is needed")
    for position, member in enumerate(spec.members):
        field = f"spec.members[{position}]"
        if member.type not in (NODE, HYPER_NODE):
            raise resources.BadValueError(f"{field}.type", f"{member.type:.40} is neither {NODE} nor {HYPER_NODE}")
        ways = {
            "exactMatch": member.selector.exact_match,
            "regexMatch": member.selector.regex_match,
            "labelMatch": member.selector.label_match,
        }
        chosen = [name for name, way in ways.items() if way is not None]
        if len(chosen) != 1:
            told = " and ".join(chosen) or "nothing"
            raise resources.BadValueError(f"{field}.selector", f"sets {told}; exactly one of {', '.join(ways)} is set")


class HyperNodes:
    """The HyperNode objects, and the tree that follows from them and from the nodes."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._objects: dict[str, topology.HyperNode] = {}
        self._unreadable: dict[str, str] = {}
        self._stale = True
        self._made_of = (-1, -1)
        self._by_labels = False
        self._members = Members(table)
        self.tree = HyperNodeTree((), 0, 1)
        self.totals = Totals(table)
        self._labelled: dict[str, tuple[tuple[int, int], HyperNodeTree]] = {}  # by node label, with what it was made of

    def of_label(self, label: str) -> HyperNodeTree:
        """Return the tree of the values of a node label: a domain of tier 1 for each; nodes without the label lie below the root alone."""
        state = (self._table.structure, self._table.static)
        known = self._labelled.get(label)
        if known is None or known[0] != state:
            rows: dict[str, list[int]] = {}
            for record in self._table.records[: self._table.count]:
                if value := record.labels.get(label):
                    rows.setdefault(value, []).append(record.row)
            domains = [HyperNode(value, 1, np.array(sorted(listed), dtype=np.int64)) for value, listed in rows.items()]
            if len(self._labelled) >= MOST_LABELS:
                self._labelled.clear()
            known = self._labelled[label] = (state, HyperNodeTree(domains, self._table.count, 2))
        return known[1]

    def put(self, found: topology.HyperNode) -> bool:
        """Take a valid HyperNode over; tells whether it says anything new."""
        name = found.metadata.name
        known = self._objects.get(name)
        self._objects[name] = found
        news = self._unreadable.pop(name, None) is not None or known is None or known.spec != found.spec
        self._stale = self._stale or news
        return news

    def spoil(self, name: str, problem: str) -> None:
        """Note that a HyperNode makes no sense: it is left out until it changes."""
        self._objects.pop(name, None)
        self._unreadable[name] = problem
        self._stale = True

    def remove(self, name: str) -> None:
        """Forget a HyperNode."""
        if self._objects.pop(name, None) is not None or self._unreadable.pop(name, None) is not None:
            self._stale = True

    def objects(self) -> Iterable[topology.HyperNode]:
        """Return the valid HyperNodes as they were read."""
        return self._objects.values()

    def metadata(self, name: str) -> meta.ObjectMeta | None:
        """Return the metadata of a valid HyperNode."""
        found = self._objects.get(name)
        return None if found is None else found.metadata

    def prepare(self) -> bool:
        """Make the tree anew if anything it is made of has changed, and tell whether it was."""
        table = self._table
        state = (table.structure, table.static if self._by_labels else 0)
        if not self._stale and state == self._made_of:
            return False
        self._stale = False
        self._by_labels = any(
            member.selector.label_match is not None for each in self._objects.values() for member in each.spec.members
        )
        self._made_of = (table.structure, table.static if self._by_labels else 0)
        self.tree = self._grow()
        return True

    # -- the tree ----------------------------------------------------------------------------------------------

    def _grow(self) -> HyperNodeTree:
        problems: dict[str, list[str]] = {}
        parents = self._parents(problems)
        circular = _circles(parents, problems)
        self._part_from_lower(parents, problems)
        below: dict[str, list[str]] = {}
        for child, parent in parents.items():
            below.setdefault(parent, []).append(child)
        self._members.begin()
        usable: dict[str, HyperNode] = {}
        # A tier is always above those of its members, so members come first.
        for name in sorted(self._objects, key=lambda n: (self._objects[n].spec.tier, n)):
            if name in circular:
                continue
            spec = self._objects[name].spec
            children = [usable[child] for child in below.get(name, ()) if child in usable]
            told: list[str] = []
            direct = self._members.rows(spec.members, told)
            if told:
                problems.setdefault(name, []).extend(told)
            rows = np.unique(np.concatenate([direct, *(child.rows for child in children)]))
            usable[name] = made = HyperNode(name, spec.tier, rows)
            made.children = children
            for each in children:
                each.parent = made
        return HyperNodeTree(
            usable.values(),
            self._table.count,
            max((each.spec.tier for each in self._objects.values()), default=0) + 1,
            tier_names=self._tier_names(),
            problems={name: "; ".join(told) for name, told in sorted(problems.items())},
            is_whole=not self._unreadable,
            version=self.tree.version + 1,
        )

    def _tier_names(self) -> dict[str, int]:
        """Return the tier of each name; where two tiers share one, the stricter is meant."""
        names: dict[str, int] = {}
        for spec in (found.spec for found in self._objects.values()):
            if spec.tier_name:
                names[spec.tier_name] = min(spec.tier, names.get(spec.tier_name, spec.tier))
        return names

    def _parents(self, problems: dict[str, list[str]]) -> dict[str, str]:
        """Return the one parent of each hyper-node that has one, naming every claim that cannot hold."""
        claims: dict[str, list[str]] = {}
        for name in sorted(self._objects):
            for child in dict.fromkeys(self._children(name, problems)):
                claims.setdefault(child, []).append(name)
        parents = {}
        for child, claimants in claims.items():
            if len(claimants) > 1:
                listed = " and ".join(claimants)
                problems.setdefault(child, []).append(f"it is a member of {listed}, so it counts for none of them")
                for name in claimants:
                    problems.setdefault(name, []).append(f"its member {child} is a member of {listed}")
            else:
                parents[child] = claimants[0]
        return parents

    def _children(self, name: str, problems: dict[str, list[str]]) -> Iterable[str]:
        for position, member in enumerate(self._objects[name].spec.members):
            if member.type != HYPER_NODE:
                continue
            exact = member.selector.exact_match
            told = problems.setdefault
            if exact is None:
                told(name, []).append(
                    f"spec.members[{position}]: a member of type HyperNode is found by exactMatch only"
                )
            elif exact.name in self._unreadable:
                told(name, []).append(f"its member {exact.name} is invalid: {self._unreadable[exact.name]}")
            elif exact.name not in self._objects:
                told(name, []).append(f"its member HyperNode {exact.name} does not exist")
            else:
                yield exact.name

    def _part_from_lower(self, parents: dict[str, str], problems: dict[str, list[str]]) -> None:
        """Part hyper-nodes from parents whose tier is not above theirs: what lies inside cannot be farther apart than the whole."""
        for child, parent in list(parents.items()):
            inner, outer = self._objects[child].spec.tier, self._objects[parent].spec.tier
            if inner >= outer:
                del parents[child]
                problems.setdefault(parent, []).append(
                    f"its member {child} is of tier {inner}, which is not below its own tier {outer}"
                )


def _circles(parents: dict[str, str], problems: dict[str, list[str]]) -> dict[str, None]:
    """Take hyper-nodes that lie below themselves out of the tree, and return them."""
    circular: dict[str, None] = {}
    for start in sorted(parents):
        path = [start]
        while (above := parents.get(path[-1])) is not None and above not in path:
            path.append(above)
        if above == start:
            circular[start] = None
            problems.setdefault(start, []).append(f"it lies below itself: {' < '.join([*path, start])}")
    for name in circular:
        del parents[name]
    return circular


__all__ = ["HyperNodes", "check"]
