"""Workloads as the pods that their controllers would make of them, so that they can be tried before they exist."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.scenario import manifests

if TYPE_CHECKING:
    from pumice.study.state import Manifest

MOST: Final = 100_000
_REPLICATED: Final = {
    "Deployment": "replicas",
    "StatefulSet": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}


def expand(manifest: Manifest) -> list[Manifest] | None:
    """Return the objects to be stored for a manifest; None if nobody here knows what it is."""
    version, name = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    spec = manifests.mapping(manifest.get("spec"))
    if (version, name) == (kinds.JOB.api_version, kinds.JOB.name):
        return _volcano_job(manifest, spec)
    found = kinds.find(version, name)
    known = found if found not in kinds.FOR_CONTROLLERS else None
    if name in _REPLICATED and isinstance(spec.get("template"), dict):
        pods = [_pod(manifest, spec["template"], f"-{index}") for index in range(_count(spec.get(_REPLICATED[name])))]
        return [*([manifest] if known is not None else []), *pods]
    return [manifest] if known is not None else None


def _volcano_job(job: Manifest, spec: Any) -> list[Manifest]:
    """Return the group and the pods of a Volcano Job; the group carries the name of the job."""
    metadata = job["metadata"]
    tasks = [task for task in manifests.sequence(spec.get("tasks")) if isinstance(task, dict)]
    counts = {str(task.get("name") or f"task{index}"): _count(task.get("replicas")) for index, task in enumerate(tasks)}
    minimums = {str(task["name"]): task["minAvailable"] for task in tasks if isinstance(task.get("minAvailable"), int)}
    fields = {
        "minMember": spec.get("minAvailable") or sum(counts.values()),
        "queue": spec.get("queue"),
        "priorityClassName": spec.get("priorityClassName"),
        "minTaskMember": minimums or None,
        "networkTopology": spec.get("networkTopology"),
    }
    group = {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": kinds.POD_GROUP.name,
        "metadata": {key: metadata[key] for key in ("name", "namespace") if key in metadata},
        "spec": {key: value for key, value in fields.items() if value},
    }
    pods = [
        _pod(
            job, task.get("template") or {}, f"-{role}-{index}", role, str(spec.get("schedulerName") or names.SCHEDULER)
        )
        for task, (role, count) in zip(tasks, counts.items(), strict=True)
        for index in range(count)
    ]
    return [job, group, *pods]


def _pod(owner: Manifest, template: Any, suffix: str, role: str = "", scheduler: str = "") -> Manifest:
    """Return one pod of a workload; of a Volcano Job it belongs to the job's group, of others it gets a group of its own."""
    metadata = copy.deepcopy(dict(manifests.mapping(template.get("metadata"))))
    spec = copy.deepcopy(dict(manifests.mapping(template.get("spec"))))
    name = owner["metadata"]["name"]
    metadata["name"] = f"{name}{suffix}"
    if "namespace" in owner["metadata"]:
        metadata["namespace"] = owner["metadata"]["namespace"]
    if role:
        metadata["annotations"] = {
            **manifests.mapping(metadata.get("annotations")),
            names.GROUP_NAME: name,
            names.TASK_SPEC: role,
        }
        spec.setdefault("schedulerName", scheduler)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _count(value: object) -> int:
    return min(value, MOST) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1
