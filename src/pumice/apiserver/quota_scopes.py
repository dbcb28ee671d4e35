"""Which pods a quota counts: all, or those that fit every scope it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import defaults
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")


def is_scoped(quota: Mapping[str, Any]) -> bool:
    """Tell whether a quota counts some pods only, and nothing else."""
    spec = structure.mapping(quota, "spec")
    return bool(spec.get("scopes")) or bool(structure.mapping(spec, "scopeSelector").get("matchExpressions"))


def counts(quota: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod fits every scope of a quota."""
    spec = structure.mapping(quota, "spec")
    if not all(_fits(scope, "Exists", (), pod) for scope in spec.get("scopes") or ()):
        return False
    stated = structure.mapping(spec, "scopeSelector").get("matchExpressions") or ()
    return all(_fits(each["scopeName"], each["operator"], each.get("values") or (), pod) for each in stated)


def _fits(scope: str, operator: str, values: Any, pod: Mapping[str, Any]) -> bool:
    spec = structure.mapping(pod, "spec")
    match scope:
        case "Terminating" | "NotTerminating":
            return (spec.get("activeDeadlineSeconds") is not None) is (scope == "Terminating")
        case "BestEffort" | "NotBestEffort":
            return (defaults.quality(dict(spec)) == "BestEffort") is (scope == "BestEffort")
        case "CrossNamespacePodAffinity":
            return _reaches_out(spec)
        case "PriorityClass":
            return _has_class(spec.get("priorityClassName") or "", operator, values)
    return False


def _has_class(name: str, operator: str, values: Any) -> bool:
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def _reaches_out(spec: Mapping[str, Any]) -> bool:
    """Tell whether a pod asks for pods of other namespaces by its affinities."""
    for kind in _AFFINITIES:
        stated = structure.mapping(spec, "affinity", kind)
        terms = list(stated.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        weighted = stated.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each.get("podAffinityTerm") or {} for each in weighted]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
