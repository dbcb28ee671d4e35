"""How much of a device's capacities a request takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.model.devices.offers import Capacity, Device


def consumed(device: Device, asked: Mapping[str, int]) -> dict[str, int] | None:
    """Return what a request takes of each capacity of a device, None if the device cannot give it however idle it is.

    A device that is not shared is taken whole, and must only have enough.
    """
    if any(name not in device.capacity for name in asked):
        return None
    if not device.shared:
        return {} if all(units <= device.capacity[name].value for name, units in asked.items()) else None
    taken: dict[str, int] = {}
    for name, found in device.capacity.items():
        units = rounded(found, asked.get(name))
        if units is None or units > found.value:
            return None
        taken[name] = units
    return taken


def rounded(found: Capacity, asked: int | None) -> int | None:
    """Round a request by the policy of a capacity; None if it is above everything that may be asked for."""
    if asked is None:
        return found.value if found.default is None else found.default
    if found.values:
        return next((value for value in found.values if value >= asked), None)
    if found.steps is not None:
        least, most, step = found.steps.least, found.steps.most, found.steps.step
        if asked <= least:
            return least
        units = asked if step is None else least - (least - asked) // step * step
        return None if most is not None and units > most else units
    return asked
