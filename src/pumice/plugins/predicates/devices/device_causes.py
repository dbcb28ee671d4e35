"""Why no node has the devices that a pod asks for, in a sentence: which request finds none, and how the devices stand where it comes nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.plugins.predicates.devices.asking import Asked  # noqa: TC001  msgspec reads the annotations at run time
from pumice.plugins.predicates.devices.search import Refusal  # noqa: TC001  so it does here

if TYPE_CHECKING:
    from collections.abc import Sequence


class Miss(msgspec.Struct, frozen=True):
    """A node that cannot give what a pod asks for."""

    node: str
    asked: Asked
    refusal: Refusal

    @property
    def free(self) -> int:
        """How many devices match and could be had."""
        return self.refusal.matching - self.refusal.in_use - self.refusal.tainted


def told(misses: Sequence[Miss]) -> str:
    """Say which request finds no devices on any node; empty if there are none to speak of."""
    if not misses:
        return ""
    best = max(misses, key=lambda miss: (miss.free, miss.refusal.matching))  # the first of equals
    refusal = best.refusal
    what = _what(best)
    if not refusal.matching:
        return f"no node has a device for {what}"
    count = _count(best)
    devices = f"{count} free devices" if count > 1 else "a free device"
    return f"no node has {devices} for {what}: the freest of {len(misses)}, {best.node}, has {refusal.stand}"


def _what(miss: Miss) -> str:
    """Name what is asked for: a resource by its name, else a request of a claim."""
    asked, request = miss.asked, miss.refusal.request
    key = asked.open[miss.refusal.claim]
    use = next(each for each in asked.uses if each.key == key)
    if use.special is not None:
        named = (each["resourceName"] for each in use.special.mappings if each["requestName"] == request)
        return next(named, request)
    return f"request {request} of claim {use.name}"


def _count(miss: Miss) -> int:
    requests = miss.asked.wanted[miss.refusal.claim].requests
    needs = (need for request in requests for need in request.options if need.name == miss.refusal.request)
    return next((need.least for need in needs), 1)
