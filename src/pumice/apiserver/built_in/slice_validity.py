"""What makes slices of devices invalid: their pools, the nodes they are for, their devices and counters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import wrong
from pumice.apiserver.built_in.device_validity import EFFECTS, driver, too_many
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

_DEVICES, _COMPLEX_DEVICES, _COUNTER_SETS, _COUNTERS = 128, 64, 8, 32
_ATTRIBUTES, _TAINTS, _CONDITIONS, _CONSUMED_SETS, _LONGEST_VALUE = 32, 16, 4, 2, 64
_SELECTIONS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUES: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_IDENTIFIER: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_NO_IDENTIFIER: Final = f"a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"  # fmt: skip
_SEMVER: Final = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def resource_slice(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a slice; driver, pool and node never change."""
    spec = structure.mapping(manifest, "spec")
    if old is not None and (found := _changes(spec, structure.mapping(old, "spec"))):
        return found
    found = driver(spec, "spec.driver") + _pool(structure.mapping(spec, "pool")) + _selection(spec)
    devices, sets = spec.get("devices") or [], spec.get("sharedCounters") or []
    if devices and sets:
        return [
            *found,
            ("FieldValueInvalid", "spec", 'Invalid value: "": only one of `sharedCounters` or `devices` is allowed'),
        ]
    counted = any(each.get("taints") or each.get("consumesCounters") for each in devices)
    excess = too_many(devices, _COMPLEX_DEVICES if counted else _DEVICES, "spec.devices")
    excess += too_many(sets, _COUNTER_SETS, "spec.sharedCounters")
    if excess:
        return found + excess
    own = spec.get("perDeviceNodeSelection") is True
    seen: set[Any] = set()
    for index, each in enumerate(devices):
        where, name = f"spec.devices[{index}]", each.get("name")
        found += wrong.duplicate(where, name) if name in seen else wrong.label_name(name, f"{where}.name")
        seen.add(name)
        found += _device(each, where, own=own)
    seen = set()
    for index, each in enumerate(sets):
        where, name = f"spec.sharedCounters[{index}]", each.get("name")
        found += wrong.duplicate(where, name) if name in seen else wrong.label_name(name, f"{where}.name")
        seen.add(name)
        found += too_many(each.get("counters") or {}, _COUNTERS, f"{where}.counters")
    return found


def _changes(spec: Mapping[str, Any], before: Mapping[str, Any]) -> Causes:
    found: Causes = []
    for path in (("driver",), ("pool", "name"), ("nodeName",)):
        new = structure.mapping(spec, *path[:-1]).get(path[-1])
        if new != structure.mapping(before, *path[:-1]).get(path[-1]):
            found += wrong.invalid(f"spec.{'.'.join(path)}", new, "field is immutable")
    return found


def _pool(pool: Mapping[str, Any]) -> Causes:
    found = [] if pool.get("name") else wrong.required("spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if isinstance(count, int) and count <= 0:
        found += wrong.invalid("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if isinstance(generation, int) and generation < 0:
        found += wrong.invalid("spec.pool.generation", generation, "must be greater than or equal to zero")
    return found


def _selection(spec: Mapping[str, Any]) -> Causes:
    """Check which nodes a slice is for: stated in exactly one way."""
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field) is False:
            return wrong.invalid(f"spec.{field}", False, "must be either unset or set to true")
    stated = [field for field in _SELECTIONS if spec.get(field)]
    either = f"exactly one of {', '.join(f'`{field}`' for field in _SELECTIONS)} is required"
    if not stated:
        return wrong.required("spec", either)
    if len(stated) > 1:
        shown = "{" + ", ".join(f"`{field}`" for field in stated) + "}"
        return wrong.invalid("spec", shown, f"{either}, but multiple fields are set")
    terms = structure.mapping(spec, "nodeSelector").get("nodeSelectorTerms") or []
    if spec.get("nodeSelector") and len(terms) != 1:
        return wrong.invalid("spec.nodeSelector.nodeSelectorTerms", terms, "must have exactly one node selector term")
    return []


def _device(device: Mapping[str, Any], where: str, *, own: bool) -> Causes:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    total = len(attributes) + len(capacity)
    if total > _ATTRIBUTES:
        why = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES}"
        return wrong.invalid(where, total, why)
    found: Causes = []
    if not own and any(device.get(field) for field in ("nodeName", "nodeSelector", "allNodes")):
        why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        found += wrong.invalid(where, None, why)
    for name, value in attributes.items():
        found += _qualified(name, f"{where}.attributes") + _attribute(value, f"{where}.attributes[{name}]")
    for name, value in capacity.items():
        found += _qualified(name, f"{where}.capacity")
        if value.get("requestPolicy") and not device.get("allowMultipleAllocations"):
            why = "allowMultipleAllocations must be true"
            found += wrong.forbidden(f"{where}.capacity[{name}].requestPolicy", why)
    found += too_many(device.get("consumesCounters") or [], _CONSUMED_SETS, f"{where}.consumesCounters")
    return found + _taints(device, where) + _conditions(device, where)


def _qualified(name: str, field: str) -> Causes:
    """Check the name of an attribute or a capacity, with or without a domain."""
    domain, slash, identifier = name.rpartition("/")
    if slash and not re.fullmatch(wrong.SUBDOMAIN, domain):
        return wrong.invalid(field, name, "the domain must be a lowercase RFC 1123 subdomain")
    good = re.fullmatch(_IDENTIFIER, identifier) and len(identifier) <= 32
    return [] if good else wrong.invalid(field, identifier, _NO_IDENTIFIER)


def _attribute(value: Mapping[str, Any], field: str) -> Causes:
    stated = [each for each in _VALUES if value.get(each) is not None]
    if len(stated) != 1:
        return wrong.invalid(field, value or "", "exactly one value must be specified")
    text = value[stated[0]]
    if stated[0] in ("string", "version") and len(str(text).encode()) > _LONGEST_VALUE:
        return [("FieldValueTooLong", f"{field}.{stated[0]}", f"Too long: may not be more than {_LONGEST_VALUE} bytes")]
    if stated[0] == "version" and not _SEMVER.fullmatch(text):
        return wrong.invalid(f"{field}.version", text, "must be a string compatible with semver.org spec 2.0.0")
    return []


def _taints(device: Mapping[str, Any], where: str) -> Causes:
    taints = device.get("taints") or []
    found = too_many(taints, _TAINTS, f"{where}.taints")
    for index, each in enumerate(taints if not found else ()):
        found += _taint(each, f"{where}.taints[{index}]")
    return found


def _taint(taint: Mapping[str, Any], field: str) -> Causes:
    found = wrong.label_key(taint.get("key") or "", f"{field}.key")
    if not taint.get("effect"):
        found += wrong.required(f"{field}.effect")
    elif taint["effect"] not in EFFECTS:
        found += wrong.unsupported(f"{field}.effect", taint["effect"], EFFECTS)
    return found


def taint_rule(manifest: Mapping[str, Any]) -> Causes:
    """Check a rule that taints devices."""
    spec = structure.mapping(manifest, "spec")
    selector = structure.mapping(spec, "deviceSelector")
    found = driver(selector, "spec.deviceSelector.driver") if selector.get("driver") else []
    return found + _taint(structure.mapping(spec, "taint"), "spec.taint")


def _conditions(device: Mapping[str, Any], where: str) -> Causes:
    found: Causes = []
    for field, other in (
        ("bindingConditions", "bindingFailureConditions"),
        ("bindingFailureConditions", "bindingConditions"),
    ):
        found += too_many(device.get(field) or [], _CONDITIONS, f"{where}.{field}")
        if device.get(field) and not device.get(other):
            found += wrong.invalid(f"{where}.{other}", None, f"{other} are required to use {field}")
    return found
