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
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.framework.evaluation import Floats, Mask
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
    counted = kinship.by_domains(kinship.count(spread.picker), division, bond.constraint_class)
    return counted.domains, counted.present(released=True)


def _labels(spreads: Sequence[Spread]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spread.topology for spread in spreads))


# -- the filter ------------------------------------------------------------------------------------------------


class Evening:
    """One hard constraint: what its domains have, and which of them may not have more."""

    __slots__ = ("_present", "_spread", "domains", "full")

    def __init__(self, bond: Bond, spread: Spread, labels: tuple[str, ...]) -> None:
        self._spread = spread
        self.domains, self._present = _counted(bond, spread, labels)
        self.full = self._full()

    def _full(self) -> Mask:
        """Mark the domains that would have too many more than the emptiest; it counts as empty while there are too few domains."""
        spread, domains, present = self._spread, self.domains, self._present
        least = 0
        if domains.number >= spread.min_domains:
            counts = present[:-1]
            least = int((counts if domains.number == domains.size else counts[domains.listed]).min())
        full: Mask = present > spread.max_skew - spread.matches_self + least
        return full

    def refused(self) -> Mask:
        """Mark the nodes that lie in such a domain, or in none."""
        full = self.full.copy()
        full[-1] = True
        return self.domains.per_node(full)

    def add(self, row: int) -> bool:
        """Count one more pod, if the constraint counts it at all, and tell whether other domains are full than before."""
        if self._spread.picker is None or not self._spread.matches_self or not self.domains.counts(row):
            return False
        before = self.full
        self._present = self._present.copy()
        self._present[self.domains.codes[row]] += 1
        self.full = self._full()
        return bool((before != self.full).any())


@functools.cache
def judge(numbers: tuple[int, int]) -> Callable[[Subject, Nodes], ReasonVector | None]:
    """Return the filter that answers with these reasons; equal numbers give the same function, so that kept verdicts stay valid."""
    unlabelled, skewed = numbers

    def judged(subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes whose domain would have too many more pods than the emptiest, or that lie in no domain."""
        bond = subject.task.bond
        if bond is None or not bond.rules.hard:
            return None
        answer = np.zeros(nodes.table.count, dtype=np.int16)
        # The first constraint that refuses gives the reason, so the last one is asked first.
        for evening in reversed(_evenings(bond)):
            by_domain = np.where(evening.full, skewed, 0).astype(np.int16)
            by_domain[-1] = unlabelled
            refused = evening.domains.per_node(by_domain)
            np.copyto(answer, refused, where=refused != 0)
        return answer if nodes.index is nodes.table.rows else answer[nodes.index]

    return judged


def _evenings(bond: Bond) -> list[Evening]:
    labels = _labels(bond.rules.hard)
    return [Evening(bond, spread, labels) for spread in bond.rules.hard]


def steady(subject: Subject) -> bool:
    """Tell whether placing the pod leaves the filter's answer as it was: no constraint counts the pod itself."""
    bond = subject.task.bond
    return bond is None or not any(spread.matches_self and spread.picker for spread in bond.rules.hard)


class Follower:
    """The filter's verdict on all nodes while equal pods are placed one after another."""

    __slots__ = ("_evenings", "_rows", "refused")

    def __init__(self, subject: Subject, table: NodeTable, *, released: bool) -> None:  # noqa: ARG002  the same either way
        bond = subject.task.bond
        self._rows = table.rows
        self._evenings = [] if bond is None else _evenings(bond)
        self.refused: Mask = np.zeros(table.count, dtype=np.bool_)
        self._judge()

    def _judge(self) -> None:
        masks = [evening.refused() for evening in self._evenings]
        if masks:
            self.refused = np.logical_or.reduce(masks)

    def place(self, row: int) -> Rows | None:
        """Count one more equal pod on a row; returns the rows whose verdict may have changed."""
        changed = [evening.add(row) for evening in self._evenings]
        if not any(changed):
            return None
        self._judge()
        return self._rows


# -- the score -------------------------------------------------------------------------------------------------


def applies(subject: Subject, nodes: Nodes) -> Floats | None:
    """Tell whether spreading is scored at all for the pod; how much it is worth depends on who else is a candidate."""
    bond = subject.task.bond
    return None if bond is None or not bond.soft else np.zeros(len(nodes))


class Crowd:
    """One soft constraint: how crowded the domains of candidates are."""

    __slots__ = ("_counted", "_domains", "_on_host", "_present", "_spread")

    def __init__(self, bond: Bond, spread: Spread, labels: tuple[str, ...]) -> None:
        self._spread = spread
        self._domains = bond.kinship.topology.domains(Division(spread.topology))
        # By hostname every node stands for itself, whatever its label says and the policies count.
        self._on_host = spread.topology == HOSTNAME
        if self._on_host:
            self._counted, present = _present(bond, spread, Division(NODE))
        else:
            self._counted, present = _counted(bond, spread, labels)
        self._present: Floats = present.astype(np.float64)

    def add(self, row: int) -> None:
        """Count one more pod, if the constraint counts it at all."""
        if self._spread.picker is not None and self._spread.matches_self and self._counted.counts(row):
            self._present[self._counted.codes[row]] += 1

    def of_rows(self, rows: Rows) -> Floats:
        """Return what the constraint adds to the crowding of candidates; nothing where the label is missing."""
        base = self._spread.max_skew - 1
        if self._on_host:
            crowd: Floats = self._present.take(rows) * math.log(len(rows) + 2) + base
            if self._domains.some_missing:
                crowd[self._domains.codes[rows] < 0] = 0
            return crowd
        crowds: Floats = self._present * math.log(self._domains.spanned(rows) + 2) + base
        crowds[-1] = 0
        return self._domains.of_rows(crowds, rows)


class Evenness:
    """The score of candidates, the emptier their domains the better, also while equal pods are placed one after another."""

    __slots__ = ("_count", "_crowds", "_rated", "_weight")

    def __init__(self, subject: Subject, table: NodeTable, weight: int) -> None:
        bond = subject.task.bond
        self._weight = weight
        self._count = table.count
        self._crowds: list[Crowd] = []
        self._rated: Mask | None = None
        if bond is not None:
            # A pod that declares constraints does not rate nodes that lack a label; by default a node is rated by the labels it has.
            labels = _labels(bond.soft) if bond.constraint_class.constraints.spread else ()
            self._crowds = [Crowd(bond, spread, labels) for spread in bond.soft]
            self._rated = bond.kinship.topology.domains(Division(NODE, labels)).counted
            if self._rated is not None and self._rated.all():
                self._rated = None

    def place(self, row: int) -> None:
        """Count one more equal pod on a row."""
        for crowd in self._crowds:
            crowd.add(row)

    def points(self, rows: Rows) -> Floats:
        """Score candidates in whole points of 0 to 100, times the weight."""
        if self._rated is None:
            return self._points(rows)
        kept = rows[self._rated[rows]]
        scores = np.zeros(self._count)
        scores[kept] = self._points(kept)
        return scores[rows]

    def _points(self, rows: Rows) -> Floats:
        """Scale so that the emptiest get most; nothing counted anywhere is worth full points."""
        if not len(rows):
            return np.zeros(0)
        total = np.zeros(len(rows))
        for crowd in self._crowds:
            total += crowd.of_rows(rows)
        raw = np.floor(total + 0.5)
        low, high = float(raw.min()), float(raw.max())
        if high == 0:
            return np.full(len(raw), float(MAX_SCORE * self._weight))
        points: Floats = np.floor(MAX_SCORE * (high + low - raw) / high) * self._weight
        return points


@functools.cache
def evenness(weight: int) -> Callable[[Subject, NodeTable], Evenness]:
    """Return the score with a weight."""
    return lambda subject, table: Evenness(subject, table, weight)
