"""Attributes in which the devices of a claim are to be alike, or to differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.devices.offers import Device
    from pumice.model.devices.wanted import Constraint

Value = tuple[str, object]


def value_of(device: Device, attribute: str) -> Value | None:
    """Look an attribute up by its full name, or by the short one if its domain is the driver's; returns type and value."""
    found = device.object.attributes.get(attribute)
    if found is None:
        domain, _, short = attribute.rpartition("/")
        found = device.object.attributes.get(short) if domain == device.id[0] else None
    if found is None:
        return None
    if found.int_value is not None:
        return "int", found.int_value
    if found.bool_value is not None:
        return "bool", found.bool_value
    return ("string", found.string_value) if found.string_value is not None else ("version", found.version_value)


class Constraining:
    """The constraints of one claim, and the values of the devices that it has picked so far."""

    __slots__ = ("_constraints", "_values")

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        self._constraints = constraints
        self._values: list[list[Value]] = [[] for _ in constraints]

    def add(self, request: str, device: Device) -> bool:
        """Add a device of a request if it keeps all constraints."""
        added: list[tuple[int, Value]] = []
        for index, constraint in enumerate(self._constraints):
            if not constraint.covers(request):
                continue
            value = value_of(device, constraint.attribute)
            held = self._values[index]
            if value is None or (value in held if constraint.distinct else held and value != held[0]):
                return False
            added.append((index, value))
        for index, value in added:
            self._values[index].append(value)
        return True

    def remove(self, request: str) -> None:
        """Take the device back that was added last, of a request."""
        for index, constraint in enumerate(self._constraints):
            if constraint.covers(request):
                self._values[index].pop()
