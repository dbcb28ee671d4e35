"""The statuses that kubelets report, as real ones write them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from pumice.api import names, timestamp
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

Document = dict[str, Any]
_SIMULATED: Final = "simulated://"
_READY: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def address(uid: str) -> str:
    """Make up the address of a pod, the same for as long as it lives."""
    digest = hashlib.blake2s(uid.encode(), digest_size=2).digest()
    return f"10.244.{digest[0]}.{digest[1] or 1}"


def started(pod: Mapping[str, Any], when: str) -> Document:
    """Give the status of a pod whose containers run, in short: what schedulers and controllers read of it."""
    conditions = [_plain(names.CONDITION_READY, when)]
    if structure.condition(pod, names.CONDITION_POD_SCHEDULED) is None:
        conditions.insert(0, _plain(names.CONDITION_POD_SCHEDULED, when))
    return {"phase": names.PHASE_RUNNING, "startTime": when, "conditions": conditions}


def running(pod: Mapping[str, Any], when: str, host: str, restarts: int = 0, last: Document | None = None) -> Document:
    """Give the status of a pod whose containers run."""
    spec, uid = structure.mapping(pod, "spec"), pod["metadata"]["uid"]
    started = structure.mapping(pod, "status").get("startTime") or when
    status: Document = {
        "phase": "Running",
        "observedGeneration": pod["metadata"].get("generation", 1),
        "startTime": started,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": host if spec.get("hostNetwork") else address(uid),
        "podIPs": [{"ip": host if spec.get("hostNetwork") else address(uid)}],
        "conditions": [condition(name, when) for name in _READY],
        "containerStatuses": [
            _container(each, {"running": {"startedAt": when}}, ready=True, restarts=restarts, last=last)
            | granted(pod, each)
            for each in _listed(spec, "containers")
        ],
    }
    if listed := _listed(spec, "initContainers"):
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": when, "finishedAt": when}}
        status["initContainerStatuses"] = [_container(each, done, ready=True) | granted(pod, each) for each in listed]
    if spec.get("resources"):
        status |= amounts(structure.mapping(pod, "status")) or asked(spec)
    return status


def restarted(pod: Mapping[str, Any], when: str, host: str) -> Document:
    """Give the status of a pod whose containers were started again."""
    last = dict(structure.mapping(first_container(pod), "lastState"))
    return running(pod, when, host, restart_count(pod) + 1, last)


def ended(pod: Mapping[str, Any], when: str, exit_code: int) -> Document:
    """Give the status of a pod that has ended for good."""
    state = terminated(pod, when, exit_code)
    phase, reason = ("Failed", "PodFailed") if exit_code else ("Succeeded", "PodCompleted")
    over = [
        condition(name, when, "False", reason) for name in ("Ready", "ContainersReady", "PodReadyToStartContainers")
    ]
    return {
        "phase": phase,
        "conditions": over,
        "containerStatuses": [
            _container(each, {"terminated": state}, ready=False, restarts=restart_count(pod))
            for each in _listed(structure.mapping(pod, "spec"), "containers")
        ],
    }


def waiting(pod: Mapping[str, Any], when: str, exit_code: int, seconds: int) -> Document:
    """Give the status of a pod whose containers wait to be started again."""
    name = pod["metadata"]["name"]
    message = f"back-off {seconds}s restarting failed container of pod {name}_{pod['metadata']['namespace']}"
    reason = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    unready = [condition(each, when, "False", "ContainersNotReady") for each in ("Ready", "ContainersReady")]
    return {
        "conditions": unready,
        "containerStatuses": [
            _container(
                each,
                reason,
                ready=False,
                restarts=restart_count(pod),
                last={"terminated": terminated(pod, when, exit_code)},
            )
            | granted(pod, each)
            for each in _listed(structure.mapping(pod, "spec"), "containers")
        ],
    }


def terminated(pod: Mapping[str, Any], when: str, exit_code: int) -> Document:
    """Give the state of containers that have ended."""
    ran = structure.mapping(first_container(pod), "state", "running")
    began = ran.get("startedAt") or structure.mapping(pod, "status").get("startTime", when)
    reason = "Error" if exit_code else "Completed"
    return {
        "exitCode": exit_code,
        "reason": reason,
        "startedAt": began,
        "finishedAt": when,
        "containerID": _container_id(pod),
    }


def restart_count(pod: Mapping[str, Any]) -> int:
    """Give how often a pod's containers were started again."""
    found = structure.mapping(pod, "status").get("containerStatuses")
    counts = [structure.mapping(each).get("restartCount") for each in found] if isinstance(found, list) else []
    return max((each for each in counts if isinstance(each, int)), default=0)


def first_container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give what the status says of a pod's first container."""
    found = structure.mapping(pod, "status").get("containerStatuses")
    return structure.mapping(found[0]) if isinstance(found, list) and found else {}


def is_waiting(pod: Mapping[str, Any]) -> bool:
    """Tell whether containers that a kubelet of ours had started wait to be started again."""
    first = first_container(pod)
    ours = str(first.get("containerID", "")).startswith(_SIMULATED)
    return ours and "waiting" in structure.mapping(first, "state")


def previous_run(pod: Mapping[str, Any]) -> tuple[int, int] | None:
    """Give when containers were started and ended before they were started again, None if they never were."""
    last = structure.mapping(first_container(pod), "lastState", "terminated")
    try:
        return timestamp.parse(last.get("startedAt", "")), timestamp.parse(last.get("finishedAt", ""))
    except timestamp.TimestampError:
        return None


def condition(name: str, when: str, status: str = "True", reason: str = "") -> Document:
    """Give a condition."""
    found = {"type": name, "status": status, "lastProbeTime": None, "lastTransitionTime": when}
    return {**found, "reason": reason} if reason else found


def _listed(spec: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    found = spec.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _plain(name: str, when: str) -> Document:
    return {"type": name, "status": "True", "lastTransitionTime": when}


def _container(
    container: Mapping[str, Any], state: Document, *, ready: bool, restarts: int = 0, last: Document | None = None
) -> Document:
    image = container.get("image", "")
    return {
        "name": container.get("name", ""),
        "image": image,
        "imageID": f"{_SIMULATED}{image}",
        "containerID": f"{_SIMULATED}{container.get('name', '')}",
        "ready": ready,
        "started": ready and "running" in state,
        "restartCount": restarts,
        "state": state,
        "lastState": last or {},
    }


def granted(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Document:
    """Give the amounts that a container has: those that its kubelet has granted, at first those that it asks for."""
    status = structure.mapping(pod, "status")
    known = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    reported: Mapping[str, Any] = next(
        (each for each in known if structure.mapping(each).get("name") == container.get("name")), {}
    )
    return amounts(reported) or asked(container)


def amounts(reported: Mapping[str, Any]) -> Document:
    """Give the amounts that are reported of a container or of a pod as a whole."""
    return {field: reported[field] for field in ("allocatedResources", "resources") if field in reported}


def asked(holder: Mapping[str, Any]) -> Document:
    """Give the amounts that a container, or a spec as a whole, asks for, as they are reported once they are granted."""
    stated = structure.mapping(holder, "resources")
    found = {part: stated[part] for part in ("limits", "requests") if stated.get(part)}
    return (
        {"allocatedResources": found["requests"], "resources": found} if "requests" in found else {"resources": found}
    )


def _container_id(pod: Mapping[str, Any]) -> str:
    return f"{_SIMULATED}{pod['metadata']['uid']}"
