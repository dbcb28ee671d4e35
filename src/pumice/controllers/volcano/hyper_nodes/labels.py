"""HyperNodes from the labels of nodes: nodes with the same value of the narrowest label are one, those one of the next wider label, and so on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.controllers.volcano.hyper_nodes import aligning, settings
from pumice.controllers.workloads import manifests, naming

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.controllers.queueing.observed import Observed

Manifest = dict[str, Any]
_ODD: Final = re.compile(r"[^a-z0-9-]")
_Tiers = list[dict[str, dict[str, None]]]  # for each tier, what the HyperNode of a value has as members


def wanted(source: settings.LabelSource, observed: Observed) -> tuple[list[aligning.Wanted], list[str]]:
    """Give the HyperNodes of all types, and what is odd about the labels."""
    nodes = sorted(observed.all(kinds.NODE), key=manifests.name)
    present = aligning.of_source(settings.LABEL, observed)
    found: list[aligning.Wanted] = []
    problems: list[str] = []
    for kind, keys in source.types.items():
        tiers = _tiers(nodes, keys, problems)
        called = _names(kind, keys, tiers, present, {each.name for each in found})
        for number, key in enumerate(keys):
            for value, members in tiers[number].items():
                inside = members if number == 0 else {called[number - 1][each]: None for each in members}
                found.append(
                    aligning.Wanted(
                        name=called[number][value],
                        tier=number + 1,
                        tier_name=key,
                        members=tuple(sorted(inside)),
                        members_are="Node" if number == 0 else "HyperNode",
                        labels={key: value},
                    )
                )
    return found, problems


def _tiers(nodes: Sequence[Mapping[str, Any]], keys: Sequence[str], problems: list[str]) -> _Tiers:
    """Group nodes by the narrowest label and groups by the next one; a label that is missing ends the walk."""
    tiers: _Tiers = [{} for _ in keys]
    parents: dict[tuple[int, str], str] = {}
    for node in nodes:
        inside = manifests.name(node)
        for number, key in enumerate(keys):
            value = manifests.labels(node).get(key)
            if not isinstance(value, str) or not value:
                break
            if number and parents.setdefault((number, inside), value) != value:
                # A HyperNode with two parents would make the whole topology unusable.
                first = parents[number, inside]
                problems.append(
                    f"{keys[number - 1]}={inside} lies in both {key}={first} and {key}={value}; it counts for {first}"
                )
                break
            tiers[number].setdefault(value, {})[inside] = None
            inside = value
    return tiers


def _names(
    kind: str, keys: Sequence[str], tiers: _Tiers, present: Sequence[Manifest], taken: set[str]
) -> list[dict[str, str]]:
    """Name the HyperNodes of a type: one that is there with this value keeps its name, a new name depends on type, tier and value alone."""
    called: list[dict[str, str]] = []
    used = set(taken)
    stem = _ODD.sub("-", kind.lower())
    for number, key in enumerate(keys):
        prefix = f"hypernode-{stem}-tier{number + 1}-"
        known: dict[str, str] = {}
        for each in present:
            value = manifests.labels(each).get(key)
            if manifests.name(each).startswith(prefix) and isinstance(value, str) and manifests.name(each) not in used:
                known.setdefault(value, manifests.name(each))
        used.update(name for value, name in known.items() if value in tiers[number])
        tier: dict[str, str] = {}
        for value in tiers[number]:
            tier[value] = known.get(value) or _new_name(prefix, value, used)
            used.add(tier[value])
        called.append(tier)
    return called


def _new_name(prefix: str, value: str, used: set[str]) -> str:
    number = 0
    while (name := prefix + naming.suffix(prefix, value, number)) in used:
        number += 1
    return name
