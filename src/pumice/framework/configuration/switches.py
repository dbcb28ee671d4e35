"""The names by which a file turns extension points on and off, exactly as Volcano and kube-batch spell them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pumice.framework import points

if TYPE_CHECKING:
    from collections.abc import Mapping

HIERARCHY: Final = "enableHierarchy"
HIERARCHICAL: Final = "Hierarchy"

IDLE: Final = ("enableTargetJob", "enableReservedNodes", "enabledClusterOrder")
"""Switches that the peers' files may carry and that govern nothing here."""

POINTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        switch: tuple(point.name for point in points.POINTS if switch in point.switches)
        for switch in (*(each for point in points.POINTS for each in point.switches), HIERARCHY, *IDLE)
    }
    | {HIERARCHY: (HIERARCHICAL,)}
)
"""Switch → the points it governs. Hierarchy is no point but an option; a plugin that knows it lists it as one."""

SWITCHES: Final[Mapping[str, bool]] = MappingProxyType(
    {name: name not in (HIERARCHY, "enabledClusterOrder") for name in POINTS}
)
"""Every switch with the value it has when it is not written."""

DISABLING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "disableJobOrder": "enableJobOrder",
        "disableJobReady": "enableJobReady",
        "disableTaskOrder": "enableTaskOrder",
        "disablePreemptable": "enablePreemptable",
        "disableReclaimable": "enableReclaimable",
        "disableQueueOrder": "enableQueueOrder",
        "disablePredicate": "enablePredicate",
    }
)
"""kube-batch 0.4: a switch that turns off → the switch it is about."""

FLAT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "preemptable": "enablePreemptable",
        "joborder": "enableJobOrder",
        "taskorder": "enableTaskOrder",
        "jobready": "enableJobReady",
    }
)
"""kube-batch 0.3: last part of a key `plugin.<name>.<part>` → the switch it is about."""


def provides(listed: frozenset[str], switches: Mapping[str, bool], point: str) -> bool:
    """Tell whether a plugin may register a point and the file leaves it on."""
    return point in listed and points.BY_NAME[point].is_on(switches)
