"""What makes the resize of a pod invalid, in the words of kube-apiserver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import defaults, pod_validity, wrong
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

Document = dict[str, Any]
_RESIZABLE: Final = frozenset({"cpu", "memory"})
_PARTS: Final = ("requests", "limits")


def pod_resize(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Refuse any change but of cpu and memory, one that takes an amount away, and one that gives the pod another class of service."""
    new, before = structure.mapping(manifest, "spec"), structure.mapping(old, "spec")
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(before.get(field) or ()):
            return wrong.forbidden(f"spec.{field}", "containers may not be added or removed on resize")
    found = pod_validity.pod_spec(new, "spec")
    quality = defaults.quality(dict(before))
    if defaults.quality(dict(new)) != quality:
        found += wrong.invalid("spec", quality, "Pod QOS Class may not change as a result of resizing")
    for path, stated, known in _levels(new, before):
        found += _removed(structure.mapping(stated, "resources"), structure.mapping(known, "resources"), path)
    if not structure.same(_without_sizes(new), _without_sizes(before)):
        found += wrong.forbidden("spec", "only cpu and memory resources are mutable")
    return found


def _levels(new: Mapping[str, Any], before: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Give every place where amounts are stated, with what was there before."""
    found: list[tuple[str, Any, Any]] = [("spec", new, before)]
    for field in ("containers", "initContainers"):
        pairs = zip(new.get(field) or (), before.get(field) or (), strict=True)
        found += [(f"spec.{field}[{index}]", *pair) for index, pair in enumerate(pairs)]
    return found


def _removed(stated: Mapping[str, Any], known: Mapping[str, Any], path: str) -> Causes:
    found: Causes = []
    for part in _PARTS:
        if structure.mapping(known, part).keys() & _RESIZABLE - structure.mapping(stated, part).keys():
            found += wrong.forbidden(f"{path}.resources.{part}", f"resource {part} cannot be removed")
    return found


def _without_sizes(spec: Mapping[str, Any]) -> Document:
    """Give a spec without the amounts that a resize may change."""
    left = {name: value for name, value in spec.items() if name != "resources"}
    if rest := _rest(spec):
        left["resources"] = rest
    for field in ("containers", "initContainers"):
        if field in spec:
            left[field] = [{**each, "resources": _rest(each)} for each in spec[field] or ()]
    return left


def _rest(holder: Mapping[str, Any]) -> Document:
    stated = structure.mapping(holder, "resources")
    rest = {part: {k: v for k, v in structure.mapping(stated, part).items() if k not in _RESIZABLE} for part in _PARTS}
    rest = {part: amounts for part, amounts in rest.items() if amounts}
    return rest | {name: value for name, value in stated.items() if name not in _PARTS}
