"""The cells of pods: how many containers are ready, what state it is in, how often it was restarted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.apiserver.tables import ages
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping


def containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the statuses of a pod's containers."""
    return _maps(structure.mapping(pod, "status").get("containerStatuses"))


def _maps(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _sidecars(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the statuses of the init containers that stay."""
    declared = _maps(structure.mapping(pod, "spec").get("initContainers"))
    staying = [each.get("name") for each in declared if each.get("restartPolicy") == "Always"]
    found = _maps(structure.mapping(pod, "status").get("initContainerStatuses"))
    return [each for each in found if each.get("name") in staying]


def ready(pod: Mapping[str, Any], _: int) -> str:
    """Say how many containers of how many are ready."""
    spec = structure.mapping(pod, "spec")
    staying = [each for each in _maps(spec.get("initContainers")) if each.get("restartPolicy") == "Always"]
    whole = len(_maps(spec.get("containers"))) + len(staying)
    return f"{sum(bool(each.get('ready')) for each in (*containers(pod), *_sidecars(pod)))}/{whole}"


def _starting(pod: Mapping[str, Any]) -> str:
    """Say what the first init container that is not done does, empty if all are."""
    found = _maps(structure.mapping(pod, "status").get("initContainerStatuses"))
    staying = _sidecars(pod)
    for index, each in enumerate(found):
        state = structure.mapping(each, "state")
        ended, waiting = structure.mapping(state, "terminated"), structure.mapping(state, "waiting")
        if (ended and not ended.get("exitCode")) or (each in staying and each.get("started")):
            continue
        if ended:
            return f"Init:{_ending(ended)}"
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(_maps(structure.mapping(pod, 'spec').get('initContainers')))}"
    return ""


def _ending(ended: Mapping[str, Any]) -> str:
    """Say how a container ended."""
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def status(pod: Mapping[str, Any], _: int) -> str:
    """Say in one word what a pod does, or why it does not."""
    told = structure.mapping(pod, "status")
    reason = told.get("reason") or told.get("phase") or "Unknown"
    if structure.mapping(structure.condition(pod, "PodScheduled")).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    reason = _starting(pod) or reason
    for each in reversed(containers(pod)) if not str(reason).startswith("Init:") else ():
        state = structure.mapping(each, "state")
        waiting, ended = structure.mapping(state, "waiting"), structure.mapping(state, "terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended:
            reason = _ending(ended)
    running = any("running" in structure.mapping(each, "state") and each.get("ready") for each in containers(pod))
    if reason == "Completed" and running:
        is_ready = structure.mapping(structure.condition(pod, "Ready")).get("status") == "True"
        reason = "Running" if is_ready else "NotReady"
    if structure.mapping(pod, "metadata").get("deletionTimestamp"):
        if told.get("reason") == "NodeLost":
            return "Unknown"
        if told.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(reason)


def restarts(pod: Mapping[str, Any], now: int) -> str:
    """Say how often containers were started again, and when last."""
    counted = [*containers(pod), *_sidecars(pod)]
    if _starting(pod):
        counted = _maps(structure.mapping(pod, "status").get("initContainerStatuses"))
    count = sum(int(each.get("restartCount", 0)) for each in counted)
    last = [structure.mapping(each, "lastState", "terminated").get("finishedAt") for each in counted]
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
