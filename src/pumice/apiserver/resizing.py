"""The subresource `resize` of pods: what may be written through it, and what a node could never grant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.apiserver import statuses
from pumice.controllers import usage
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
SUBRESOURCE: Final = "resize"
_OPEN: Final = ("resources", "resizePolicy")


def opened(old: Mapping[str, Any], new: Document) -> Document:
    """Give a pod with the amounts that are wanted and everything else as it was; one with other containers as it is, to be refused."""
    before, wanted = structure.mapping(old, "spec"), structure.mapping(new, "spec")
    kept: Document = structure.copied({**old, "spec": dict(before)})
    spec = kept["spec"]
    for field in ("containers", "initContainers"):
        listed = wanted.get(field) or []
        if [each.get("name") for each in listed] != [each.get("name") for each in before.get(field) or ()]:
            spec[field] = listed
            continue
        for container, stated in zip(spec.get(field) or (), listed, strict=True):
            _take(container, stated, _OPEN)
    _take(spec, wanted, ("resources",))
    return kept


def check_node(pod: Mapping[str, Any], store: ObjectStore) -> None:
    """Refuse a size that the node of a pod could not grant if the pod were alone there."""
    spec, name = structure.mapping(pod, "spec"), pod["metadata"].get("name", "")
    if not spec.get("nodeName"):
        return
    node = store.find(Key(kinds.NODE, "", str(spec["nodeName"])))
    if node is None:
        raise statuses.forbidden("pods", "", name, f'node "{spec["nodeName"]}" not found')
    offered = usage.readable(structure.mapping(node, "status", "allocatable"))
    for resource, amount in usage.of_pod(spec, "requests").items():
        if resource in offered and amount > offered[resource]:
            why = f"node didn't have enough allocatable resources: {resource}, requested: {amount}, allocatable: {offered[resource]}"
            raise statuses.forbidden("pods", "", name, why)


def _take(target: Document, source: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    for field in fields:
        target.pop(field, None)
        if field in source:
            target[field] = source[field]
