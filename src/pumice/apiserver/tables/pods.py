"""The cells of pods: how many containers are ready, what state it is in, how often it was restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.apiserver.tables import ages
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping


def containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the statuses of a pod's containers."""
    found = structure.mapping(pod, "status").get("containerStatuses")
    return found if isinstance(found, list) else []


def ready(pod: Mapping[str, Any], _: int) -> str:
    """Say how many containers of how many are ready."""
    whole = len(structure.mapping(pod, "spec").get("containers") or ())
    return f"{sum(bool(each.get('ready')) for each in containers(pod))}/{whole}"


def status(pod: Mapping[str, Any], _: int) -> str:
    """Say in one word what a pod does, or why it does not."""
    told = structure.mapping(pod, "status")
    reason = told.get("reason") or told.get("phase") or "Unknown"
    if structure.mapping(structure.condition(pod, "PodScheduled")).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    for each in reversed(containers(pod)):
        state = structure.mapping(each, "state")
        waiting, ended = structure.mapping(state, "waiting"), structure.mapping(state, "terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended:
            reason = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
    running = any("running" in structure.mapping(each, "state") and each.get("ready") for each in containers(pod))
    if reason == "Completed" and running:
        is_ready = structure.mapping(structure.condition(pod, "Ready")).get("status") == "True"
        reason = "Running" if is_ready else "NotReady"
    if pod["metadata"].get("deletionTimestamp"):
        reason = "Unknown" if told.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def restarts(pod: Mapping[str, Any], now: int) -> str:
    """Say how often containers were started again, and when last."""
    count = sum(int(each.get("restartCount", 0)) for each in containers(pod))
    last = [structure.mapping(each, "lastState", "terminated").get("finishedAt") for each in containers(pod)]
    moments = [each for each in last if each]
    return f"{count} ({ages.since(max(moments), now)} ago)" if count and moments else str(count)


def gates(pod: Mapping[str, Any], _: int) -> str:
    """Say how many readiness gates are passed."""
    wanted = structure.mapping(pod, "spec").get("readinessGates") or ()
    if not wanted:
        return "<none>"
    passed = sum(
        structure.mapping(structure.condition(pod, each.get("conditionType"))).get("status") == "True"
        for each in wanted
    )
    return f"{passed}/{len(wanted)}"
