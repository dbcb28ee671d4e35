"""What makes the amounts invalid that are stated for a pod as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import wrong
from pumice.controllers import usage
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

_SUPPORTED: Final = ("cpu", "hugepages-", "memory")


def whole_pod(spec: Mapping[str, Any], path: str) -> Causes:
    """Check the amounts by themselves, and if they make sense against each other and against those of containers."""
    stated = structure.mapping(spec, "resources")
    if not stated:
        return []
    field, found = f"{path}.resources", list[tuple[str, str, str]]()
    if stated.get("claims"):
        found += wrong.forbidden(f"{field}.claims", "claims may not be set for Resources at pod-level")
    for part in ("limits", "requests"):
        for name, value in structure.mapping(stated, part).items():
            found += _amount(name, value, f"{field}.{part}[{name}]")
    limits, requests = structure.mapping(stated, "limits"), structure.mapping(stated, "requests")
    return found or [*_within(requests, limits, field), *_containers(spec, requests, limits, field)]


def _amount(name: str, value: Any, field: str) -> Causes:
    if not usage.is_pod_level(name):
        return wrong.unsupported(field, name, _SUPPORTED)
    amount = wrong.amount(value)
    return wrong.invalid(field, str(value), wrong.NOT_NEGATIVE) if amount is not None and amount < 0 else []


def _within(requests: Mapping[str, Any], limits: Mapping[str, Any], field: str) -> Causes:
    found: Causes = []
    for name, value in requests.items():
        if _is_above(value, limits.get(name)):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            found += wrong.invalid(f"{field}.requests", str(value), why)
    return found


def _containers(spec: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any], field: str) -> Causes:
    found: Causes = []
    for name, together in usage.of_containers(spec, "requests").items():
        total, whole = usage.written(name, together), requests.get(name)
        if _is_above(total, whole):
            why = f"must be greater than or equal to aggregate container requests of {total}"
            found += wrong.invalid(f"{field}.requests[{name}]", str(whole), why)
    for index, container in enumerate(spec.get("containers") or ()):
        for name, value in structure.mapping(container, "resources", "limits").items():
            if _is_above(value, limits.get(name)):
                why = f"must be less than or equal to pod limits of {limits[name]}"
                found += wrong.invalid(f"{field}.containers[{index}][{name}].limits", str(value), why)
    return found


def _is_above(value: Any, most: Any) -> bool:
    """Tell whether an amount is larger than another; what is none of the two, or not there, is told elsewhere."""
    if value is None or most is None:
        return False
    amount, bound = wrong.amount(value), wrong.amount(most)
    return amount is not None and bound is not None and bool(amount > bound)
