"""What makes objects of Kubernetes' own gangs invalid: PodGroups and Workloads of `scheduling.k8s.io`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import wrong
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

GROUP: Final = "scheduling.k8s.io"
_POLICIES: Final = ("basic", "gang")
_MODES: Final = ("Pod", "PodGroup")
_MOST_TEMPLATES: Final = 8
_MOST_CLAIMS: Final = 4
_MOST_PRIORITY: Final = 1_000_000_000
_FIXED: Final = {
    "PodGroup": (
        "podGroupTemplateRef",
        "schedulingPolicy",
        "schedulingConstraints",
        "resourceClaims",
        "disruptionMode",
        "priorityClassName",
        "priority",
    ),
    "Workload": ("controllerRef", "podGroupTemplates"),
}


def pod_group(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a group, of which nothing may change."""
    spec = structure.mapping(manifest, "spec")
    found = _group(spec, "spec")
    reference = structure.mapping(spec, "podGroupTemplateRef", "workload")
    if spec.get("podGroupTemplateRef"):
        where = "spec.podGroupTemplateRef.workload"
        found += wrong.required(f"{where}.workloadName") if not reference.get("workloadName") else []
        found += wrong.label_name(reference.get("podGroupTemplateName"), f"{where}.podGroupTemplateName")
    return found + _unchanged(spec, old, "PodGroup")


def workload(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a store of templates, none of which may change."""
    spec = structure.mapping(manifest, "spec")
    templates = [each for each in spec.get("podGroupTemplates") or () if isinstance(each, dict)]
    if not templates:
        found = wrong.required("spec.podGroupTemplates")
    elif len(templates) > _MOST_TEMPLATES:
        found = _too_many("spec.podGroupTemplates", len(templates), _MOST_TEMPLATES)
    else:
        found = []
        seen: set[object] = set()
        for index, template in enumerate(templates):
            where = f"spec.podGroupTemplates[{index}]"
            found += wrong.duplicate(where, template) if template.get("name") in seen else []
            seen.add(template.get("name"))
            found += wrong.label_name(template.get("name"), f"{where}.name")
            found += _group(template, where)
    return found + _unchanged(spec, old, "Workload")


def _group(spec: Mapping[str, Any], path: str) -> Causes:
    found = _policy(structure.mapping(spec, "schedulingPolicy"), f"{path}.schedulingPolicy")
    topology = structure.mapping(spec, "schedulingConstraints").get("topology") or ()
    where = f"{path}.schedulingConstraints.topology"
    if len(topology) > 1:
        found += _too_many(where, len(topology), 1)
    for index, entry in enumerate(topology):
        key = structure.mapping(entry).get("key")
        found += wrong.label_key(key, f"{where}[{index}].key") if key else wrong.required(f"{where}[{index}].key")
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in _MODES:
        found += wrong.unsupported(f"{path}.disruptionMode", mode, _MODES)
    priority = spec.get("priority")
    if isinstance(priority, int) and priority > _MOST_PRIORITY:
        found += wrong.invalid(f"{path}.priority", priority, f"must be less than or equal to {_MOST_PRIORITY}")
    claims = spec.get("resourceClaims") or ()
    return found + (
        _too_many(f"{path}.resourceClaims", len(claims), _MOST_CLAIMS) if len(claims) > _MOST_CLAIMS else []
    )


def _policy(policy: Mapping[str, Any], path: str) -> Causes:
    stated = [name for name in _POLICIES if policy.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in _POLICIES)
    if not stated:
        return wrong.invalid(path, "", f"must specify one of: {listed}")
    if len(stated) > 1:
        return wrong.invalid(path, f"{{{', '.join(stated)}}}", f"must specify exactly one of: {listed}")
    if stated == ["gang"]:
        least = structure.mapping(policy, "gang").get("minCount")
        if not least:
            return wrong.required(f"{path}.gang.minCount")
        if isinstance(least, int) and least < 1:
            return wrong.invalid(f"{path}.gang.minCount", least, "must be greater than or equal to 1")
    return []


def _too_many(field: str, count: int, most: int) -> Causes:
    items = "item" if most == 1 else "items"
    return [("FieldValueTooMany", field, f"Too many: {count}: must have at most {most} {items}")]


def _unchanged(spec: Mapping[str, Any], old: Mapping[str, Any] | None, kind: str) -> Causes:
    if old is None:
        return []
    before = structure.mapping(old, "spec")
    changed = [name for name in _FIXED[kind] if not structure.same(spec.get(name), before.get(name))]
    return [cause for name in changed for cause in wrong.invalid(f"spec.{name}", None, "field is immutable")]
