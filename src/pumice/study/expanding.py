"""Workloads as the pods that their controllers would make of them, so that they can be tried before they exist; Volcano's Jobs stay whole, their controller is run."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.scenario import manifests
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class Bounds:
    """Counts the pods that manifests come to, and the bytes of them, and says when there are too many to be tried."""

    def __init__(self, pods: int, size: int) -> None:
        self._most_pods, self._most_size = pods, size
        self._pods = self._size = 0

    def add(self, manifest: Manifest) -> None:
        """Count one manifest, before anything is made of it."""
        counted = [(count, len(msgspec.json.encode(template))) for count, template in _templates(manifest)]
        pods = sum(count for count, _ in counted)
        self._pods += pods
        self._size += sum(count * size for count, size in counted)
        metadata = manifest["metadata"]
        named = f"{manifest.get('kind')} {metadata.get('namespace') or 'default'}/{metadata['name']}"
        if self._pods > self._most_pods:
            raise StudyError(
                f"{named} would make {pods} pods, {self._pods} with those before it, and at most {self._most_pods} are tried here at once; "
                "pumice what-if takes more"
            )
        if self._size > self._most_size:
            raise StudyError(
                f"{named} would make {pods} pods, which come to {self._size >> 20} MiB with those before it, and at most {self._most_size >> 20} MiB "
                "are tried here at once; pumice what-if takes more"
            )


def _templates(manifest: Manifest) -> Iterator[tuple[int, Any]]:
    """Walk over how many pods come of which templates of a manifest."""
    name, spec = str(manifest.get("kind")), manifests.mapping(manifest.get("spec"))
    if name == "Pod":
        yield 1, spec
    if name in _REPLICATED and "template" in spec:
        yield _number(spec.get(_REPLICATED[name])), spec["template"]
    if name == "Job":
        for task in map(manifests.mapping, manifests.sequence(spec.get("tasks"))):
            yield _number(task.get("replicas")), task.get("template")


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
    return min(_number(value), MOST)


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1
