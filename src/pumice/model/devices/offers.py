"""What drivers offer: devices as they are compared and counted, read once from a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pumice.api import quantity, resource
from pumice.model import resources
from pumice.model.devices import amounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DeviceId: TypeAlias = tuple[str, str, str]
"""Driver, pool and name, by which a device is known in the whole cluster."""

MOST_DEVICES = 128
MOST_SETS = 8
MOST_COUNTERS = 32
MOST_PROPERTIES = 32
MOST_CONSUMED = 2

_CONTENT = msgspec.msgpack.Encoder(order="deterministic")


class Steps(msgspec.Struct, frozen=True):
    """From how much to how much may be asked for, in which steps; `most` and `step` may be absent."""

    least: int
    most: int | None
    step: int | None


class Capacity(msgspec.Struct, frozen=True):
    """What a device has of something, and how requests for a part of it are rounded."""

    value: int
    text: str
    default: int | None = None
    values: tuple[int, ...] = ()
    steps: Steps | None = None


class Device(msgspec.Struct, frozen=True):
    """One device; `content` is everything that a selector can tell two devices apart by, so equal content means equal answers."""

    id: DeviceId
    object: resource.Device
    content: bytes
    capacity: dict[str, Capacity]
    counters: tuple[tuple[str, str, int], ...]  # set, counter, amount
    shared: bool  # whether it may be given to several claims at a time

    @property
    def has_conditions(self) -> bool:
        """Whether something must become true after the device is given and before the pod is bound."""
        return bool(self.object.binding_conditions)


class Slice(msgspec.Struct, frozen=True):
    """A slice, read."""

    object: resource.ResourceSlice
    devices: tuple[Device, ...]
    counters: dict[str, dict[str, int]]
    twice: str = ""  # a name that two devices or two sets of counters of the slice have

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.object.metadata.name

    @property
    def pool(self) -> tuple[str, str]:
        """Driver and name of its pool."""
        return self.object.spec.driver, self.object.spec.pool.name


def read(found: resource.ResourceSlice) -> Slice:
    """Read a slice, or raise the `BadValueError` that names the field."""
    spec = found.spec
    _bounded(spec.devices, MOST_DEVICES, "spec.devices")
    _bounded(spec.shared_counters, MOST_SETS, "spec.sharedCounters")
    if not spec.driver:
        raise resources.BadValueError("spec.driver", "must be set, but is absent or empty")
    if not spec.pool.name:
        raise resources.BadValueError("spec.pool.name", "must be set, but is absent or empty")
    devices = tuple(_device(spec, each, f"spec.devices[{index}]") for index, each in enumerate(spec.devices))
    counters = {
        each.name: _counters(each.counters, f"spec.sharedCounters[{index}].counters")
        for index, each in enumerate(spec.shared_counters)
    }
    twice = _twice(each.name for each in spec.devices) or _twice(each.name for each in spec.shared_counters)
    return Slice(found, devices, counters, twice)


def _device(spec: resource.ResourceSliceSpec, found: resource.Device, field: str) -> Device:
    if not found.name:
        raise resources.BadValueError(f"{field}.name", "must be set, but is absent or empty")
    if len(found.attributes) + len(found.capacity) > MOST_PROPERTIES:
        count = len(found.attributes) + len(found.capacity)
        raise resources.BadValueError(field, f"has {count} attributes and capacities; at most {MOST_PROPERTIES} are")
    _bounded(found.consumes_counters, MOST_CONSUMED, f"{field}.consumesCounters")
    for name, attribute in found.attributes.items():
        if sum(value is not None for value in _values(attribute)) != 1:
            raise resources.BadValueError(f"{field}.attributes[{name}]", "must have exactly one value")
    shared = bool(found.allow_multiple_allocations)
    return Device(
        (spec.driver, spec.pool.name, found.name),
        found,
        _CONTENT.encode((spec.driver, found.attributes, found.capacity, shared)),
        {name: _capacity(each, f"{field}.capacity[{name}]") for name, each in found.capacity.items()},
        tuple(
            (each.counter_set, name, units)
            for index, each in enumerate(found.consumes_counters)
            for name, units in _counters(each.counters, f"{field}.consumesCounters[{index}].counters").items()
        ),
        shared,
    )


def _values(attribute: resource.DeviceAttribute) -> tuple[object, ...]:
    return attribute.int_value, attribute.bool_value, attribute.string_value, attribute.version_value


def _capacity(found: resource.DeviceCapacity, field: str) -> Capacity:
    value, text, policy = _amount(found.value, f"{field}.value"), str(found.value), found.request_policy
    if policy is None:
        return Capacity(value, text)
    at = f"{field}.requestPolicy"
    steps = None
    if policy.valid_range is not None:
        least = _optional(policy.valid_range.min, f"{at}.validRange.min") or 0
        most = _optional(policy.valid_range.max, f"{at}.validRange.max")
        step = _optional(policy.valid_range.step, f"{at}.validRange.step")
        if step is not None and step <= 0:
            raise resources.BadValueError(f"{at}.validRange.step", f"is {policy.valid_range.step}; it must be above 0")
        steps = Steps(least, most, step)
    values = tuple(_amount(each, f"{at}.validValues[{index}]") for index, each in enumerate(policy.valid_values))
    return Capacity(value, text, _optional(policy.default, f"{at}.default"), tuple(sorted(values)), steps)


def _optional(text: resource.Amount | None, field: str) -> int | None:
    return None if text is None else _amount(text, field)


def _amount(text: resource.Amount, field: str) -> int:
    try:
        units = amounts.nanos(text)
    except quantity.QuantityError as error:
        raise resources.BadValueError(field, str(error)) from None
    if units < 0:
        raise resources.BadValueError(field, f"is {text}, which is negative")
    return units


def _counters(found: Mapping[str, resource.Counter], field: str) -> dict[str, int]:
    if len(found) > MOST_COUNTERS:
        raise resources.BadValueError(field, f"has {len(found)} counters; at most {MOST_COUNTERS} are read")
    return {name: _amount(each.value, f"{field}[{name}].value") for name, each in found.items()}


def _bounded(found: tuple[object, ...], most: int, field: str) -> None:
    if len(found) > most:
        raise resources.BadValueError(field, f"has {len(found)} entries; at most {most} are read")


def _twice(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
