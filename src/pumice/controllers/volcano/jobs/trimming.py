"""What is kept of objects of which there are many: a controller of 10,000 Jobs knows 100,000 pods.

Texts that many pods have in common are kept once.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.controllers.volcano.jobs import policies
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest = dict[str, Any]
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_ANNOTATIONS: Final = (
    names.JOB_NAME,
    names.JOB_VERSION,
    names.JOB_RETRY_COUNT,
    names.TASK_SPEC,
    names.CONTROLLER_OUT_OF_SYNC,
    policies.REPLACES_EVICTED,
    policies.HAPPENED,
)
_CONTAINER: Final = ("ready", "restartCount", "state")


def pod(manifest: Manifest) -> Manifest:
    """Keep of a pod whose it is, and what became of it."""
    found = metadata_alone(manifest)
    metadata, status = found["metadata"], manifests.mapping(manifest, "status")
    stated = manifests.mapping(manifest, "metadata", "annotations")
    metadata["annotations"] = {key: _shared(stated[key]) for key in _ANNOTATIONS if key in stated}
    partition = manifests.labels(manifest).get(names.PARTITION_ID)
    if partition is not None:
        metadata["labels"] = {names.PARTITION_ID: _shared(partition)}
    kept: Manifest = {"phase": _shared(status["phase"])} if "phase" in status else {}
    ready = manifests.condition(status, names.CONDITION_READY)
    if ready:
        fields = ("type", "status", "lastTransitionTime")
        kept["conditions"] = [{key: _shared(ready[key]) for key in fields if key in ready}]
    for part in ("containerStatuses", "initContainerStatuses"):
        if isinstance(status.get(part), list):
            kept[part] = [_container(each) for each in status[part]]
    return {**found, "status": kept}


def metadata_alone(manifest: Manifest) -> Manifest:
    """Keep of an object who it is and whose."""
    metadata = manifest["metadata"]
    found = {field: metadata[field] for field in _METADATA if field in metadata}
    if "namespace" in found:
        found["namespace"] = _shared(found["namespace"])
    owners = [each for each in manifests.items(manifest, "metadata", "ownerReferences") if isinstance(each, dict)]
    if owners:
        found["ownerReferences"] = [{key: _shared(value) for key, value in each.items()} for each in owners]
    return {"metadata": found}


def _container(status: Any) -> Manifest:
    found = {field: value for field, value in manifests.mapping(status).items() if field in _CONTAINER}
    ended = manifests.mapping(found.get("state"), "terminated")
    found.pop("state", None)
    if ended:
        found["state"] = {"terminated": _ended(ended)}
    return found


def _ended(terminated: Mapping[str, Any]) -> Manifest:
    return {key: terminated[key] for key in ("exitCode", "finishedAt") if key in terminated}


def _shared(value: Any) -> Any:
    return sys.intern(value) if type(value) is str else value
