"""Which claim keeps a pod from every node, and why it has no volume, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.plugins.predicates import claims
from pumice.plugins.predicates.volume_binding import NO_VOLUME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pumice.api import volumes
    from pumice.model.volumes import ClaimUse


def told(objects: claims.StorageObjects, uses: Iterable[ClaimUse], reasons: Collection[str]) -> str:
    """Say of the first claim that keeps a pod from every node why it does; `reasons` is what nodes said. Empty if all of them are in order."""
    for use in uses:
        claim = objects.claim(use.key)
        if claim is not None:
            found = _trouble(objects, claim, reasons)
        else:
            found = "is not made yet: the ephemeral volume controller makes it" if use.owner else "does not exist"
        if found:
            return f"claim {use.name} {found}"
    return ""


def _trouble(objects: claims.StorageObjects, claim: volumes.PersistentVolumeClaim, reasons: Collection[str]) -> str:
    volume = claim.spec.volume_name
    if claim.status.phase == claims.LOST:
        return f"has lost its volume {volume}"
    if claim.metadata.deletion_timestamp:
        return "is being deleted"
    if claims.is_bound(claim):
        return "" if objects.volume(volume) is not None else f"is bound to volume {volume}, which does not exist"
    if objects.is_delayed(claim) and NO_VOLUME not in reasons:
        return ""
    if volume:
        return f"is not bound: its binding to volume {volume} is not complete"
    return f"is not bound: {_why_unbound(objects, claims.class_of(claim))}"


def _why_unbound(objects: claims.StorageObjects, name: str) -> str:
    """Say why nobody has given a claim of a class a volume."""
    found = objects.storage_class(name)
    if not name:
        return "no volume suits it, and it names no storage class"
    if found is None:
        return f"storage class {name} does not exist"
    if found.volume_binding_mode is None:
        return f"storage class {name} has no volumeBindingMode"
    if found.provisioner in ("", names.NO_PROVISIONER) or found.volume_binding_mode == claims.DELAYED:
        makes = (
            "and the class makes none"
            if found.provisioner in ("", names.NO_PROVISIONER)
            else "and none may be made there"
        )
        return f"no free volume of class {name} suits it, {makes}"
    return f"{found.provisioner} has not made its volume of class {name} yet"
