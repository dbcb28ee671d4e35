"""Claims for devices: those that pods want made from templates, and what becomes of claims whose pods are done with them.

This is the part of Kubernetes' controller of resource claims. A claim made for a pod is named by the pod, its own name in the pod and five letters that follow from both, so that who asks twice asks for the same. A claim that
its last pod is done with loses its devices; one that was only left allocated keeps them until somebody uses it, deletes it or takes them away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.controllers.queueing import observed as knowing
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, naming, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.controller import Controller
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
CLAIM: Final = kinds.RESOURCE_CLAIM
TEMPLATE: Final = kinds.RESOURCE_CLAIM_TEMPLATE
_FAILED: Final = "FailedResourceClaimCreation"
_LONGEST: Final = 57  # of a name before its hyphen and its five letters


def controllers() -> list[Controller]:
    """Give the controllers of claims."""
    return [PodClaims(), Claims()]


class PodClaims:
    """Makes the claims that pods want from templates, and tells the pods their names."""

    kind = kinds.POD
    watched = (CLAIM, TEMPLATE)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the pod that owns a claim, and those that wait for a template."""
        namespace = manifest["metadata"].get("namespace", "")
        if kind == CLAIM:
            owner = knowing.controller(manifest)
            return [(namespace, str(owner.get("name")))] if owner and owner.get("kind") == kinds.POD.name else []
        return [
            (namespace, manifests.name(pod))
            for pod in observed.inside(kinds.POD, namespace)
            if any(each.get("resourceClaimTemplateName") == manifests.name(manifest) for each in _wanted(pod))
        ]

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Make what a pod lacks; one that is going or has ended lacks nothing."""
        del moment
        pod = observed.find(kinds.POD, namespace, name)
        if pod is None or manifests.is_going(pod) or is_finished(pod):
            return requests.Reconciled()
        known = {each.get("name"): each for each in manifests.items(pod, "status", "resourceClaimStatuses")}
        steps: list[Step] = []
        notes: list[tuple[str, str, str]] = []
        made: dict[str, Manifest] = {}
        for entry in _wanted(pod):
            if entry["name"] in known:
                continue
            claim_name = name_of(pod, entry["name"])
            claim = observed.find(CLAIM, namespace, claim_name)
            template = observed.find(TEMPLATE, namespace, str(entry["resourceClaimTemplateName"]))
            if claim is not None and not _is_owned(claim, pod):
                notes.append(
                    (
                        "Warning",
                        _FAILED,
                        f"PodResourceClaim {entry['name']}: claim {claim_name} is there and not owned by the pod",
                    )
                )
                continue
            if claim is None and template is None:
                missing = f'resourceclaimtemplate "{entry["resourceClaimTemplateName"]}" not found'
                notes.append(
                    ("Warning", _FAILED, f"PodResourceClaim {entry['name']}: failed to create ResourceClaim: {missing}")
                )
                continue
            if claim is None and template is not None:
                steps.append(_creation(pod, entry["name"], claim_name, template))
            made[entry["name"]] = {"name": entry["name"], "resourceClaimName": claim_name}
        if made:
            listed = [*known.values(), *made.values()]
            steps.append(steps_to.patch(kinds.POD, pod, {"status": {"resourceClaimStatuses": listed}}, status=True))
        return requests.Reconciled(steps=steps, notes=notes)


class Claims:
    """Lets claims go with the pods that used them."""

    kind = CLAIM
    watched = (kinds.POD,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the claims of a pod."""
        del kind, observed
        namespace = manifest["metadata"].get("namespace", "")
        spec, status = manifests.items(manifest, "spec", "resourceClaims"), manifests.mapping(manifest, "status")
        told = [*spec, *manifests.items(status, "resourceClaimStatuses")]
        named = [each.get("resourceClaimName") for each in told if isinstance(each, dict)]
        named.append(manifests.mapping(status, "extendedResourceClaimStatus").get("resourceClaimName"))
        return [(namespace, str(name)) for name in dict.fromkeys(named) if name]

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take pods that are done off a claim; with the last of them, or if the claim is to go, its devices are free."""
        del moment
        claim = observed.find(CLAIM, namespace, name)
        if claim is None:
            return requests.Reconciled()
        consumers = manifests.items(claim, "status", "reservedFor")
        left = [each for each in consumers if _still_uses(each, namespace, observed)]
        steps: list[Step] = []
        if len(left) < len(consumers) or (manifests.is_going(claim) and not consumers):
            steps = _released(claim, left, fewer=len(left) < len(consumers))
        if not left and _is_left_over(claim, namespace, observed) and not manifests.is_going(claim):
            steps.append(steps_to.delete(CLAIM, claim))
        return requests.Reconciled(steps=steps)


def name_of(pod: Mapping[str, Any], claim: str) -> str:
    """Give the name of the claim that is made for a pod."""
    return f"{f'{manifests.name(pod)}-{claim}'[:_LONGEST]}-{naming.suffix(manifests.uid(pod), claim)}"


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod has ended, or will never begin because it goes without having had a node."""
    phase = manifests.mapping(pod, "status").get("phase")
    never = manifests.is_going(pod) and not manifests.mapping(pod, "spec").get("nodeName")
    return phase in (names.PHASE_SUCCEEDED, names.PHASE_FAILED) or never


def _wanted(pod: Mapping[str, Any]) -> list[Manifest]:
    return [
        each
        for each in manifests.items(pod, "spec", "resourceClaims")
        if isinstance(each, dict) and each.get("resourceClaimTemplateName") and isinstance(each.get("name"), str)
    ]


def _creation(pod: Mapping[str, Any], entry: str, name: str, template: Mapping[str, Any]) -> Step:
    stated = manifests.mapping(template, "spec", "metadata")
    annotations = {**manifests.mapping(stated, "annotations"), names.POD_CLAIM_NAME: entry}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": manifests.name(pod), "uid": manifests.uid(pod)}
    metadata = {
        "name": name,
        "generateName": name[:-5],
        "namespace": pod["metadata"].get("namespace", ""),
        "annotations": annotations,
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    if labels := manifests.mapping(stated, "labels"):
        metadata["labels"] = dict(labels)
    manifest = {
        "apiVersion": CLAIM.api_version,
        "kind": CLAIM.name,
        "metadata": metadata,
        "spec": manifests.mapping(template, "spec").get("spec") or {},
    }
    request = effects.Create(kind=CLAIM, manifest=manifest)
    return requests.Step(
        request=request, refused=(_FAILED, f"PodResourceClaim {entry}: failed to create ResourceClaim: ")
    )


def _is_owned(claim: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    owner = knowing.controller(claim)
    return owner is not None and owner.get("uid") == manifests.uid(pod)


def _still_uses(consumer: Any, namespace: str, observed: Observed) -> bool:
    """Tell whether a consumer may still use a claim; what is no pod is not judged here."""
    entry = manifests.mapping(consumer)
    if entry.get("apiGroup") or entry.get("resource") != kinds.POD.plural:
        return True
    pod = observed.find(kinds.POD, namespace, str(entry.get("name")))
    return pod is not None and manifests.uid(pod) == entry.get("uid") and not is_finished(pod)


def _released(claim: Mapping[str, Any], left: list[Any], *, fewer: bool) -> list[Step]:
    """Write who is left; if nobody is, the devices are free and nothing keeps the claim from being deleted."""
    finalizers = manifests.items(claim, "metadata", "finalizers")
    protected = names.CLAIM_FINALIZER in finalizers
    status: Manifest = {"reservedFor": left or None} if fewer else {}
    if not left and protected:
        status |= {"allocation": None, "devices": None}
    steps = [steps_to.patch(CLAIM, claim, {"status": status}, exact=True, status=True)] if status else []
    if not left and protected:
        others = [each for each in finalizers if each != names.CLAIM_FINALIZER]
        steps.append(steps_to.patch(CLAIM, claim, {"metadata": {"finalizers": others or None}}))
    return steps


def _is_left_over(claim: Mapping[str, Any], namespace: str, observed: Observed) -> bool:
    """Tell whether a claim was made for a pod that has ended; those of pods that are gone are collected with them."""
    owner = knowing.controller(claim)
    if owner is None or owner.get("kind") != kinds.POD.name:
        return False
    pod = observed.find(kinds.POD, namespace, str(owner.get("name")))
    return pod is not None and manifests.uid(pod) == owner.get("uid") and is_finished(pod)
