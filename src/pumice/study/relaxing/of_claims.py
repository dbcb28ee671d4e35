"""Volume claims that the pods of a job name and that are not there, or have no volume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import kinds, names, volumes
from pumice.api.meta import ObjectMeta, ObjectReference
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.study.relaxing.relaxation import Question

_SIZE: Final = "1Gi"
_BOUND: Final = "Bound"


def find(question: Question) -> Iterator[Relaxation]:
    """Create the claims that are missing, and give those a volume that have none."""
    kept = question.cluster.objects.get(kinds.PERSISTENT_VOLUME_CLAIM.name, {})
    named = dict.fromkeys(
        (task.namespace, volume.persistent_volume_claim.claim_name)
        for task in question.members
        for volume in task.pod.spec.volumes
        if volume.persistent_volume_claim is not None
    )
    edits: list[Edit] = []
    missing, unbound = [], []
    for namespace, name in named:
        key = f"{namespace}/{name}"
        found = kept.get(key)
        claim = found if isinstance(found, volumes.PersistentVolumeClaim) else None
        if claim is None:
            missing.append(key)
            edits += _bound(volumes.PersistentVolumeClaim(metadata=_identity(namespace, name)), None)
        elif not claim.spec.volume_name:
            size = claim.spec.resources.requests.get("storage", _SIZE)
            unbound.append(f"{key} ({size}, class {claim.spec.storage_class_name or 'none'})")
            edits += _bound(claim, claim)
    told = []
    if missing:
        told.append(f"create the PersistentVolumeClaim {', '.join(missing)} with a volume")
    if unbound:
        told.append(f"create a PersistentVolume for the claim {', '.join(unbound)}")
    if told:
        yield Relaxation(sort="claim", said=" and ".join(told), edits=tuple(edits))


def _identity(namespace: str, name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, uid=f"claim-{namespace}-{name}")


def _bound(claim: volumes.PersistentVolumeClaim, before: volumes.PersistentVolumeClaim | None) -> list[Edit]:
    """Join a claim and a volume that is made for it."""
    metadata, spec = claim.metadata, claim.spec
    name = f"{metadata.namespace}-{metadata.name}-volume"
    size = spec.resources.requests.get("storage", _SIZE)
    modes = spec.access_modes or ("ReadWriteMany",)
    reference = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )
    volume = volumes.PersistentVolume(
        metadata=ObjectMeta(name=name, uid=f"volume-{name}"),
        spec=volumes.PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=modes,
            claim_ref=reference,
            storage_class_name=spec.storage_class_name or "",
            volume_mode=spec.volume_mode,
        ),
        status=volumes.PersistentVolumeStatus(phase=_BOUND),
    )
    bound = structs.replace(
        claim,
        metadata=structs.replace(metadata, annotations={**metadata.annotations, names.BIND_COMPLETED: "yes"}),
        spec=structs.replace(spec, volume_name=name, access_modes=modes),
        status=volumes.PersistentVolumeClaimStatus(phase=_BOUND, capacity={"storage": size}),
    )
    return [
        Edit(kinds.PERSISTENT_VOLUME, None, lambda _found: volume),
        Edit(kinds.PERSISTENT_VOLUME_CLAIM, before, lambda _found: bound),
    ]
