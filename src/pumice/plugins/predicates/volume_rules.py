"""The volume rules of predicates: what must be true of a pod's claims before nodes are looked at, and which filters are asked."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pumice.api import duration, quantity
from pumice.framework.configuration import Settings, settings
from pumice.framework.points import NODE_LOCAL, Reads
from pumice.plugins.predicates import claim_causes, claims
from pumice.plugins.predicates.volume_binding import VolumeBinding
from pumice.plugins.predicates.volume_limits import VolumeLimits
from pumice.plugins.predicates.volume_zone import VolumeZone

if TYPE_CHECKING:
    from collections.abc import Collection

    from pumice.api import volumes
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.volumes import ClaimUse

IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class VolumeSettings(Settings):
    """Which rules about volumes are checked, and how long binding them may take."""

    volume_limits = settings.truth(
        "predicate.NodeVolumeLimitsEnable", default=True, help="whether the number of attached volumes is checked"
    )
    volume_zone = settings.truth(
        "predicate.VolumeZoneEnable", default=True, help="whether zones of volumes are checked"
    )
    volume_binding = settings.truth(
        "predicate.VolumeBindingEnable", default=True, help="whether volumes are found, reserved and bound"
    )
    bind_timeout = settings.whole(
        "volumebinding.bindTimeoutSeconds",
        600,
        minimum=1,
        help="how many seconds volumes may take to be bound before the pod's bind has failed",
    )
    volume_weight = settings.whole(
        "volumebinding.weight",
        1,
        help="accepted for compatibility; volumes are not scored, as in a Kubernetes without StorageCapacityScoring",
    )
    volume_shape = settings.anything(
        "volumebinding.shape", "list", None, help="accepted for compatibility, as volumebinding.weight"
    )


class VolumeRules:
    """The rules that are switched on, for as long as the configuration lasts."""

    def __init__(self, session: Session, plugin: str, told: VolumeSettings) -> None:
        cluster = session.cluster
        self._objects = claims.StorageObjects(cluster)
        reason = functools.partial(session.reason, plugin)
        patience = told.bind_timeout * duration.SECOND
        self.limits = VolumeLimits(cluster, self._objects, reason) if told.volume_limits else None
        self.zone = VolumeZone(self._objects, reason) if told.volume_zone else None
        self.binding = VolumeBinding(cluster, self._objects, reason, patience) if told.volume_binding else None

    def register(self, session: Session) -> None:
        """Register what is switched on; every function answers at once for pods without volumes."""
        session.pre_predicate.add(self.problem, reads=Reads(0))  # whether there is one: claims are a part of the shape
        if self.limits is not None:
            session.predicate.add(self.limits.fits, reads=NODE_LOCAL)
        if self.zone is not None:
            session.predicate.add(self.zone.fits, reads=Reads.NODE)
        if self.binding is not None:
            session.predicate.add(self.binding.bound, reads=Reads.NODE)
            session.predicate.add(self.binding.unbound, reads=Reads.OTHER_NODES)
            session.follow(self.binding.follow, one_job=True)
            session.announced.pod_causes.append(self.cause)

    # -- before nodes are looked at ----------------------------------------------------------------------------

    def problem(self, subject: Subject) -> str | None:
        """Say which of the pod's claims keeps it from every node."""
        for use in subject.constraints.claims:
            problem = self._problem(use, subject)
            if problem is not None:
                return problem
        return None

    def cause(self, subject: Subject, reasons: Collection[str]) -> str:
        """Say in a sentence which of the pod's claims keeps it from every node; `reasons` is what nodes said."""
        return claim_causes.told(self._objects, subject.constraints.claims, reasons)

    def _problem(self, use: ClaimUse, subject: Subject) -> str | None:
        claim = self._objects.claim(use.key)
        named = f'persistentvolumeclaim "{use.name}"'
        if claim is None:
            return (
                f"waiting for ephemeral volume controller to create the {named}" if use.owner else f"{named} not found"
            )
        if use.owner and not any(o.controller and o.uid == use.owner for o in claim.metadata.owner_references):
            return f"{named} was not created for pod {subject.task.key}: the pod is not its owner"
        if self.binding is not None:
            return _unusable(claim, named) or self._unbound(claim, named, IMMEDIATE)
        return self._unbound(claim, named, "") if self.zone is not None and not use.owner else None

    def _unbound(self, claim: volumes.PersistentVolumeClaim, named: str, prefix: str) -> str | None:
        """Refuse a claim that has no volume and is not waiting for a pod either; the zone rule alone believes a name."""
        if claims.is_bound(claim) or self._objects.is_delayed(claim) or (claim.spec.volume_name and not prefix):
            return None
        name = claims.class_of(claim)
        found = self._objects.storage_class(name)
        if claim.spec.volume_name:
            why = f'its binding to persistentvolume "{claim.spec.volume_name}" is not complete'
        elif not name:
            why = "PersistentVolume had no name, and the claim names no storage class"
        elif found is None:
            why = f'PersistentVolume had no name, and storageclass "{name}" was not found'
        elif found.volume_binding_mode is None:
            why = f'PersistentVolume had no name, and storageclass "{name}" has no volumeBindingMode'
        else:
            why = "PersistentVolume had no name"
        return f"{prefix} ({named}: {why})" if prefix else f"{named}: {why}"


def _unusable(claim: volumes.PersistentVolumeClaim, named: str) -> str | None:
    """Refuse a claim that has lost its volume, is going, or asks for a size that cannot be read."""
    if claim.status.phase == claims.LOST:
        return f'{named} bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp:
        return f"{named} is being deleted"
    try:
        claims.requested(claim)
    except quantity.QuantityError as error:
        return f"{named}: spec.resources.requests.storage: {error}"
    return None
