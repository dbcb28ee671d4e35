"""What an API server fills in when an object is created: schema defaults, and nothing that judges.

A value of the wrong type stays as it is given, and what hangs below it is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import duration, kinds, names, timestamp
from pumice.api.schemas import flow, language, scheduling, workload
from pumice.sim import deletion, filling, structure
from pumice.sim.filling import child, fill
from pumice.sim.store import has_status_subresource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.sim.identity import Key
    from pumice.sim.priorities import PriorityClasses

Manifest = dict[str, Any]

PODS_PER_NODE = "110"


def default(manifest: Mapping[str, Any], key: Key, *, created: int, now: int, classes: PriorityClasses) -> Manifest:
    """Give a copy of a manifest with everything filled in that its author may leave out."""
    new: Manifest = structure.copied(manifest)
    metadata: Manifest = new["metadata"]
    if key.namespace:
        metadata["namespace"] = key.namespace
    if metadata.get("creationTimestamp") is None:
        metadata["creationTimestamp"] = timestamp.format_timestamp(created)
    if key.kind is kinds.POD:
        _pod(new, classes, now)
    else:
        kind = (key.kind.group, key.kind.name)
        if (schema := _SCHEMAS.get(kind)) is not None:
            filling.by_schema(child(new, "spec"), schema)
        if (further := _FILLERS.get(kind)) is not None:
            further(new)
    return new


def replacement(existing: Mapping[str, Any], manifest: Mapping[str, Any], key: Key) -> Manifest:
    """Give what replaces an object by a manifest.

    As with a real server the creation time stays, a status that is a subresource stays unless another one is given, and a pod does not
    lose its node; a pod that is given another node starts over there.
    """
    new: Manifest = structure.copied(manifest)
    new["metadata"]["creationTimestamp"] = existing["metadata"]["creationTimestamp"]
    moved = False
    if key.kind is kinds.POD:
        node = structure.mapping(existing, "spec").get("nodeName")
        spec = child(new, "spec")
        if node and spec is not None and not spec.get("nodeName"):
            spec["nodeName"] = node
        moved = structure.mapping(new, "spec").get("nodeName") != node
    if new.get("status") is None and "status" in existing and has_status_subresource(key.kind) and not moved:
        new["status"] = structure.copied(existing["status"])
    return new


# ---- pods


def _pod(pod: Manifest, classes: PriorityClasses, now: int) -> None:
    spec, status = child(pod, "spec"), child(pod, "status")
    if spec is not None:
        spec.update(classes.admit(spec))
        filling.requests(spec)
    bound = deletion.is_bound(pod)
    fill(status, {"phase": names.PHASE_RUNNING if bound else names.PHASE_PENDING})
    if status is None:
        return
    if bound:
        _since_creation(pod, status)
    if deletion.is_terminating(pod):
        _terminating(pod, now)


def _since_creation(pod: Manifest, status: Manifest) -> None:
    """Date what a pod given with a node has behind it, being scheduled and perhaps started, to its creation."""
    since = pod["metadata"]["creationTimestamp"]
    _condition(pod, status, names.CONDITION_POD_SCHEDULED, since)
    if status.get("phase") == names.PHASE_RUNNING:
        fill(status, {"startTime": since})
        _condition(pod, status, names.CONDITION_READY, since)


def _condition(manifest: Manifest, status: Manifest, name: str, since: object) -> None:
    conditions = status.get("conditions")
    if conditions is None:
        conditions = status["conditions"] = []
    if isinstance(conditions, list) and structure.condition(manifest, name) is None:
        conditions.append({"type": name, "status": "True", "lastTransitionTime": since})


def _terminating(pod: Manifest, now: int) -> None:
    """Leave a pod given as terminating a grace period: until its mark, or from now if that has passed."""
    metadata = pod["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds")
    if not isinstance(grace, int) or grace <= 0:
        grace = metadata["deletionGracePeriodSeconds"] = max(1, deletion.grace_of(pod) // duration.SECOND)
    try:
        passed = timestamp.parse(metadata["deletionTimestamp"]) <= now
    except timestamp.TimestampError:
        passed = True
    if passed:
        metadata["deletionTimestamp"] = timestamp.format_timestamp(now + grace * duration.SECOND)


# ---- other kinds


def _node(node: Manifest) -> None:
    filling.node(node)
    status = child(node, "status")
    if status is None:
        return
    fill(status, {"allocatable": {}, "capacity": {}})
    room, whole = structure.mapping(status, "allocatable"), structure.mapping(status, "capacity")
    pods = room.get("pods", whole.get("pods", PODS_PER_NODE))
    for amounts in (status["allocatable"], status["capacity"]):
        if isinstance(amounts, dict):
            amounts.setdefault("pods", pods)
    _condition(node, status, names.CONDITION_READY, node["metadata"]["creationTimestamp"])


def _queue(queue: Manifest) -> None:
    fill(child(queue, "status"), {"state": names.QUEUE_OPEN})


def _claim(claim: Manifest) -> None:
    bound = structure.mapping(claim, "spec").get("volumeName")
    fill(child(claim, "status"), {"phase": "Bound" if bound else "Pending"})


_FILLERS: dict[tuple[str, str], Callable[[Manifest], None]] = {
    ("", "Node"): _node,
    ("", "Namespace"): filling.namespace,
    ("", "PersistentVolume"): filling.volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("scheduling.volcano.sh", "Queue"): _queue,
}
_SCHEMAS: dict[tuple[str, str], language.Schema] = {
    ("scheduling.volcano.sh", "PodGroup"): scheduling.POD_GROUP["spec"],
    ("scheduling.volcano.sh", "Queue"): scheduling.QUEUE["spec"],
    ("batch.volcano.sh", "Job"): workload.JOB["spec"],
    ("batch.volcano.sh", "CronJob"): workload.CRON_JOB["spec"],
    ("flow.volcano.sh", "JobTemplate"): flow.JOB_TEMPLATE["spec"],
}


# ---- what is there before anybody comes


def builtin() -> list[Manifest]:
    """Give the objects that every cluster has: the two queues and the system's priority classes."""
    queue = {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue"}
    system = {
        "apiVersion": kinds.PRIORITY_CLASS.api_version,
        "kind": "PriorityClass",
        "preemptionPolicy": "PreemptLowerPriority",
    }
    return [
        {**queue, "metadata": {"name": names.ROOT_QUEUE}, "spec": {"weight": 1, "reclaimable": False}},
        {**queue, "metadata": {"name": names.DEFAULT_QUEUE}, "spec": {"weight": 1, "reclaimable": True}},
        {**system, "metadata": {"name": names.SYSTEM_CLUSTER_CRITICAL}, "value": 2_000_000_000},
        {**system, "metadata": {"name": names.SYSTEM_NODE_CRITICAL}, "value": 2_000_001_000},
    ]
