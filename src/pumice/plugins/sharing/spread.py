"""Topology spread constraints: the rules of Kubernetes as a filter and as a score.

Pods placed earlier in the cycle count like running ones, terminating pods count for nothing. A constraint counts per domain, so what a node costs is one
look at its domain.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.framework.reasons import Code
from pumice.model.domains import NODE, Division
from pumice.model.kinship import bond_of
from pumice.model.workloads import HOSTNAME
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

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

    __slots__ = ("_least", "_own", "_spread", "domains", "full", "present")

    def __init__(self, bond: Bond, spread: Spread, labels: tuple[str, ...]) -> None:
        self._spread = spread
        self.domains, self.present = _counted(bond, spread, labels)
        # What is counted belongs to others until a pod is added here.
        self._own = False
        self._least = self._emptiest()
        self.full: Mask = self.present > self._most()

    def _emptiest(self) -> int:
        """Return how many pods the emptiest domain has; it counts as empty while there are too few domains."""
        domains, counts = self.domains, self.present[:-1]
        if domains.number < self._spread.min_domains:
            return 0
        return int((counts if domains.number == domains.size else counts[domains.listed]).min())

    def _most(self) -> int:
        """Return how many pods a domain may have to get one more: not too many more than the emptiest."""
        return self._spread.max_skew - self._spread.matches_self + self._least

    def refuses(self, rows: Rows) -> Mask:
        """Mark the nodes that lie in a domain that is full, or in none."""
        full = self.full.copy()
        full[-1] = True
        return self.domains.of_rows(full, rows)

    def add(self, row: int) -> bool:
        """Count one more pod, if the constraint counts it at all, and tell whether other domains are full than before."""
        if self._spread.picker is None or not self._spread.matches_self or not self.domains.counts(row):
            return False
        if not self._own:
            self.present, self.full, self._own = self.present.copy(), self.full.copy(), True
        code = self.domains.codes[row]
        before = int(self.present[code])
        self.present[code] = before + 1
        if before == self._least and (least := self._emptiest()) != before:
            self._least, known = least, self.full
            self.full = self.present > self._most()
            return bool((known != self.full).any())
        if self.full[code] or before + 1 <= self._most():
            return False
        self.full[code] = True
        return True


@functools.cache
def judge(numbers: tuple[int, int]) -> Callable[[Subject, Nodes], ReasonVector | None]:
    """Return the filter that answers with these reasons; equal numbers give the same function, so that kept verdicts stay valid."""
    unlabelled, skewed = numbers

    def judged(subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes whose domain would have too many more pods than the emptiest, or that lie in no domain."""
        bond = bond_of(subject.task)
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
    bond = bond_of(subject.task)
    return bond is None or not any(spread.matches_self and spread.picker for spread in bond.rules.hard)


class Follower:
    """The filter's verdict on all nodes while equal pods are placed one after another."""

    __slots__ = ("_evenings", "_rows")

    def __init__(self, subject: Subject, table: NodeTable, *, released: bool) -> None:  # noqa: ARG002  the same either way
        bond = bond_of(subject.task)
        self._rows = table.rows
        self._evenings = [] if bond is None else _evenings(bond)

    def refuses(self, rows: Rows) -> Mask:
        """Mark the rows that do not take the next pod."""
        masks = [evening.refuses(rows) for evening in self._evenings]
        refused: Mask = masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)
        return refused

    def place(self, row: int) -> Rows | None:
        """Count one more equal pod on a row; returns the rows whose verdict may have changed."""
        changed = [evening.add(row) for evening in self._evenings]
        return self._rows if any(changed) else None

    def alike(self) -> list[npt.NDArray[Any]]:
        """Tell nodes apart by their domains; one that is a domain of its own by how many pods it has."""
        return [
            evening.domains.per_node(evening.present) if evening.domains.alone else evening.domains.codes
            for evening in self._evenings
        ]


# -- the score -------------------------------------------------------------------------------------------------


def applies(subject: Subject, nodes: Nodes) -> Floats | None:
    """Tell whether spreading is scored at all for the pod; how much it is worth depends on who else is a candidate."""
    bond = bond_of(subject.task)
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

    def alike(self) -> list[npt.NDArray[Any]]:
        """Tell nodes apart by their domains; one that stands for itself by how many pods it has, and by whether it has the label."""
        domains = self._domains
        if self._on_host:
            return [self._present[:-1], *([domains.codes < 0] if domains.some_missing else [])]
        return [self._present[:-1] if domains.alone else domains.codes]

    def add(self, row: int) -> None:
        """Count one more pod, if the constraint counts it at all."""
        if self._spread.picker is not None and self._spread.matches_self and self._counted.counts(row):
            self._present[self._counted.codes[row]] += 1

    def of_rows(self, rows: Rows, number: int) -> Floats:
        """Return what the constraint adds to the crowding of so many candidates; nothing where the label is missing."""
        base = self._spread.max_skew - 1
        if self._on_host:
            crowd: Floats = self._present.take(rows) * math.log(number + 2) + base
            if self._domains.some_missing:
                crowd[self._domains.codes[rows] < 0] = 0
            return crowd
        spanned = number if self._domains.alone else self._domains.spanned(rows)
        crowds: Floats = self._present * math.log(spanned + 2) + base
        crowds[-1] = 0
        return self._domains.of_rows(crowds, rows)


class Evenness:
    """The score of candidates, the emptier their domains the better, also while equal pods are placed one after another."""

    __slots__ = ("_crowds", "_rated", "_weight")

    def __init__(self, subject: Subject, weight: int) -> None:
        bond = bond_of(subject.task)
        self._weight = weight
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

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:
        """Score candidates in whole points of 0 to 100, times the weight."""
        if self._rated is None:
            return self._points(rows, len(rows) if sizes is None else int(sizes.sum()))
        rated = self._rated[rows]
        scores = np.zeros(len(rows))
        number = np.count_nonzero(rated) if sizes is None else int(sizes[rated].sum())
        scores[rated] = self._points(rows[rated], int(number))
        return scores

    def alike(self) -> list[npt.NDArray[Any]]:
        """Tell nodes apart by whether they are rated, and by what every constraint tells them apart by."""
        columns = [] if self._rated is None else [self._rated]
        return [*columns, *(column for crowd in self._crowds for column in crowd.alike())]

    def _points(self, rows: Rows, number: int) -> Floats:
        """Scale so that the emptiest get most; nothing counted anywhere is worth full points."""
        if not len(rows):
            return np.zeros(0)
        total = np.zeros(len(rows))
        for crowd in self._crowds:
            total += crowd.of_rows(rows, number)
        raw = np.floor(total + 0.5)
        low, high = float(raw.min()), float(raw.max())
        if high == 0:
            return np.full(len(raw), float(MAX_SCORE * self._weight))
        points: Floats = np.floor(MAX_SCORE * (high + low - raw) / high) * self._weight
        return points


@functools.cache
def evenness(weight: int) -> Callable[[Subject, NodeTable], Evenness]:
    """Return the score with a weight."""
    return lambda subject, _table: Evenness(subject, weight)
