"""When an object may be bound or goes: grace periods, finalizers, pods that hold nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import duration, names, timestamp
from pumice.sim import errors, structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.sim.identity import Key

DEFAULT_GRACE_SECONDS = 30
LONGEST_GRACE_SECONDS = 2**31
_NAMESPACE = ("v1", "Namespace")


def finalizers(manifest: Mapping[str, Any]) -> bool:
    """Tell whether somebody asked to be waited for; a namespace has finalizers in its spec, too, of those who empty it."""
    emptied = (manifest.get("apiVersion"), manifest.get("kind")) == _NAMESPACE
    held = structure.mapping(manifest, "metadata").get("finalizers")
    return bool(held or (emptied and structure.mapping(manifest, "spec").get("finalizers")))


def is_terminating(manifest: Mapping[str, Any]) -> bool:
    """Tell whether an object is on its way out."""
    return structure.mapping(manifest, "metadata").get("deletionTimestamp") is not None


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod has ended by itself."""
    return structure.mapping(pod, "status").get("phase") in (names.PHASE_SUCCEEDED, names.PHASE_FAILED)


def is_bound(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod has a node."""
    return bool(structure.mapping(pod, "spec").get("nodeName"))


def grace_of(pod: Mapping[str, Any]) -> int:
    """Give a pod's own grace period in microseconds; a negative one is a second, as the API server has it, and none is beyond all dates."""
    seconds = structure.mapping(pod, "spec").get("terminationGracePeriodSeconds")
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        seconds = DEFAULT_GRACE_SECONDS
    return (min(seconds, LONGEST_GRACE_SECONDS) if seconds >= 0 else 1) * duration.SECOND


def marks(manifest: Mapping[str, Any], *, is_pod: bool, grace: int | None, now: int) -> dict[str, Any]:
    """Give the metadata that a deletion writes; none if an earlier one asked for no more time than this one."""
    wanted = 0
    if is_pod and is_bound(manifest) and not is_finished(manifest):
        wanted = grace_of(manifest) if grace is None else max(0, grace)
    start = now
    if is_terminating(manifest):
        allowed = _allowed(manifest)
        if allowed == 0 or (grace is None and wanted > 0) or wanted >= allowed:
            return {}
        start = _deadline(manifest, now) - allowed
    return {
        "deletionTimestamp": timestamp.format_timestamp(max(now, start + wanted)),
        "deletionGracePeriodSeconds": -(-wanted // duration.SECOND),
    }


def only_finalizers_held(manifest: Mapping[str, Any]) -> bool:
    """Tell whether an object is there only because of its finalizers."""
    metadata = structure.mapping(manifest, "metadata")
    return is_terminating(manifest) and finalizers(manifest) and not metadata.get("deletionGracePeriodSeconds")


def check_bindable(key: Key, pod: Mapping[str, Any], uid: str) -> None:
    """Refuse a bind of a pod that is another one, has a node, is going, or is gated."""
    metadata, spec = structure.mapping(pod, "metadata"), structure.mapping(pod, "spec")
    if uid and uid != metadata.get("uid"):
        raise errors.ConflictError(f"{key} has uid {metadata.get('uid')}, not {uid}; it was replaced")
    if is_terminating(pod):
        raise errors.ConflictError(
            f"{key} is being deleted since before {metadata['deletionTimestamp']}; it cannot be bound"
        )
    if spec.get("nodeName"):
        raise errors.ConflictError(f"{key} is already assigned to node {spec['nodeName']}")
    if spec.get("schedulingGates"):
        raise errors.ConflictError(f"{key} has {len(spec['schedulingGates'])} scheduling gates; it cannot be bound yet")


def _allowed(manifest: Mapping[str, Any]) -> int:
    seconds = structure.mapping(manifest, "metadata").get("deletionGracePeriodSeconds")
    return seconds * duration.SECOND if isinstance(seconds, int) else 0


def _deadline(manifest: Mapping[str, Any], now: int) -> int:
    try:
        return timestamp.parse(structure.mapping(manifest, "metadata")["deletionTimestamp"])
    except timestamp.TimestampError:
        return now
