"""What a companion group says, derived from its pod and from the workload that owns the pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import duration, kinds, names, timestamp
from pumice.controllers import usage
from pumice.controllers.queueing import observed

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest = dict[str, Any]

_INHERITED_PREFIX = "volcano.sh/"
_COPIED_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_REVISION = "controller-revision-hash"
_LARGEST_COUNT = 2**31 - 1


def group(pod: Mapping[str, Any], uid: str, owner: Mapping[str, Any] | None) -> Manifest:
    """Give the group of a pod, or of all pods of its controller; `owner` is the workload to inherit from, if any."""
    metadata, spec = _map(pod, "metadata"), _map(pod, "spec")
    named: Manifest = {"name": f"{names.POD_GROUP_PREFIX}{uid}", "namespace": metadata.get("namespace", "")}
    named["ownerReferences"] = _owners(metadata)
    for field, values in (("annotations", _annotations(metadata, owner)), ("labels", _labels(metadata))):
        if values:
            named[field] = values
    return {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": kinds.POD_GROUP.name,
        "metadata": named,
        "spec": _spec(_map(metadata, "annotations"), spec, _min_member(owner)),
        "status": {"phase": names.PHASE_PENDING},
    }


def changes(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> Manifest:
    """Give a merge patch that makes a group say what is wanted; fields that others set stay as they are."""
    body: Manifest = {}
    spec, asked = _map(present, "spec"), wanted["spec"]
    fields = {field: value for field, value in asked.items() if spec.get(field) != value}
    stale = _map(spec, "minResources").keys() - asked["minResources"].keys()
    if stale:
        fields["minResources"] = {**asked["minResources"], **dict.fromkeys(sorted(stale))}
    if fields:
        body["spec"] = fields
    for field in ("annotations", "labels"):
        values, before = wanted["metadata"].get(field, {}), _map(present, "metadata", field)
        differing = {key: value for key, value in values.items() if before.get(key) != value}
        if differing:
            body.setdefault("metadata", {})[field] = differing
    return body


def owner_uid(pod: Mapping[str, Any]) -> str:
    """Give the uid that names a pod's companion group: its controller's, else its own."""
    owner = observed.controller(pod)
    uid: str = pod["metadata"].get("uid", "") if owner is None else owner["uid"]
    return uid


def group_name(pod: Mapping[str, Any]) -> str:
    """Give the group a pod names; anything but a text counts as named, so that nobody overwrites it."""
    value = _map(pod, "metadata", "annotations").get(names.GROUP_NAME)
    return value if isinstance(value, str) else "" if value is None else str(value)


def names_native_group(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod belongs to a gang of Kubernetes' own: a group of one more would take it out of that."""
    spec = _map(pod, "spec")
    return spec.get("schedulingGroup") is not None or spec.get("workloadRef") is not None


def scheduler_name(pod: Mapping[str, Any]) -> object:
    """Give the scheduler a pod asks for."""
    return _map(pod, "spec").get("schedulerName")


def replicas(workload: Mapping[str, Any]) -> int:
    """Give how many pods a workload wants; one if it does not say."""
    value = _map(workload, "spec").get("replicas")
    return value if isinstance(value, int) else 1


def update_revision(workload: Mapping[str, Any]) -> str:
    """Give the revision a StatefulSet is moving to."""
    value = _map(workload, "status").get("updateRevision")
    return value if isinstance(value, str) else ""


def at_revision(pod: Mapping[str, Any], revision: str) -> bool:
    """Tell whether a pod is of a revision; none asked for suits every pod."""
    return not revision or _map(pod, "metadata", "labels").get(_REVISION) == revision


def _map(value: Any, *path: str) -> Mapping[str, Any]:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _owners(metadata: Mapping[str, Any]) -> list[Manifest]:
    """Give the pod's own list if one of them is a controller, else the pod."""
    if observed.controller({"metadata": metadata}) is not None:
        return [dict(each) for each in metadata["ownerReferences"] if isinstance(each, dict)]
    pod = {"apiVersion": kinds.POD.api_version, "kind": kinds.POD.name, "name": metadata["name"]}
    return [{**pod, "uid": metadata.get("uid", ""), "controller": True, "blockOwnerDeletion": True}]


def _annotations(metadata: Mapping[str, Any], owner: Mapping[str, Any] | None) -> Manifest:
    own = _map(metadata, "annotations")
    result = {
        key: value for key, value in _map(owner, "metadata", "annotations").items() if key.startswith(_INHERITED_PREFIX)
    }
    result.update({key: own[key] for key in _COPIED_ANNOTATIONS if key in own})
    budget = next((key for key in (names.BUDGET_MIN_AVAILABLE, names.BUDGET_MAX_UNAVAILABLE) if key in own), None)
    if budget is not None:
        result[budget] = own[budget]
    if owner is not None and (end := ends_by(owner)) is not None:
        result[names.ENDS_BY] = end
    return result


def ends_by(workload: Mapping[str, Any]) -> str | None:
    """Give when a Job ends its pods, whenever these began: so long after its own start; None if it does not say, or has not started."""
    seconds, began = _map(workload, "spec").get("activeDeadlineSeconds"), _map(workload, "status").get("startTime")
    if not isinstance(seconds, int) or not isinstance(began, str):
        return None
    try:
        return timestamp.format_timestamp(timestamp.parse(began) + seconds * duration.SECOND)
    except timestamp.TimestampError:
        return None


def _labels(metadata: Mapping[str, Any]) -> Manifest:
    own = _map(metadata, "labels")
    return {key: own[key] for key in _COPIED_LABELS if key in own}


def _min_member(owner: Mapping[str, Any] | None) -> int:
    """Read the owner's wish; one when there is none or it makes no sense."""
    text = _map(owner, "metadata", "annotations").get(names.GROUP_MIN_MEMBER)
    if not isinstance(text, str) or not text.isascii() or not text.isdecimal() or len(text) > 10:
        return 1
    return int(text) if int(text) <= _LARGEST_COUNT else 1


def _spec(annotations: Mapping[str, Any], pod_spec: Mapping[str, Any], min_member: int) -> Manifest:
    spec: Manifest = {"minMember": min_member, "minResources": usage.minimum(pod_spec, min_member)}
    if pod_spec.get("priorityClassName"):
        spec["priorityClassName"] = pod_spec["priorityClassName"]
    if annotations.get(names.QUEUE_NAME):
        spec["queue"] = annotations[names.QUEUE_NAME]
    topology = _topology(annotations)
    if topology:
        spec["networkTopology"] = topology
    return spec


def _topology(annotations: Mapping[str, Any]) -> Manifest:
    mode, tier = annotations.get(names.NETWORK_TOPOLOGY_MODE), annotations.get(names.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if mode is None and tier is None:
        return {}
    soft = isinstance(mode, str) and mode.lower() == names.TOPOLOGY_SOFT
    result: Manifest = {"mode": names.TOPOLOGY_SOFT if soft else names.TOPOLOGY_HARD}
    if isinstance(tier, str) and tier.isascii() and tier.isdecimal() and len(tier) <= 9:
        result["highestTierAllowed"] = int(tier)
    return result
