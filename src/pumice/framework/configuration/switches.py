"""The names by which a file turns extension points on and off, exactly as Volcano and kube-batch spell them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HIERARCHY: Final = "enableHierarchy"

POINTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "enableJobOrder": ("JobOrder",),
        "enableJobReady": ("JobReady",),
        "enableJobPipelined": ("JobPipelined",),
        "enableJobEnqueued": ("JobEnqueueable", "JobEnqueued"),
        "enableTaskOrder": ("TaskOrder",),
        "enablePreemptable": ("Preemptable", "SimulateAddTask", "SimulateRemoveTask"),
        "enableReclaimable": ("Reclaimable",),
        "enablePreemptive": ("Preemptive",),
        "enableQueueOrder": ("QueueOrder",),
        "enablePredicate": ("PrePredicate", "Predicate", "SimulatePredicate"),
        "enableBestNode": ("BestNode",),
        "enableNodeOrder": ("NodeOrder", "NodeMap", "NodeReduce", "BatchNodeOrder"),
        "enableTargetJob": ("TargetJob",),
        "enableReservedNodes": ("ReservedNodes",),
        "enableJobStarving": ("JobStarving",),
        HIERARCHY: ("Hierarchy",),
        "enabledVictim": ("VictimTasks",),
        "enabledOverused": ("Overused",),
        "enabledAllocatable": ("Allocatable", "SimulateAllocatable", "SimulateAddTask", "SimulateRemoveTask"),
        "enabledHyperNodeOrder": ("HyperNodeOrder",),
        "enabledSubJobReady": ("SubJobReady",),
        "enabledSubJobPipelined": ("SubJobPipelined",),
        "enabledSubJobOrder": ("SubJobOrder",),
        "enabledHyperNodeGradient": ("HyperNodeGradient", "HyperNodeGradientForJob", "HyperNodeGradientForSubJob"),
        "enabledClusterOrder": ("ClusterOrder",),
    }
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


def provides(points: frozenset[str], switches: Mapping[str, bool], point: str) -> bool:
    """Tell whether a plugin may register a point and the file leaves it on; a point without a switch is always on."""
    governing = [switch for switch, governed in POINTS.items() if point in governed]
    return point in points and (not governing or any(switches[switch] for switch in governing))
