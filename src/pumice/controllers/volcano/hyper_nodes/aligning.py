"""Making the cluster have just the HyperNodes that a source knows of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pumice.api import kinds, names
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step

Manifest = dict[str, Any]
Note = tuple[str, str, str]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A HyperNode as a source knows it."""

    name: str
    tier: int
    members: tuple[str, ...]
    members_are: Literal["Node", "HyperNode"]
    tier_name: str = ""
    labels: dict[str, str] = {}

    def manifest(self, source: str) -> Manifest:
        """Give the object."""
        listed = [{"type": self.members_are, "selector": {"exactMatch": {"name": each}}} for each in self.members]
        spec: Manifest = {"tier": self.tier, "members": listed}
        if self.tier_name:
            spec["tierName"] = self.tier_name
        labels = {**self.labels, names.NETWORK_TOPOLOGY_SOURCE: source}
        kind = kinds.HYPER_NODE
        metadata = {"name": self.name, "labels": labels}
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def of_source(source: str, observed: Observed) -> list[Manifest]:
    """Give the HyperNodes that were made from a source, by name."""
    found = [
        each
        for each in observed.all(kinds.HYPER_NODE)
        if manifests.labels(each).get(names.NETWORK_TOPOLOGY_SOURCE) == source and not manifests.is_going(each)
    ]
    return sorted(found, key=manifests.name)


def steps(source: str, wanted: Sequence[Wanted], observed: Observed) -> tuple[list[Step], list[Note]]:
    """Create, change and delete HyperNodes of a source until they are as wanted: members come before what they are members of, and go after it."""
    present = {manifests.name(each): each for each in of_source(source, observed)}
    made: list[Step] = []
    notes: list[Note] = []
    for each in sorted(wanted, key=lambda each: (each.tier, each.name)):
        manifest = each.manifest(source)
        if each.name in present:
            made += _changed(present[each.name], manifest)
        elif (other := observed.find(kinds.HYPER_NODE, "", each.name)) is None:
            made.append(steps_to.create(kinds.HYPER_NODE, manifest))
        elif not manifests.is_going(other):
            told = f"HyperNode {each.name} exists already and was not made from {source}; rename or delete it"
            notes.append(("Warning", "HyperNodeExists", told))
    kept = {each.name for each in wanted}
    gone = sorted((each for name, each in present.items() if name not in kept), key=_from_the_top)
    return [*made, *(steps_to.delete(kinds.HYPER_NODE, each) for each in gone)], notes


def _changed(present: Manifest, wanted: Manifest) -> Iterable[Step]:
    spec = manifests.merge_patch(manifests.mapping(present, "spec"), wanted["spec"])
    labels = {
        key: value for key, value in wanted["metadata"]["labels"].items() if manifests.labels(present).get(key) != value
    }
    body = ({"spec": spec} if spec else {}) | ({"metadata": {"labels": labels}} if labels else {})
    return [steps_to.patch(kinds.HYPER_NODE, present, body)] if body else []


def _from_the_top(hyper_node: Manifest) -> tuple[int, str]:
    return -manifests.number(manifests.mapping(hyper_node, "spec"), "tier"), manifests.name(hyper_node)
