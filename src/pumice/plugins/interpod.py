"""Inter-pod affinity and anti-affinity: the rules of Kubernetes as a filter and as a score.

Pods placed earlier in the cycle count like running ones, in all rules. Everything is worked out per topology domain and handed to the nodes at the end.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.reasons import Code
from pumice.model.domains import Division
from pumice.plugins.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.counts import Count
    from pumice.model.kinship import Bond
    from pumice.model.nodes import Nodes
    from pumice.model.resources import Vector

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


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
        bond = subject.task.bond
        if bond is None:
            return None
        avoiding = [c for c in bond.kin.carriers if c.required and (c.staying or c.going)]
        rules = bond.rules
        if not (avoiding or rules.affinity or rules.anti):
            return None
        answer = np.zeros(nodes.table.count, dtype=np.int16)
        # The first rule that refuses gives the reason, so the last one is asked first.
        _mark(answer, unwelcome, _near_any(bond, ((c, c.topology) for c in avoiding), released=nodes.released))
        avoided = ((bond.kinship.count(term.picker), term.topology) for term in rules.anti)
        _mark(answer, crowded, _near_any(bond, avoided, released=nodes.released))
        if rules.affinity:
            _mark(answer, lonely, ~_near_all(bond, released=nodes.released))
        return answer if nodes.index is nodes.table.rows else answer[nodes.index]

    return judged


def steady(subject: Subject) -> bool:
    """Tell whether placing the pod leaves the filter's answer as it was: none of its rules means the pod itself."""
    bond = subject.task.bond
    if bond is None:
        return True
    return not bond.rules.avoids_self and not (bond.rules.affinity and bond.rules.near_self)


def _mark(answer: ReasonVector, number: int, refused: Mask | None) -> None:
    if refused is not None:
        np.copyto(answer, number, where=refused)


def _near_any(bond: Bond, counted: Iterable[tuple[Count, str]], *, released: bool) -> Mask | None:
    """Mark the nodes that share a domain with anybody counted; None if there is nobody."""
    near: Mask | None = None
    for count, topology in counted:
        tally = bond.kinship.tally(count, Division(topology))
        if tally.total(released=released):
            here = tally.domains.per_node(tally.present(released=released) > 0)
            near = here if near is None else near | here
    return near


def _near_all(bond: Bond, *, released: bool) -> Mask:
    """Mark the nodes that share a domain of every term with pods that all terms mean; the first of a group may go anywhere that has the labels."""
    kinship, terms = bond.kinship, bond.rules.affinity
    count = kinship.count(*dict.fromkeys(term.picker for term in terms))
    tallies = [kinship.tally(count, Division(topology)) for topology in dict.fromkeys(term.topology for term in terms)]
    founding = bond.rules.near_self and not any(tally.total(released=released) for tally in tallies)
    near: Mask | None = None
    for tally in tallies:
        present = tally.present(released=released) > 0
        if founding:
            present = np.ones(len(present), dtype=np.bool_)
            present[-1] = False
        here = tally.domains.per_node(present)
        near = here if near is None else near & here
    if near is None:
        raise ValueError("no affinity terms to judge by")
    return near


# -- the score -------------------------------------------------------------------------------------------------


def attraction(subject: Subject, nodes: Nodes) -> Floats | None:
    """Add up, per node, the weights of preferences between the pod and the pods of the node's domains, both ways."""
    bond = subject.task.bond
    if bond is None:
        return None
    rules = bond.rules
    drawn = [c for c in bond.kin.carriers if not c.required and (c.staying or c.going)]
    if not drawn and not rules.preferred:
        return None
    total = np.zeros(nodes.table.count)
    sums: dict[str, Vector] = {}
    kinship = bond.kinship
    for term in rules.preferred:
        _gather(bond, sums, kinship.count(term.picker), term.topology, term.weight)
    for carriers in drawn:
        _gather(bond, sums, carriers, carriers.topology, 1)
    for topology, vector in sums.items():
        total += kinship.topology.domains(Division(topology)).per_node(vector)
    return total if nodes.index is nodes.table.rows else total[nodes.index]


def _gather(bond: Bond, sums: dict[str, Vector], count: Count, topology: str, weight: int) -> None:
    """Add a weighted count to the sums of its topology."""
    present = bond.kinship.tally(count, Division(topology)).present(released=False) * weight
    sums[topology] = sums[topology] + present if topology in sums else present


def indifferent(subject: Subject) -> bool:
    """Tell whether placing the pod leaves the score as it was: none of its preferences means the pod itself."""
    bond = subject.task.bond
    return bond is None or not bond.rules.prefers_self


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
