"""What controllers see of a pod, and how one is made from a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, names
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.queueing.requests import Moment, Step

Manifest = dict[str, Any]
AT_ONCE: Final = 500  # made in one look, as Kubernetes has it; the next one goes on


def phase(pod: Mapping[str, Any]) -> str:
    """Give a pod's phase."""
    found = manifests.mapping(pod, "status").get("phase")
    return found if isinstance(found, str) else names.PHASE_PENDING


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod has ended by itself."""
    return phase(pod) in (names.PHASE_SUCCEEDED, names.PHASE_FAILED)


def is_active(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod runs or will, and nobody has deleted it."""
    return not is_finished(pod) and not manifests.is_going(pod)


def ready_since(pod: Mapping[str, Any]) -> int | None:
    """Give since when a pod is ready, None if it is not."""
    found = manifests.condition(manifests.mapping(pod, "status"), names.CONDITION_READY)
    if found.get("status") != "True":
        return None
    return manifests.moment_of(found.get("lastTransitionTime")) or 0


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod is ready."""
    return manifests.has(manifests.mapping(pod, "status"), names.CONDITION_READY)


def available_at(pod: Mapping[str, Any], min_ready_seconds: int, moment: Moment) -> int | None:
    """Give when a ready pod counts as available, None if it is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    return since if min_ready_seconds <= 0 else moment.reaches(since, min_ready_seconds * duration.SECOND)


def is_available(pod: Mapping[str, Any], min_ready_seconds: int, moment: Moment) -> bool:
    """Tell whether a pod has been ready for long enough."""
    if min_ready_seconds <= 0:
        return is_ready(pod)
    at = available_at(pod, min_ready_seconds, moment)
    return at is not None and at <= moment.now


def restarts(pod: Mapping[str, Any]) -> int:
    """Give how often containers of a pod were started again, all together."""
    found = manifests.items(pod, "status", "containerStatuses") + manifests.items(
        pod, "status", "initContainerStatuses"
    )
    return sum(manifests.number(manifests.mapping(each), "restartCount") for each in found)


def first_to_go(pod: Mapping[str, Any], beside: int = 0) -> tuple[Any, ...]:
    """Give the order in which pods are taken away when there are too many, as ReplicaSets have it; `beside` counts its like on its node."""
    cost = manifests.mapping(pod, "metadata", "annotations").get("controller.kubernetes.io/pod-deletion-cost")
    since = ready_since(pod)
    placed = bool(manifests.mapping(pod, "spec").get("nodeName"))
    stages = {names.PHASE_PENDING: 0, "Unknown": 1, names.PHASE_RUNNING: 2}
    return (
        placed,
        stages.get(phase(pod), 0),
        since is not None,
        manifests.written_number(cost, signed=True),
        -beside,
        -(since or 0),
        -restarts(pod),
        -manifests.created(pod),
        manifests.name(pod),
    )


def controller_reference(owner: Mapping[str, Any], kind: kinds.Kind) -> Manifest:
    """Give the owner reference of what a controller makes."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": manifests.name(owner),
        "uid": manifests.uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def from_template(owner: Mapping[str, Any], kind: kinds.Kind, template: Any, name: str) -> Manifest:
    """Make a pod of an owner."""
    stated = manifests.mapping(template, "metadata")
    metadata: Manifest = {"name": name, "namespace": owner["metadata"].get("namespace", "")}
    for field in ("labels", "annotations"):
        if manifests.mapping(stated, field):
            metadata[field] = dict(stated[field])
    if manifests.items(stated, "finalizers"):
        metadata["finalizers"] = list(stated["finalizers"])
    metadata["ownerReferences"] = [controller_reference(owner, kind)]
    spec = dict(manifests.mapping(template, "spec"))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def create(pod: Manifest) -> Step:
    """Create a pod, and say so of its owner."""
    name = pod["metadata"]["name"]
    return requests.Step(
        request=effects.Create(kind=kinds.POD, manifest=pod),
        said=("SuccessfulCreate", f"Created pod: {name}"),
        refused=("FailedCreate", "Error creating: "),
    )


def delete(pod: Mapping[str, Any]) -> Step:
    """Delete a pod, and say so of its owner."""
    name = manifests.name(pod)
    request = requests.Delete(
        kind=kinds.POD, namespace=pod["metadata"].get("namespace", ""), name=name, uid=manifests.uid(pod)
    )
    return requests.Step(
        request=request,
        said=("SuccessfulDelete", f"Deleted pod: {name}"),
        refused=("FailedDelete", "Error deleting: "),
    )
