"""What is to be written for a preparation, or to take one back, given its object as it is now: pure rules, the same for every world.

A world reads the object, asks here what comes next, writes that against the version that it has read, and asks again with the answer, until nothing is left to do. A write that another
one overtook, or whose answer was lost, is decided anew from what is there then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, names, timestamp
from pumice.model import preparations
from pumice.model.preparations import LOCK_LASTS, ClaimGrant, ExtendedClaimStatus, NewClaim, NodeLock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.cache.effects import FailureCode
    from pumice.model.preparations import Preparation

Manifest = dict[str, Any]

MOST_CONSUMERS: Final = 256
ATTEMPTS: Final = 5
"""So often a write is decided anew that others overtook."""


class Write(msgspec.Struct, frozen=True):
    """Merge a body into the object."""

    body: Manifest
    subresource: str = ""
    strategic: bool = False


class Make(msgspec.Struct, frozen=True):
    """Create the object."""

    manifest: Manifest


class Remove(msgspec.Struct, frozen=True):
    """Delete the object of this uid."""

    uid: str


Next = Write | Make | Remove | None


class HinderedError(Exception):
    """Why something cannot be prepared."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def target(preparation: Preparation) -> tuple[kinds.Kind, str, str]:
    """Name the object that a preparation is about: kind, namespace, name."""
    match preparation:
        case NodeLock():
            return kinds.NODE, "", preparation.node
        case ExtendedClaimStatus():
            return kinds.POD, preparation.namespace, preparation.pod
        case _:
            return kinds.RESOURCE_CLAIM, preparation.namespace, preparation.claim


def forth(preparation: Preparation, found: Mapping[str, Any] | None, now: int) -> Next:
    """Return what is to be written next, None if nothing is left; raises what stands in the way."""
    if isinstance(preparation, NewClaim):
        return _make_claim(preparation, found)
    if found is None:
        kind, namespace, name = target(preparation)
        raise HinderedError("notfound", f"{kind.name} {namespace + '/' if namespace else ''}{name} is gone")
    match preparation:
        case NodeLock():
            return _lock(preparation, found, now)
        case ClaimGrant():
            return _reserve(preparation, found, now)
        case ExtendedClaimStatus():
            return _tell_pod(preparation, found)


def back(preparation: Preparation, found: Mapping[str, Any] | None) -> Next:
    """Return what is to be written next to take a preparation back, None if nothing is left of it."""
    if found is None:
        return None
    match preparation:
        case NodeLock():
            if _annotations(found).get(preparation.annotation) != preparation.stamp:
                return None
            return Write({"metadata": {**_current(found), "annotations": {preparation.annotation: None}}})
        case ClaimGrant():
            return _end_reservation(preparation, found)
        case NewClaim():
            return _unmake_claim(preparation, found)
        case _:
            return None


# -- nodes -----------------------------------------------------------------------------------------------------


def _lock(lock: NodeLock, node: Mapping[str, Any], now: int) -> Next:
    present = _annotations(node).get(lock.annotation)
    if present == lock.stamp:
        return None
    if present and preparations.is_locked(present, now):
        raise HinderedError(
            "conflict",
            f"node {lock.node} is locked by its annotation {lock.annotation} since {present:.60}; "
            f"a lock that nobody takes off ends after {LOCK_LASTS // 1_000_000} s",
        )
    return Write({"metadata": {**_current(node), "annotations": {lock.annotation: lock.stamp}}})


# -- claims ----------------------------------------------------------------------------------------------------


def _reserve(wanted: ClaimGrant, claim: Mapping[str, Any], now: int) -> Next:
    metadata, status = claim["metadata"], claim.get("status") or {}
    _check_identity(wanted, metadata)
    allocation, consumers = status.get("allocation"), status.get("reservedFor") or []
    if allocation is not None and wanted.allocation is not None and not _is_same(allocation, wanted.allocation):
        raise HinderedError("conflict", f"claim {wanted.key} got allocated elsewhere in the meantime")
    if allocation is not None and any(each.get("uid") == wanted.pod_uid for each in consumers):
        return None
    if metadata.get("deletionTimestamp"):
        raise HinderedError("conflict", f"claim {wanted.key} is being deleted")
    if len(consumers) >= MOST_CONSUMERS:
        raise HinderedError(
            "conflict", f"claim {wanted.key} is reserved for {len(consumers)} consumers, which is the most"
        )
    finalizers = metadata.get("finalizers") or []
    if names.CLAIM_FINALIZER not in finalizers:
        return Write({"metadata": {**_current(claim), "finalizers": [*finalizers, names.CLAIM_FINALIZER]}})
    body: Manifest = {"reservedFor": [{"resource": "pods", "name": wanted.pod, "uid": wanted.pod_uid}]}
    if allocation is None:
        if wanted.allocation is None:
            raise HinderedError("conflict", f"claim {wanted.key} lost its devices in the meantime")
        whole = now // 1_000_000 * 1_000_000
        body["allocation"] = {"allocationTimestamp": timestamp.format_timestamp(whole), **wanted.allocation}
    return Write({"metadata": _current(claim), "status": body}, "status", strategic=True)


def _check_identity(wanted: ClaimGrant, metadata: Mapping[str, Any]) -> None:
    if wanted.uid and metadata.get("uid") != wanted.uid:
        text = f"claim {wanted.key} has uid {metadata.get('uid')}, not {wanted.uid}; it was replaced"
        raise HinderedError("conflict", text)
    if not wanted.uid and not is_owned(metadata, wanted.pod_uid):
        raise HinderedError("conflict", f"claim {wanted.key} is not owned by pod {wanted.pod} (uid {wanted.pod_uid})")


def _is_same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Tell whether two allocations give the same devices for the same requests."""
    return _devices(left) == _devices(right)


def _devices(allocation: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    results = (allocation.get("devices") or {}).get("results") or []
    return [tuple(each.get(field) for field in ("request", "driver", "pool", "device", "shareID")) for each in results]


def _end_reservation(wanted: ClaimGrant, claim: Mapping[str, Any]) -> Next:
    consumers = (claim.get("status") or {}).get("reservedFor") or []
    if not any(each.get("uid") == wanted.pod_uid for each in consumers):
        return None
    body = {"reservedFor": [{"$patch": "delete", "uid": wanted.pod_uid}]}
    return Write({"metadata": _current(claim), "status": body}, "status", strategic=True)


def _make_claim(wanted: NewClaim, found: Mapping[str, Any] | None) -> Next:
    if found is None:
        return Make(wanted.manifest)
    if is_owned(found["metadata"], wanted.pod_uid):
        return None
    raise HinderedError(
        "conflict", f"claim {wanted.namespace}/{wanted.claim} is there and not owned by pod {wanted.pod}"
    )


def _unmake_claim(wanted: NewClaim, found: Mapping[str, Any]) -> Next:
    """Delete a claim that was made for a pod, its finalizer first."""
    metadata = found["metadata"]
    if not is_owned(metadata, wanted.pod_uid):
        return None
    finalizers = metadata.get("finalizers") or []
    if names.CLAIM_FINALIZER in finalizers:
        left = [each for each in finalizers if each != names.CLAIM_FINALIZER]
        return Write({"metadata": {**_current(found), "finalizers": left or None}})
    return None if metadata.get("deletionTimestamp") else Remove(metadata["uid"])


def is_owned(metadata: Mapping[str, Any], uid: str) -> bool:
    """Tell whether an object is controlled by the one of this uid."""
    return any(each.get("uid") == uid and each.get("controller") for each in metadata.get("ownerReferences") or ())


# -- pods ------------------------------------------------------------------------------------------------------


def _tell_pod(wanted: ExtendedClaimStatus, pod: Mapping[str, Any]) -> Next:
    if pod["metadata"].get("uid") != wanted.pod_uid:
        raise HinderedError("notfound", f"pod {wanted.namespace}/{wanted.pod} was replaced")
    if (pod.get("status") or {}).get("extendedResourceClaimStatus") == wanted.status:
        return None
    body = {"metadata": {"uid": wanted.pod_uid}, "status": {"extendedResourceClaimStatus": wanted.status}}
    return Write(body, "status", strategic=True)


def _current(found: Mapping[str, Any]) -> Manifest:
    """Say which version of an object a write is for."""
    metadata = found["metadata"]
    return {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}


def _annotations(found: Mapping[str, Any]) -> Mapping[str, str]:
    return found["metadata"].get("annotations") or {}


# -- answers ---------------------------------------------------------------------------------------------------


def note(claims: dict[str, Manifest], where: tuple[kinds.Kind, str, str], found: Mapping[str, Any] | None) -> None:
    """Note a claim as it was last seen, for the answer."""
    kind, namespace, name = where
    if kind is kinds.RESOURCE_CLAIM:
        claims.pop(f"{namespace}/{name}", None)
        if found is not None:
            claims[f"{namespace}/{name}"] = dict(found)


def shown(claims: Mapping[str, Manifest]) -> Manifest | None:
    """Give what an answer shows of claims, None if nothing."""
    return {"claims": list(claims.values())} if claims else None
