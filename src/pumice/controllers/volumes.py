"""Claims and volumes: a claim is given a volume that fits, or one that is made for it, and a volume whose claim is gone goes too or is released.

This is Kubernetes' controller of volumes with a provisioner that can make any volume at once. A class that waits for the first pod waits for the scheduler's
word (`volume.kubernetes.io/selected-node`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names, quantity
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
CLAIM: Final = kinds.PERSISTENT_VOLUME_CLAIM
VOLUME: Final = kinds.PERSISTENT_VOLUME
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"


class Claims:
    """Reconciles PersistentVolumeClaims."""

    kind = CLAIM
    watched = (VOLUME, kinds.STORAGE_CLASS)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the claim that a volume is for; one that is free, and a class, concern all claims that wait."""
        reference = manifests.mapping(manifest, "spec", "claimRef")
        if kind == VOLUME and reference:
            return [(str(reference.get("namespace", "")), str(reference.get("name", "")))]
        return [
            (each["metadata"].get("namespace", ""), manifests.name(each))
            for each in observed.all(CLAIM)
            if not manifests.mapping(each, "spec").get("volumeName")
        ]

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Find a volume for a claim, make one, or finish a binding."""
        del moment
        claim = observed.find(CLAIM, namespace, name)
        if claim is None or manifests.is_going(claim):
            return requests.Reconciled()
        chosen = manifests.mapping(claim, "spec").get("volumeName")
        if chosen:
            volume = observed.find(VOLUME, "", str(chosen))
            return requests.Reconciled(steps=_bound(claim, volume) if volume is not None else [])
        volume = _meant_for(claim, observed) or _fitting(claim, observed)
        if volume is not None:
            return requests.Reconciled(steps=_bound(claim, volume))
        return requests.Reconciled(steps=_provisioned(claim, observed))


class Volumes:
    """Reconciles PersistentVolumes."""

    kind = VOLUME
    watched = (CLAIM,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the volume of a claim."""
        del kind, observed
        name = manifests.mapping(manifest, "spec").get("volumeName")
        return [("", str(name))] if name else ()

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Say whether a volume is free, bound or released; delete one that is not to outlive its claim."""
        del moment
        volume = observed.find(VOLUME, namespace, name)
        if volume is None or manifests.is_going(volume):
            return requests.Reconciled()
        reference = manifests.mapping(volume, "spec", "claimRef")
        if not reference.get("uid"):
            return requests.Reconciled(steps=_phase(volume, "Available"))
        claim = observed.find(CLAIM, str(reference.get("namespace", "")), str(reference.get("name", "")))
        if claim is not None and manifests.uid(claim) == reference["uid"]:
            return requests.Reconciled(steps=_phase(volume, "Bound"))
        if manifests.mapping(volume, "spec").get("persistentVolumeReclaimPolicy") != "Delete":
            return requests.Reconciled(steps=_phase(volume, "Released"))
        return requests.Reconciled(steps=[steps_to.delete(VOLUME, volume)])


def _phase(volume: Manifest, phase: str) -> list[Step]:
    return steps_to.write_status(VOLUME, volume, {**manifests.mapping(volume, "status"), "phase": phase})


def _bound(claim: Manifest, volume: Manifest) -> list[Step]:
    """Join a claim and a volume, the volume first; each write is left out if it was done."""
    steps: list[Step] = []
    reference = manifests.mapping(volume, "spec", "claimRef")
    if reference.get("uid") not in (None, "", manifests.uid(claim)):
        return []
    by_us = {names.BOUND_BY_CONTROLLER: "yes"}
    if not reference.get("uid"):
        body: Manifest = {"metadata": {"annotations": by_us}, "spec": {"claimRef": _reference(claim)}}
        steps.append(steps_to.patch(VOLUME, volume, body, exact=True))
    annotations = manifests.mapping(claim, "metadata", "annotations")
    if not annotations.get(names.BIND_COMPLETED) or not manifests.mapping(claim, "spec").get("volumeName"):
        notes = {names.BIND_COMPLETED: "yes"} | ({} if manifests.mapping(claim, "spec").get("volumeName") else by_us)
        body = {"metadata": {"annotations": notes}, "spec": {"volumeName": manifests.name(volume)}}
        steps.append(steps_to.patch(CLAIM, claim, body, exact=True))
    spec = manifests.mapping(volume, "spec")
    status = {
        **manifests.mapping(claim, "status"),
        "phase": "Bound",
        "capacity": dict(manifests.mapping(spec, "capacity")),
    }
    status["accessModes"] = manifests.items(spec, "accessModes")
    return steps + steps_to.write_status(CLAIM, claim, status)


def _reference(claim: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim["metadata"].get("namespace", ""),
        "name": manifests.name(claim),
        "uid": manifests.uid(claim),
    }


def _meant_for(claim: Manifest, observed: Observed) -> Manifest | None:
    """Find the volume that somebody has set aside for a claim."""
    wanted = (claim["metadata"].get("namespace", ""), manifests.name(claim))
    for volume in observed.all(VOLUME):
        reference = manifests.mapping(volume, "spec", "claimRef")
        named = (reference.get("namespace"), reference.get("name")) == wanted
        if named and reference.get("uid") in (None, "", manifests.uid(claim)) and not manifests.is_going(volume):
            return volume
    return None


def _fitting(claim: Manifest, observed: Observed) -> Manifest | None:
    """Find the smallest free volume that fits, unless the class leaves the choice to the scheduler."""
    storage_class = _class_of(claim, observed)
    if storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
        return None
    found = [volume for volume in observed.all(VOLUME) if _fits(claim, volume)]
    return min(found, key=lambda volume: (_size(manifests.mapping(volume, "spec", "capacity")), manifests.name(volume)), default=None)  # fmt: skip


def _fits(claim: Manifest, volume: Manifest) -> bool:
    spec, wanted = manifests.mapping(volume, "spec"), manifests.mapping(claim, "spec")
    free = not manifests.mapping(spec, "claimRef") and not manifests.is_going(volume)
    same = (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
    same = same and spec.get("volumeMode", "Filesystem") == wanted.get("volumeMode", "Filesystem")
    modes = set(manifests.items(wanted, "accessModes")) <= set(manifests.items(spec, "accessModes"))
    selector = wanted.get("selector")
    suits = not selector or manifests.selects(selector, manifests.labels(volume))
    room = _size(manifests.mapping(spec, "capacity")) >= _size(manifests.mapping(wanted, "resources", "requests"))
    return free and same and modes and suits and room


def _size(amounts: Mapping[str, Any]) -> int:
    try:
        return quantity.whole(amounts.get("storage", "0"))
    except quantity.QuantityError:
        return 0


def _class_of(claim: Manifest, observed: Observed) -> Manifest | None:
    stated = manifests.mapping(claim, "metadata", "annotations").get(names.OLDER_STORAGE_CLASS)
    name = stated or manifests.mapping(claim, "spec").get("storageClassName")
    return observed.find(kinds.STORAGE_CLASS, "", str(name)) if name else None


def _provisioned(claim: Manifest, observed: Observed) -> list[Step]:
    """Make a volume for a claim; it is named after the claim's uid, so it is made once."""
    storage_class = _class_of(claim, observed)
    provisioner = manifests.mapping(storage_class).get("provisioner")
    if storage_class is None or not provisioner or provisioner == names.NO_PROVISIONER:
        return []
    chosen = manifests.mapping(claim, "metadata", "annotations").get(names.SELECTED_NODE)
    if storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not chosen:
        return []
    spec, name = manifests.mapping(claim, "spec"), f"pvc-{manifests.uid(claim)}"
    size = manifests.mapping(spec, "resources", "requests").get("storage", "0")
    volume: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {_PROVISIONED_BY: provisioner}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": manifests.items(spec, "accessModes"),
            "claimRef": _reference(claim),
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": manifests.name(storage_class),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "csi": {"driver": provisioner, "volumeHandle": name},
        },
    }
    said = ("ProvisioningSucceeded", f"Successfully provisioned volume {name}")
    step = steps_to.create(VOLUME, volume, said)
    return [requests.Step(request=step.request, said=said, refused=("ProvisioningFailed", "Error creating volume: "))]
