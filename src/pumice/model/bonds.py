"""What a pod's spec says about other pods, worked out for its namespace and labels: whom to be near, whom to avoid, whom to spread among.

A real API server merges `matchLabelKeys` and `mismatchLabelKeys` into the selectors when a pod is created; a store that does not is met halfway here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.model import pickers
from pumice.model.pickers import Picker
from pumice.model.resources import BadValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pumice.api import core, meta
    from pumice.model.constraints import Constraints

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"
_HONOR = "Honor"
_INT32 = 2**31


class Term(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods, and the label by whose value a node counts as near them; a preference has its weight, below zero to keep away."""

    picker: Picker
    topology: str
    matches_self: bool
    weight: int = 1


class Spread(msgspec.Struct, frozen=True, cache_hash=True):
    """How evenly pods are to be spread over the values of a label; a constraint without picker counts nobody."""

    picker: Picker | None
    topology: str
    max_skew: int
    matches_self: bool
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class Bonds(msgspec.Struct, frozen=True, cache_hash=True):
    """All rules of one pod about other pods."""

    affinity: tuple[Term, ...] = ()
    anti: tuple[Term, ...] = ()
    preferred: tuple[Term, ...] = ()
    hard: tuple[Spread, ...] = ()
    soft: tuple[Spread, ...] = ()

    @property
    def near_self(self) -> bool:
        """Whether the pod itself is meant by all terms about pods to be near."""
        return all(term.matches_self for term in self.affinity)


NONE = Bonds()


def check(spec: core.PodSpec) -> None:
    """Raise the `BadValueError` that disables a pod whose rules hold a number no API server would take."""
    for position, constraint in enumerate(spec.topology_spread_constraints):
        field = f"spec.topologySpreadConstraints[{position}]"
        for name, value in (("maxSkew", constraint.max_skew), ("minDomains", constraint.min_domains)):
            if value is not None and not 0 < value < _INT32:
                raise BadValueError(f"{field}.{name}", f"{value} is not a whole number of 1 or more")
    for group, terms in _preferences(spec.affinity):
        for position, term in enumerate(terms):
            if not 0 <= term.weight <= 100:
                field = f"spec.affinity.{group}.preferredDuringSchedulingIgnoredDuringExecution[{position}].weight"
                raise BadValueError(field, f"{term.weight} is not between 1 and 100")


def _preferences(
    affinity: core.Affinity | None,
) -> Iterator[tuple[str, tuple[core.WeightedPodAffinityTerm, ...]]]:
    if affinity is not None and affinity.pod_affinity is not None:
        yield "podAffinity", affinity.pod_affinity.preferred_during_scheduling_ignored_during_execution
    if affinity is not None and affinity.pod_anti_affinity is not None:
        yield "podAntiAffinity", affinity.pod_anti_affinity.preferred_during_scheduling_ignored_during_execution


def concern_pods(constraints: Constraints) -> bool:
    """Tell whether some rule is about other pods."""
    affinity = constraints.affinity
    if constraints.spread:
        return True
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def label_keys(constraints: Constraints) -> dict[str, None]:
    """List the labels of pods that the rules look at."""
    keys: dict[str, None] = {}
    for selector, more in _selectors(constraints):
        keys |= dict.fromkeys(more)
        if selector is not None:
            keys |= dict.fromkeys(selector.match_labels)
            keys |= dict.fromkeys(requirement.key for requirement in selector.match_expressions)
    return keys


def _selectors(constraints: Constraints) -> Iterator[tuple[meta.LabelSelector | None, tuple[str, ...]]]:
    affinity = constraints.affinity
    for group in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if group is not None:
            preferred = group.preferred_during_scheduling_ignored_during_execution
            for term in (
                *group.required_during_scheduling_ignored_during_execution,
                *(p.pod_affinity_term for p in preferred),
            ):
                yield term.label_selector, term.match_label_keys + term.mismatch_label_keys
    for constraint in constraints.spread:
        yield constraint.label_selector, constraint.match_label_keys


def read(constraints: Constraints, namespace: str, labels: Mapping[str, str], surroundings: Mapping[str, str]) -> Bonds:
    """Work out the rules of a pod; `surroundings` are the labels of its namespace."""

    def worked_out(terms: Iterable[tuple[core.PodAffinityTerm, int]]) -> tuple[Term, ...]:
        picked = [(_picker(term, namespace, labels), term.topology_key, weight) for term, weight in terms]
        return tuple(Term(p, key, p.picks(namespace, surroundings, labels), weight) for p, key, weight in picked)

    spreads = [(c.when_unsatisfiable, _spread(c, namespace, labels)) for c in constraints.spread]
    return Bonds(
        affinity=worked_out(_required(constraints.affinity, anti=False)),
        anti=worked_out(_required(constraints.affinity, anti=True)),
        preferred=worked_out(_preferred(constraints.affinity)),
        hard=tuple(spread for action, spread in spreads if action == HARD),
        soft=tuple(spread for action, spread in spreads if action == SOFT),
    )


def _required(affinity: core.Affinity | None, *, anti: bool) -> Iterator[tuple[core.PodAffinityTerm, int]]:
    group = None if affinity is None else affinity.pod_anti_affinity if anti else affinity.pod_affinity
    if group is not None:
        for term in group.required_during_scheduling_ignored_during_execution:
            yield term, 1


def _preferred(affinity: core.Affinity | None) -> Iterator[tuple[core.PodAffinityTerm, int]]:
    for group, terms in _preferences(affinity):
        for term in terms:
            if term.weight:
                yield term.pod_affinity_term, term.weight if group == "podAffinity" else -term.weight


def _picker(term: core.PodAffinityTerm, namespace: str, labels: Mapping[str, str]) -> Picker:
    """Work out whom a term means; without any word about namespaces, pods of the declaring pod's own."""
    wanted = pickers.requirements(term.label_selector)
    if wanted is not None:
        wanted = pickers.canonical(
            [
                *wanted,
                *_merged(wanted, term.match_label_keys, "In", labels),
                *_merged(wanted, term.mismatch_label_keys, "NotIn", labels),
            ]
        )
    namespaces = tuple(sorted(set(term.namespaces)))
    if not namespaces and term.namespace_selector is None:
        namespaces = (namespace,)
    return Picker(namespaces, pickers.requirements(term.namespace_selector), wanted)


def _merged(
    wanted: pickers.Requirements, keys: Iterable[str], operator: str, labels: Mapping[str, str]
) -> Iterator[pickers.Requirement]:
    """Ask for the pod's own values of some labels, unless that was merged already."""
    present = {(key, found) for key, found, _ in wanted}
    return ((key, operator, (labels[key],)) for key in keys if key in labels and (key, operator) not in present)


def _spread(constraint: core.TopologySpreadConstraint, namespace: str, labels: Mapping[str, str]) -> Spread:
    """Work out a constraint. Nobody is counted by an empty selector, though the pod itself matches it."""
    wanted = pickers.requirements(constraint.label_selector)
    merged = tuple(_merged(wanted or (), constraint.match_label_keys, "In", labels))
    if merged:
        wanted = pickers.canonical([*(wanted or ()), *merged])
    return Spread(
        picker=Picker((namespace,), None, wanted) if wanted else None,
        topology=constraint.topology_key,
        max_skew=constraint.max_skew,
        matches_self=wanted is not None and pickers.meet(wanted, labels),
        min_domains=constraint.min_domains or 1,
        honors_affinity=(constraint.node_affinity_policy or _HONOR) == _HONOR,
        honors_taints=constraint.node_taints_policy == _HONOR,
    )
