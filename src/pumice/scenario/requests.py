"""What a pod asks for, computed from its raw manifest.

This is the rule of the scheduler's own model, written a second time over plain maps and exact fractions, so that an expectation about a
node's use checks the scheduler instead of repeating its answer. A pod with a quantity that cannot be read, is negative or absurdly
large counts for nothing, as everywhere.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pumice.api import quantity
from pumice.scenario import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

Amounts = dict[str, Fraction]

# Largest amount a quantity may have in the unit the scheduler keeps it in, and most names one object may use.
_LARGEST = 2**53
_MOST_NAMES = 64
_POD_LEVEL = ("cpu", "memory")
_KEPT_WHOLE = ("memory", "pods", "ephemeral-storage", "hugepages-", "attachable-volumes-")


class _BadQuantityError(Exception):
    """A quantity that makes its pod count for nothing."""


def of_pod(pod: Mapping[str, Any]) -> Amounts:
    """Sum containers, init containers and overhead as a scheduler does, one pod slot included."""
    try:
        return _request(pod)
    except _BadQuantityError:
        return {}


def amounts(resources: Any) -> Amounts:
    """Read a map of quantities; one that cannot be read counts as absent."""
    read: Amounts = {}
    for name, value in manifests.mapping(resources).items():
        try:
            read[name] = quantity.parse(value)
        except quantity.QuantityError:
            continue
    return read


def _request(pod: Mapping[str, Any]) -> Amounts:
    spec = manifests.mapping(manifests.dig(pod, "spec"))
    placed = bool(spec.get("nodeName"))
    statuses = _statuses(pod, "containerStatuses") if placed else {}
    total: Amounts = {}
    for container in manifests.sequence(spec.get("containers")):
        _add(total, _container(container, statuses))
    total = _with_init_containers(total, spec, _statuses(pod, "initContainerStatuses") if placed else {})
    _add(total, {"pods": Fraction(1)})
    for name, amount in _whole(pod, spec, placed=placed).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = amount
    _add(total, _checked(spec.get("overhead")))
    return total


def _whole(pod: Mapping[str, Any], spec: Mapping[str, Any], *, placed: bool) -> Amounts:
    """Read what is asked for the pod as a whole; while that is resized the larger of what is asked and what is held counts."""
    asked = _checked(manifests.dig(spec, "resources", "requests"))
    status = manifests.mapping(manifests.dig(pod, "status"))
    if not placed or "resources" not in status:
        return asked
    held = _checked(manifests.dig(status, "resources", "requests"))
    held = _largest(held, _checked(status.get("allocatedResources")))
    chosen = held if _resize_state(pod) == "Infeasible" else _largest(asked, held)
    return {name: chosen.get(name, Fraction(0)) for name in asked}


def _with_init_containers(total: Amounts, spec: Mapping[str, Any], statuses: Mapping[str, Any]) -> Amounts:
    """Raise the sum to the peak of the start-up: sidecars stay, ordinary init containers run one by one beside them."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in manifests.sequence(spec.get("initContainers")):
        stays = manifests.dig(container, "restartPolicy") == "Always"
        request = _container(container, statuses if stays else {})
        if stays:
            _add(total, request)
            _add(sidecars, request)
            peak = _largest(peak, sidecars)
        else:
            _add(request, sidecars)
            peak = _largest(peak, request)
    return _largest(total, peak)


def _container(container: Any, statuses: Mapping[str, Any]) -> Amounts:
    """Read one container's request; while a resize is under way the larger of what is asked and what is held counts."""
    asked = _checked(manifests.dig(container, "resources", "requests"))
    status = manifests.mapping(statuses.get(manifests.text(manifests.dig(container, "name"))))
    if "resources" not in status:
        return asked
    held = _checked(manifests.dig(status, "resources", "requests"))
    held = _largest(held, _checked(status.get("allocatedResources")))
    return held if statuses.get("") == "Infeasible" else _largest(asked, held)


def _statuses(pod: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Map container names to their statuses; the empty name holds the state of a resize."""
    found: dict[str, Any] = {"": _resize_state(pod)}
    for status in manifests.sequence(manifests.dig(pod, "status", field)):
        name = manifests.text(manifests.dig(status, "name"))
        if name:
            found[name] = status
    return found


def _resize_state(pod: Mapping[str, Any]) -> str:
    for condition in manifests.sequence(manifests.dig(pod, "status", "conditions")):
        if manifests.dig(condition, "type") == "PodResizePending":
            return manifests.text(manifests.dig(condition, "reason"))
    return ""


def _checked(resources: Any) -> Amounts:
    read: Amounts = {}
    listed = manifests.mapping(resources)
    if len(listed) > _MOST_NAMES:
        raise _BadQuantityError
    for name, value in listed.items():
        try:
            amount = quantity.parse(value)
        except quantity.QuantityError as error:
            raise _BadQuantityError from error
        if amount < 0 or amount * (1 if name.startswith(_KEPT_WHOLE) else 1000) > _LARGEST:
            raise _BadQuantityError
        read[name] = amount
    return read


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _largest(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, Fraction(0)), right.get(name, Fraction(0))) for name in left | right}
