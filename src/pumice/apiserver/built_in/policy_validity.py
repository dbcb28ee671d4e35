"""What makes invalid what bounds others: limit ranges, quotas, disruption budgets; and services and claims."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import wrong
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

_ORDERS: Final = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""Bounds of which the first must not be above the second, where that is said, and how."""
_QUOTA_NAMES: Final = frozenset({"cpu", "memory", "ephemeral-storage", "storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "requests.cpu", "requests.memory", "requests.storage", "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"})  # fmt: skip
_COUNTED: Final = frozenset({"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"})  # fmt: skip


def limit_range(manifest: Mapping[str, Any]) -> Causes:
    """Check the bounds of a limit range against each other."""
    found: Causes = []
    for index, limit in enumerate(structure.mapping(manifest, "spec").get("limits") or ()):
        field = f"spec.limits[{index}]"
        if limit.get("type") == "Pod":
            for name in ("default", "defaultRequest"):
                if limit.get(name):
                    found += wrong.forbidden(f"{field}.{name}", "may not be specified when `type` is 'Pod'")
        names = sorted({each for part in ("min", "max", "default", "defaultRequest") for each in limit.get(part) or ()})
        for name in names:
            found += _ordered(limit, name, field)
        for name, ratio in (limit.get("maxLimitRequestRatio") or {}).items():
            found += _ratio(limit, name, ratio, f"{field}.maxLimitRequestRatio[{name}]")
    return found


def _ordered(limit: Mapping[str, Any], name: str, field: str) -> Causes:
    found: Causes = []
    for lower, upper, at, words in _ORDERS:
        least, most = (structure.mapping(limit, part).get(name) for part in (lower, upper))
        low, high = wrong.amount(least), wrong.amount(most)
        if least is not None and most is not None and low is not None and high is not None and low > high:
            value = structure.mapping(limit, at).get(name)
            found += wrong.invalid(f"{field}.{at}[{name}]", str(value), words.format(least, most))
    return found


def _ratio(limit: Mapping[str, Any], name: str, ratio: Any, field: str) -> Causes:
    value = wrong.amount(ratio)
    if value is None:
        return []
    text = wrong.written(ratio)
    if value < 1:
        return wrong.invalid(field, text, f"ratio {text} is less than 1")
    least, most = (wrong.amount(structure.mapping(limit, part).get(name)) for part in ("min", "max"))
    if least and most and value > most / least:
        return wrong.invalid(field, text, f"ratio {text} is greater than max/min = {float(most / least):f}")
    return []


def quota(manifest: Mapping[str, Any]) -> Causes:
    """Check the resources that a quota names."""
    found: Causes = []
    for name, value in structure.mapping(manifest, "spec", "hard").items():
        field, amount = f"spec.hard[{name}]", wrong.amount(value)
        if "/" not in name and name not in _QUOTA_NAMES and not name.startswith(("hugepages-", "requests.hugepages-")):
            found += wrong.invalid(field, name, "must be a standard resource type or fully qualified")
            found += wrong.invalid(field, name, "must be a standard resource for quota")
        if amount is not None and amount < 0:
            found += wrong.invalid(field, str(value), wrong.NOT_NEGATIVE)
        elif amount is not None and amount != int(amount) and (name in _COUNTED or name.startswith("count/")):
            found += wrong.invalid(field, wrong.written(value), "must be an integer")
    return found


def budget(manifest: Mapping[str, Any]) -> Causes:
    """Check a disruption budget."""
    spec = structure.mapping(manifest, "spec")
    found = wrong.selector(spec.get("selector"), "spec.selector")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        return found + wrong.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        found += wrong.share(spec.get(field), f"spec.{field}")
    return found


def service(manifest: Mapping[str, Any]) -> Causes:
    """Check the ports and the address of a service."""
    spec = structure.mapping(manifest, "spec")
    ports, address = spec.get("ports") or [], spec.get("clusterIP")
    found: Causes = []
    if not ports and address != "None" and spec.get("type") != "ExternalName":
        found += wrong.required("spec.ports")
    names: set[str] = set()
    for index, port in enumerate(ports):
        field, name = f"spec.ports[{index}]", port.get("name")
        if not name and len(ports) > 1:
            found += wrong.required(f"{field}.name")
        elif name:
            found += wrong.label_name(name, f"{field}.name")
            found += wrong.duplicate(f"{field}.name", name) if name in names else []
            names.add(name)
        found += wrong.port(port.get("port", 0), f"{field}.port")
    if address and address != "None" and not _is_address(address):
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        found += wrong.invalid("spec.clusterIPs[0]", address, why)
    return found


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def claim(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a claim of storage."""
    spec = structure.mapping(manifest, "spec")
    found: Causes = []
    if not spec.get("accessModes"):
        found += wrong.required("spec.accessModes", "at least 1 access mode is required")
    storage = structure.mapping(spec, "resources", "requests").get("storage")
    amount = wrong.amount(storage)
    if storage is None:
        found += wrong.required("spec.resources[storage]")
    elif amount is not None and amount <= 0:
        found += wrong.invalid("spec.resources[storage]", str(storage), "must be greater than zero")
    return found if old is None else found + _claim_change(spec, structure.mapping(old, "spec"))


def _claim_change(new: Mapping[str, Any], before: Mapping[str, Any]) -> Causes:
    free = {"resources", "volumeAttributesClassName"} | ({"volumeName"} if not before.get("volumeName") else set())
    if {k: v for k, v in new.items() if k not in free} == {k: v for k, v in before.items() if k not in free}:
        return []
    why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    return wrong.forbidden("spec", why)
