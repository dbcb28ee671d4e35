"""Inter-pod affinity and anti-affinity: the rules of Kubernetes as a filter and as a score.

Pods placed earlier in the cycle count like running ones, in all rules. Everything is worked out per topology domain and handed to the nodes at the end.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.framework.reasons import Code
from pumice.model.domains import Division
from pumice.model.kinship import bond_of
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.counts import Count
    from pumice.model.domains import Domains
    from pumice.model.kinship import Bond
    from pumice.model.nodes import NodeRecord, Nodes, NodeTable, Rows
    from pumice.model.resources import Vector

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
# From how many counts on nodes are gone through instead of domains.
MANY = 16


def reasons(session: Session, plugin: str) -> tuple[int, int, int]:
    """Return the numbers of the three refusals."""
    return (
        session.reason(plugin, Code.UNRESOLVABLE, AFFINITY),
        session.reason(plugin, Code.UNSCHEDULABLE, ANTI_AFFINITY),
        session.reason(plugin, Code.UNSCHEDULABLE, EXISTING),
    )


# -- the filter ------------------------------------------------------------------------------------------------


@functools.cache
def judge(numbers: tuple[int, int, int]) -> Callable[[Subject, Nodes], ReasonVector | None]:
    """Return the filter that answers with these reasons; equal numbers give the same function, so that kept verdicts stay valid."""
    lonely, crowded, unwelcome = numbers

    def judged(subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes far from the pods to be near, near the pods to be avoided, or near pods that avoid this one."""
        bond = bond_of(subject.task)
        if bond is None:
            return None
        rules = bond.rules
        if not (rules.affinity or rules.anti or bond.avoided_by):
            return None
        answer = np.zeros(nodes.table.count, dtype=np.int16)
        # The first rule that refuses gives the reason, so the last one is asked first.
        _mark(answer, unwelcome, _avoided(bond, released=nodes.released))
        _mark(answer, crowded, _avoiding(bond, released=nodes.released))
        if rules.affinity:
            _mark(answer, lonely, ~Company(bond, released=nodes.released).near(nodes.table.rows))
        return answer if nodes.index is nodes.table.rows else answer[nodes.index]

    return judged


def _mark(answer: ReasonVector, number: int, refused: Mask | None) -> None:
    if refused is not None:
        np.copyto(answer, number, where=refused)


def _avoided(bond: Bond, *, released: bool) -> Mask | None:
    """Mark the nodes near pods whose rules keep this one away."""
    return _near_any(bond, [(rule, rule.topology) for rule in bond.avoided_by], released=released)


def _avoiding(bond: Bond, *, released: bool) -> Mask | None:
    """Mark the nodes near pods that this one must keep away from."""
    counted = [(bond.kinship.count(term.picker), term.topology) for term in bond.rules.anti]
    return _near_any(bond, counted, released=released)


def _near_any(bond: Bond, counted: Sequence[tuple[Count, str]], *, released: bool) -> Mask | None:
    """Mark the nodes that share a domain with anybody counted; None if there is nobody."""
    if len(counted) > MANY:
        return _near_one_of_many(bond, counted, released=released)
    near: Mask | None = None
    for count, topology in counted:
        if count.anybody:
            there = bond.kinship.by_domains(count, Division(topology))
            if there.total(released=released):
                here = there.domains.per_node(there.present(released=released) > 0)
                near = here if near is None else near | here
    return near


def _near_one_of_many(bond: Bond, counted: Sequence[tuple[Count, str]], *, released: bool) -> Mask | None:
    """Mark the same nodes where there are many counts: node by node, since most of them are on a few nodes each."""
    topology = bond.kinship.topology
    by_topology: dict[str, dict[NodeRecord, None]] = {}
    for count, key in counted:
        records = by_topology.setdefault(key, {})
        records |= dict.fromkeys(count.staying)
        if not released:
            records |= dict.fromkeys(count.going)
    near: Mask | None = None
    for key, records in by_topology.items():
        domains = topology.domains(Division(key))
        present = np.zeros(domains.size + 1, dtype=np.bool_)
        rows = [record.row for record in records if record.row < len(domains.codes)]
        present[domains.codes[rows]] = True
        present[-1] = False
        here = domains.per_node(present)
        near = here if near is None else near | here
    return near


class Company:
    """The pods that all terms of a pod mean, by the domains of each term."""

    __slots__ = ("_founding", "present")

    def __init__(self, bond: Bond, *, released: bool) -> None:
        kinship, terms = bond.kinship, bond.rules.affinity
        count = kinship.count(*dict.fromkeys(term.picker for term in terms))
        topologies = dict.fromkeys(term.topology for term in terms)
        counts = [kinship.by_domains(count, Division(topology)) for topology in topologies]
        self.present: list[tuple[Domains, Mask]] = [
            (each.domains, each.present(released=released) > 0) for each in counts
        ]
        # The first of a set of pods that want to be together may go to any node that has the labels.
        self._founding = bond.rules.near_self and not any(each.total(released=released) for each in counts)

    def near(self, rows: Rows) -> Mask:
        """Mark the nodes that share a domain of every term with these pods."""
        masks = [
            domains.codes[rows] >= 0 if self._founding else domains.of_rows(present, rows)
            for domains, present in self.present
        ]
        near: Mask = masks[0] if len(masks) == 1 else np.logical_and.reduce(masks)
        return near

    def add(self, row: int) -> bool:
        """Count one more of these pods; tells whether anything is near that was not, or the other way round."""
        changed = self._founding
        self._founding = False
        for domains, present in self.present:
            code = domains.codes[row]
            if code >= 0 and not present[code]:
                present[code] = changed = True
        return changed


def steady(subject: Subject) -> bool:
    """Tell whether placing the pod leaves the filter's answer as it was: none of its rules means the pod itself."""
    bond = bond_of(subject.task)
    if bond is None:
        return True
    rules = bond.rules
    return not any(term.matches_self for term in rules.anti) and not (rules.affinity and rules.near_self)


class Follower:
    """The filter's verdict on all nodes while equal pods are placed one after another."""

    __slots__ = ("_blocked", "_company", "_near_self", "_rows", "_shunned")

    def __init__(self, subject: Subject, table: NodeTable, *, released: bool) -> None:
        bond = bond_of(subject.task)
        self._rows = table.rows
        self._blocked: Mask = np.zeros(table.count, dtype=np.bool_)
        self._shunned: list[Domains] = []
        self._company: Company | None = None
        self._near_self = bond is not None and bond.rules.near_self
        if bond is None:
            return
        for mask in (_avoided(bond, released=released), _avoiding(bond, released=released)):
            if mask is not None:
                self._blocked |= mask
        shunned = dict.fromkeys(term.topology for term in bond.rules.anti if term.matches_self)
        self._shunned = [bond.kinship.topology.domains(Division(topology)) for topology in shunned]
        if bond.rules.affinity:
            self._company = Company(bond, released=released)

    def refuses(self, rows: Rows) -> Mask:
        """Mark the rows that do not take the next pod."""
        blocked = self._blocked[rows]
        return blocked if self._company is None else blocked | ~self._company.near(rows)

    def place(self, row: int) -> Rows | None:
        """Count one more equal pod on a row; returns the rows whose verdict may have changed."""
        changed: Rows | None = None
        for domains in self._shunned:
            fellows = domains.fellows(row)
            self._blocked[fellows] = True
            changed = fellows if changed is None else self._rows
        if self._company is not None and self._near_self and self._company.add(row):
            changed = self._rows
        return changed

    def closes(self) -> Domains | None:
        """Return the domains of which a placement closes one, if it does nothing else."""
        moves = self._company is not None and self._near_self
        return self._shunned[0] if len(self._shunned) == 1 and not moves else None

    def alike(self) -> list[npt.NDArray[Any]]:
        """Tell nodes apart by what blocks them now, and by the domains that placements change."""
        columns: list[npt.NDArray[Any]] = [self._blocked]
        columns += [domains.codes for domains in self._shunned if not domains.alone]
        for domains, present in self._company.present if self._company is not None else ():
            columns.append(domains.per_node(present) if domains.alone else domains.codes)
        return columns


# -- the score -------------------------------------------------------------------------------------------------


def attraction(subject: Subject, nodes: Nodes) -> Floats | None:
    """Add up, per node, the weights of preferences between the pod and the pods of the node's domains, both ways."""
    bond = bond_of(subject.task)
    if bond is None:
        return None
    drawn = bond.preferred_by
    if not drawn and not bond.rules.preferred:
        return None
    sums: dict[str, Vector] = {}
    for term in bond.rules.preferred:
        _gather(bond, sums, bond.kinship.count(term.picker), term.topology, term.weight)
    for carriers in drawn:
        _gather(bond, sums, carriers, carriers.topology, 1)
    total = np.zeros(nodes.table.count)
    for topology, vector in sums.items():
        total += bond.kinship.topology.domains(Division(topology)).per_node(vector)
    return total if nodes.index is nodes.table.rows else total[nodes.index]


def _gather(bond: Bond, sums: dict[str, Vector], count: Count, topology: str, weight: int) -> None:
    """Add a weighted count to the sums of its topology."""
    present = bond.kinship.by_domains(count, Division(topology)).present(released=False) * weight
    sums[topology] = sums[topology] + present if topology in sums else present


def indifferent(subject: Subject) -> bool:
    """Tell whether placing the pod leaves the score as it was: none of its preferences means the pod itself."""
    bond = bond_of(subject.task)
    return bond is None or not any(term.matches_self for term in bond.rules.preferred)


@functools.cache
def normaliser(weight: int) -> Callable[[Floats], Floats]:
    """Scale raw scores to whole points from 0 for the lowest to 100 for the highest candidate."""

    def normalise(raw: Floats) -> Floats:
        low, high = raw.min(initial=np.inf), raw.max(initial=-np.inf)
        if high <= low:
            return np.zeros(len(raw))
        points: Floats = np.floor((raw - low) * MAX_SCORE / (high - low)) * weight
        return points

    return normalise


class Drift:
    """The score of all nodes while equal pods are placed one after another."""

    __slots__ = ("_normalise", "_raw", "_terms")

    def __init__(self, subject: Subject, table: NodeTable, weight: int) -> None:
        raw = attraction(subject, table.view())
        self._raw: Floats = np.zeros(table.count) if raw is None else raw
        self._normalise = normaliser(weight)
        bond = bond_of(subject.task)
        # A pod that is preferred by its own kind draws the next one, and is drawn to it.
        self._terms = [
            (bond.kinship.topology.domains(Division(term.topology)), 2 * term.weight)
            for term in (bond.rules.preferred if bond is not None else ())
            if bond is not None and term.matches_self
        ]

    def place(self, row: int) -> None:
        """Count one more equal pod on a row."""
        for domains, weight in self._terms:
            if domains.alone:
                self._raw[row] += weight
            else:
                self._raw[domains.fellows(row)] += weight

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:  # noqa: ARG002  how many are alike does not matter
        """Score candidates."""
        return self._normalise(self._raw[rows])

    def alike(self) -> list[npt.NDArray[Any]]:
        """Tell nodes apart by what they are worth now, and by the domains that placements change."""
        return [self._raw, *(domains.codes for domains, _ in self._terms if not domains.alone)]


@functools.cache
def drift(weight: int) -> Callable[[Subject, NodeTable], Drift]:
    """Return what follows the score with a weight."""
    return lambda subject, table: Drift(subject, table, weight)
