"""What Volcano's documentation names and its code does not read: accepted with a warning that says what takes its place, since a file that was copied from there is no mistake of who copied it.

The one exception to the rule that a file says nothing which has no effect; whatever is not on these lists is refused as before.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

ACTIONS: Final = {
    "elect": "chose a job for which nodes were set aside; room is held here for every job that victims left for",
    "reserve": "set nodes aside for one job; room is held here for every job that victims left for",
}
PLUGINS: Final = {
    "reservation": "belonged to the actions elect and reserve; room is held here for every job that victims left for",
    "dynamicresources": "was part of no release; predicates serves claims of devices by predicate.DynamicResourceAllocationEnable",
}
CONFIGURATIONS: Final = {"init-params": "is for the scheduler plugin that comes with Ascend's own components"}

_SHARED_CARDS: Final = "cards are shared by plugin deviceshare and its arguments of the same names"
_PROPORTIONS: Final = "plugin resource-strategy-fit keeps proportions, by its argument proportional"
_EVERY_QUEUE: Final = "pods of every queue and with any labels may be moved"
_AVERAGES: Final = "averages are those of ten minutes; write cpu and mem"
ARGUMENTS: Final = {
    'plugin "predicates"': {
        "predicate.GPUSharingEnable": _SHARED_CARDS,
        "predicate.GPUNumberEnable": _SHARED_CARDS,
        "predicate.NodeLockEnable": _SHARED_CARDS,
        "predicate.ProportionalEnable": _PROPORTIONS,
        "predicate.resources": _PROPORTIONS,
        "predicate.resources.*": _PROPORTIONS,
    },
    'plugin "rescheduling"': dict.fromkeys(("queueSelector", "labelSelector"), _EVERY_QUEUE),
    'plugin "usage"': {
        "type": "loads are averages of ten minutes whatever it says",
        "period": "loads are averages of ten minutes whatever it says",
    },
    '"thresholds" of plugin "usage"': dict.fromkeys(
        ("CPUUsageAvg.*", "MEMUsageAvg.*", "CpuUsageAvg.*", "MemUsageAvg.*"), _AVERAGES
    ),
    'action "enqueue"': {
        "overcommit-factor": "it is an argument of plugin overcommit",
        "enqueue-action-idleres-mul": "plugin overcommit has an argument overcommit-factor",
    },
}
METRICS_TYPES: Final = {"prometheus_adapt": "prometheus_adaptor"}
"""A name of a source → the one that is meant."""


def argument(owner: str, key: str) -> str:
    """Say what takes the place of an argument; empty if it is not listed."""
    known = ARGUMENTS.get(owner, {})
    return next((why for pattern, why in known.items() if fnmatchcase(key, pattern)), "")


def remark(why: str) -> str:
    """Word the warning."""
    return f"Volcano's documentation names it and its code does not read it, nor does anything here: {why}"
