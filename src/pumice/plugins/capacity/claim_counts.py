"""What the claims of queues count for: a claim that several pods of a queue use counts once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import quantity
from pumice.model.devices import amounts, wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import resource
    from pumice.model.devices.registry import Devices
    from pumice.model.task import Task

COUNT: Final = ""
Held = dict[tuple[str, str], int]  # class and dimension, the number of devices being the empty one


class Standing(msgspec.Struct):
    """A claim in a queue: the pods that use it, those of them that are on the way out, and whether a group was let in with it."""

    amounts: Held
    staying: dict[str, Task]
    going: dict[str, Task]
    promised: bool = False


class ClaimCounts:
    """What the claims of one queue, and of those below it, count for: of pods that stay, of all that are there, and of groups that were let in, too."""

    __slots__ = ("claims", "staying", "there", "with_promised")

    def __init__(self) -> None:
        self.claims: dict[str, Standing] = {}
        self.staying: Held = {}
        self.there: Held = {}
        self.with_promised: Held = {}

    def change(self, key: str, amounts_of: Held, task: Task, sign: int, *, going: bool) -> None:
        """Let a pod use a claim from now on, or not any more."""
        standing = self._leave(key) or Standing(amounts_of, {}, {})
        users = standing.going if going else standing.staying
        if sign > 0:
            users[task.uid] = task
        else:
            users.pop(task.uid, None)
        self._enter(key, standing)

    def has(self, key: str, *, going: bool) -> bool:
        """Tell whether a claim counts for pods that are there, those on the way out included or not."""
        standing = self.claims.get(key)
        return standing is not None and bool(standing.staying or (going and standing.going))

    def promise(self, key: str, amounts_of: Held, *, kept: bool = True) -> None:
        """Note that a group was let in that has a claim, or that it takes no budget after all."""
        standing = self._leave(key) or Standing(amounts_of, {}, {})
        standing.promised = kept
        self._enter(key, standing)

    def _leave(self, key: str) -> Standing | None:
        standing = self.claims.pop(key, None)
        if standing is not None:
            self._add(standing, -1)
        return standing

    def _enter(self, key: str, standing: Standing) -> None:
        if standing.staying or standing.going or standing.promised:
            self.claims[key] = standing
            self._add(standing, 1)

    def _add(self, standing: Standing, sign: int) -> None:
        there = bool(standing.staying or standing.going)
        for total, counts in (
            (self.staying, bool(standing.staying)),
            (self.there, there),
            (self.with_promised, there or standing.promised),
        ):
            for kind, units in standing.amounts.items() if counts else ():
                total[kind] = total.get(kind, 0) + sign * units


def asked(devices: Devices, use: wanted.ClaimUse) -> Held:
    """Return what a claim counts for: what it has, else what it asks for: of several options the largest, of all devices one."""
    claim = devices.claims.get(use.key)
    spec = claim.spec if claim is not None else use.special.spec if use.special is not None else None
    if spec is None:
        return {}
    found = wanted.read(spec)
    allocation = devices.allocation(use.key)
    needs = {need.name: need for request in found.requests for need in request.options}
    total: Held = {}
    if allocation is not None:
        for result in allocation.devices.results:
            need = needs.get(result.request)
            if need is not None:
                _add(total, need.device_class, 1, _consumed(result) or need.capacity)
        return total
    for request in found.requests:
        need = max(request.options, key=lambda each: each.least)
        _add(total, need.device_class, need.least, need.capacity)
    return total


def _add(total: Held, name: str, count: int, capacity: Mapping[str, int]) -> None:
    total[name, COUNT] = total.get((name, COUNT), 0) + count * quantity.NANO
    for dimension, units in capacity.items():
        total[name, dimension] = total.get((name, dimension), 0) + count * units


def _consumed(result: resource.DeviceResult) -> dict[str, int]:
    try:
        return {name: amounts.nanos(text) for name, text in result.consumed_capacity.items()}
    except quantity.QuantityError:
        return {}
