"""Topology spread constraints: the rules of Kubernetes as a filter and as a score.

Pods placed earlier in the cycle count like running ones, terminating pods count for nothing. A constraint counts per domain, so what a node costs is one
look at its domain.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.reasons import Code
from pumice.model.domains import NODE, Division
from pumice.model.workloads import HOSTNAME
from pumice.plugins.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.bonds import Spread
    from pumice.model.domains import Domains
    from pumice.model.kinship import Bond
    from pumice.model.nodes import Nodes, NodeTable, Rows
    from pumice.model.resources import Vector

MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEW = "node(s) didn't match pod topology spread constraints"


def reasons(session: Session, plugin: str) -> tuple[int, int]:
    """Return the numbers of the two refusals."""
    return session.reason(plugin, Code.UNRESOLVABLE, MISSING), session.reason(plugin, Code.UNSCHEDULABLE, SKEW)


def _counted(bond: Bond, spread: Spread, labels: tuple[str, ...]) -> tuple[Domains, Vector]:
    """Return the domains of a constraint and how many pods each has, on nodes that have the labels and that the policies count."""
    key = bond.constraint_class.key
    chosen = key if spread.honors_affinity and bond.chooses_nodes else b""
    return _present(bond, spread, Division(spread.topology, labels, chosen, key if spread.honors_taints else b""))


def _present(bond: Bond, spread: Spread, division: Division) -> tuple[Domains, Vector]:
    """Return the domains of a division and how many pods that a constraint counts each has."""
    kinship = bond.kinship
    if spread.picker is None:
        domains = kinship.topology.domains(division, bond.constraint_class)
        return domains, np.zeros(domains.size + 1, dtype=np.int64)
    tally = kinship.tally(kinship.count(spread.picker), division, bond.constraint_class)
    return tally.domains, tally.present(released=True)


def _labels(spreads: Sequence[Spread]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spread.topology for spread in spreads))


# -- the filter ------------------------------------------------------------------------------------------------


@functools.cache
def judge(numbers: tuple[int, int]) -> Callable[[Subject, Nodes], ReasonVector | None]:
    """Return the filter that answers with these reasons; equal numbers give the same function, so that kept verdicts stay valid."""
    unlabelled, skewed = numbers

    def judged(subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes whose domain would have too many more pods than the emptiest, or that lie in no domain."""
        bond = subject.task.bond
        if bond is None or not bond.rules.hard:
            return None
        labels = _labels(bond.rules.hard)
        answer = np.zeros(nodes.table.count, dtype=np.int16)
        # The first constraint that refuses gives the reason, so the last one is asked first.
        for spread in reversed(bond.rules.hard):
            domains, present = _counted(bond, spread, labels)
            limit = spread.max_skew - spread.matches_self + _minimum(spread, domains, present)
            by_domain = np.where(present > limit, skewed, 0).astype(np.int16)
            by_domain[-1] = unlabelled
            refused = domains.per_node(by_domain)
            np.copyto(answer, refused, where=refused != 0)
        return answer if nodes.index is nodes.table.rows else answer[nodes.index]

    return judged


def _minimum(spread: Spread, domains: Domains, present: Vector) -> int:
    """Return the smallest count of any domain, which is 0 while there are fewer domains than demanded."""
    if domains.number < spread.min_domains:
        return 0
    counts = present[:-1]
    return int((counts if domains.number == domains.size else counts[domains.listed]).min())


def steady(subject: Subject) -> bool:
    """Tell whether placing the pod leaves the filter's answer as it was: no constraint counts the pod itself."""
    bond = subject.task.bond
    return bond is None or not any(spread.matches_self and spread.picker for spread in bond.rules.hard)


# -- the score -------------------------------------------------------------------------------------------------


def applies(subject: Subject, nodes: Nodes) -> Floats | None:
    """Tell whether spreading is scored at all for the pod; how much it is worth depends on who else is a candidate."""
    bond = subject.task.bond
    return None if bond is None or not bond.soft else np.zeros(len(nodes))


@functools.cache
def evenness(weight: int) -> Callable[[Subject, NodeTable, Rows], Floats]:
    """Return the score of candidates, the emptier their domains the better, in whole points of 0 to 100 times a weight."""

    def scored(subject: Subject, table: NodeTable, rows: Rows) -> Floats:
        bond = subject.task.bond
        if bond is None:
            return np.zeros(len(rows))
        own = bool(bond.constraint_class.constraints.spread)
        labels = _labels(bond.soft) if own else ()
        kept = rows
        # A pod that declares constraints does not rate nodes that lack a label; by default a node is rated by the labels it has.
        has_labels = bond.kinship.topology.domains(Division(NODE, labels)).counted
        if has_labels is not None:
            kept = rows[has_labels[rows]]
        points = _points(_crowding(bond, labels, kept)) * weight
        if len(kept) == len(rows):
            return points
        scores = np.zeros(table.count)
        scores[kept] = points
        return scores[rows]

    return scored


def _crowding(bond: Bond, labels: tuple[str, ...], rows: Rows) -> Floats:
    """Add up how crowded the domains of each candidate are, in whole numbers."""
    total = np.zeros(len(rows))
    for spread in bond.soft:
        domains = bond.kinship.topology.domains(Division(spread.topology))
        if spread.topology == HOSTNAME:
            # Every node stands for itself, counted or not.
            nodes, present = _present(bond, spread, Division(NODE))
            crowd = nodes.of_rows(present, rows) * math.log(len(rows) + 2) + (spread.max_skew - 1)
            if domains.some_missing:
                crowd[domains.codes[rows] < 0] = 0
        else:
            _, present = _counted(bond, spread, labels)
            crowds = present * math.log(domains.spanned(rows) + 2) + (spread.max_skew - 1)
            crowds[-1] = 0
            crowd = domains.of_rows(crowds, rows)
        total += crowd
    return np.floor(total + 0.5)


def _points(raw: Floats) -> Floats:
    """Scale so that the emptiest get most; nothing counted anywhere is worth full points."""
    if not len(raw):
        return raw
    low, high = float(raw.min()), float(raw.max())
    if high == 0:
        return np.full(len(raw), float(MAX_SCORE))
    points: Floats = np.floor(MAX_SCORE * (high + low - raw) / high)
    return points
