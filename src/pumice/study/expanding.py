"""Workloads as the pods that their controllers would make of them, so that they can be tried before they exist; Volcano's Jobs stay whole, their controller is run."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
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
    found = kinds.find(version, name)
    known = found if found not in kinds.FOR_CONTROLLERS else None
    if name in _REPLICATED and isinstance(spec.get("template"), dict):
        pods = [_pod(manifest, spec["template"], f"-{index}") for index in range(_count(spec.get(_REPLICATED[name])))]
        return [*([manifest] if known is not None else []), *pods]
    return [manifest] if known is not None else None


def _pod(owner: Manifest, template: Any, suffix: str) -> Manifest:
    """Return one pod of a workload; it gets a group of its own."""
    metadata = copy.deepcopy(dict(manifests.mapping(template.get("metadata"))))
    spec = copy.deepcopy(dict(manifests.mapping(template.get("spec"))))
    name = owner["metadata"]["name"]
    metadata["name"] = f"{name}{suffix}"
    if "namespace" in owner["metadata"]:
        metadata["namespace"] = owner["metadata"]["namespace"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _count(value: object) -> int:
    return min(value, MOST) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1
