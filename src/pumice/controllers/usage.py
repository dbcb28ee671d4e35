"""What pods count against a quota: the amounts that a group states as its minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import names, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Amounts = dict[str, int]

_LARGEST = 2**53  # beyond it an amount is an error of its pod, and no minimum of a group
_BYTES = frozenset({names.MEMORY, names.EPHEMERAL_STORAGE})
_LIMITED = (names.CPU, names.MEMORY)


def minimum(spec: Mapping[str, Any], members: int) -> dict[str, str]:
    """Give a number of equal pods' quota usage; amounts that cannot be read or make no sense are left out."""
    return total([(spec, members)])


def total(parts: Iterable[tuple[Mapping[str, Any], int]]) -> dict[str, str]:
    """Give the quota usage of pods, each spec with how many there are of it."""
    count = 0
    requests: Amounts = {}
    limits: Amounts = {}
    for spec, members in parts:
        count += members
        _add(requests, {name: amount * members for name, amount in of_pod(spec, "requests").items()})
        _add(limits, {name: amount * members for name, amount in of_pod(spec, "limits").items()})
    result = {f"{names.COUNT_PREFIX}pods": str(count), names.PODS: str(count)}
    for name, amount in sorted(requests.items()):
        result[name] = result[f"requests.{name}"] = _writer(name)(amount)
    for name in _LIMITED:
        if name in limits:
            result[f"limits.{name}"] = _writer(name)(limits[name])
    return result


def of_pod(spec: Mapping[str, Any], field: str) -> Amounts:
    """Give the pod formula: what its containers come to, or what is stated for the pod as a whole, plus the overhead.

    The overhead enlarges a limit and never makes one.
    """
    result = of_containers(spec, field)
    whole = _amounts(spec, field)
    result |= {name: amount for name, amount in whole.items() if is_pod_level(name)}
    overhead = readable(spec.get("overhead"))
    _add(result, {name: amount for name, amount in overhead.items() if field == "requests" or name in result})
    return result


def is_pod_level(name: str) -> bool:
    """Tell whether a resource can be stated for a pod as a whole."""
    return name in _LIMITED or name.startswith(names.HUGE_PAGES_PREFIX)


def written(name: str, amount: int) -> str:
    """Write an amount as Kubernetes does."""
    return _writer(name)(amount)


def of_containers(spec: Mapping[str, Any], field: str) -> Amounts:
    """Give the larger of what runs together and the peak of the init containers."""
    total: Amounts = {}
    for container in _maps(spec.get("containers")):
        _add(total, _amounts(container, field))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in _maps(spec.get("initContainers")):
        needed = dict(_amounts(container, field))
        _add(needed, sidecars)
        if container.get("restartPolicy") == names.RESTART_ALWAYS:
            _add(total, _amounts(container, field))
            sidecars = needed
        peak = {name: max(needed.get(name, 0), peak.get(name, 0)) for name in (*peak, *needed)}
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in (*total, *peak)}


def _amounts(container: Mapping[str, Any], field: str) -> Amounts:
    resources = container.get("resources")
    return readable(resources.get(field)) if isinstance(resources, dict) else {}


def readable(written: object) -> Amounts:
    """Read amounts: bytes, or thousandths; what cannot be read is left out."""
    amounts: Amounts = {}
    for name, text in written.items() if isinstance(written, dict) else ():
        try:
            amount = quantity.whole(text) if _in_bytes(name) else quantity.milli(text)
        except (quantity.QuantityError, TypeError):
            continue
        if 0 <= amount <= _LARGEST:
            amounts[name] = amount
    return amounts


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _maps(entries: object) -> Iterable[Mapping[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _in_bytes(name: str) -> bool:
    return name in _BYTES or name.startswith(names.HUGE_PAGES_PREFIX)


def _writer(name: str) -> Callable[[int], str]:
    return quantity.format_bytes if _in_bytes(name) else quantity.format_milli
