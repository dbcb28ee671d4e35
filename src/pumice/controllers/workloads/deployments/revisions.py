"""Revisions: the set of the present template, its number, what it inherits, and how many old ones are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.controllers.workloads import manifests, naming, pods, steps_to
from pumice.controllers.workloads.deployments import scaling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.queueing.requests import Step
    from pumice.controllers.workloads.deployments.scaling import Sets

Manifest = dict[str, Any]
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
_NOT_INHERITED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        scaling.DESIRED,
        scaling.MOST,
        "deprecated.deployment.rollback.to",
    }
)


def number(manifest: Mapping[str, Any]) -> int:
    """Give the revision that an object says it is, 0 if none."""
    return manifests.written_number(manifests.mapping(manifest, "metadata", "annotations").get(REVISION))


def present(sets: Sets) -> list[Step]:
    """Make the set of the present template, or bring the one that is there up to date; nothing if all is as it should be."""
    latest = max((number(each) for each in sets.old), default=0) + 1
    if sets.new is None:
        return [_made(sets, latest)]
    steps: list[Step] = []
    wanted = _inherited(sets.deployment, sets.new)
    own = number(sets.new)
    if own < latest:
        wanted[REVISION] = str(latest)
        if own:
            past = manifests.mapping(sets.new, "metadata", "annotations").get(HISTORY, "")
            wanted[HISTORY] = ",".join(each for each in (past, str(own)) if each)
    body: Manifest = {"metadata": {"annotations": wanted}} if wanted else {}
    pause = manifests.number(sets.spec, "minReadySeconds")
    if manifests.number(manifests.mapping(sets.new, "spec"), "minReadySeconds") != pause:
        body["spec"] = {"minReadySeconds": pause}
    if body:
        steps.append(steps_to.patch(kinds.REPLICA_SET, sets.new, body))
    shown = str(max(own, latest))
    if manifests.mapping(sets.deployment, "metadata", "annotations").get(REVISION) != shown:
        told = {"metadata": {"annotations": {REVISION: shown}}}
        steps.append(steps_to.patch(manifests.DEPLOYMENT, sets.deployment, told))
    return steps


def _inherited(deployment: Manifest, replica_set: Manifest) -> Manifest:
    """Give the annotations of a Deployment that its set does not have yet."""
    own = manifests.mapping(replica_set, "metadata", "annotations")
    found = manifests.mapping(deployment, "metadata", "annotations")
    return {key: value for key, value in found.items() if key not in _NOT_INHERITED and own.get(key) != value}


def _made(sets: Sets, revision: int) -> Step:
    """Make the set of the present template; its name carries the template's hash, so it is made once."""
    template = dict(manifests.mapping(sets.spec, "template"))
    stated = manifests.mapping(template, "metadata")
    collisions = _collisions(sets, template)
    code = naming.template_hash(template, collisions)
    labels = {**manifests.mapping(stated, "labels"), scaling.HASH: code}
    selector = dict(manifests.mapping(sets.spec, "selector"))
    selector["matchLabels"] = {**manifests.mapping(selector, "matchLabels"), scaling.HASH: code}
    notes = {
        **_inherited(sets.deployment, {"metadata": {}}),
        REVISION: str(revision),
        scaling.DESIRED: str(sets.replicas),
        scaling.MOST: str(sets.most),
    }
    name, size = f"{manifests.name(sets.deployment)}-{code}", sets.first_size()
    manifest: Manifest = {
        "apiVersion": kinds.REPLICA_SET.api_version,
        "kind": kinds.REPLICA_SET.name,
        "metadata": {
            "name": name,
            "namespace": sets.deployment["metadata"].get("namespace", ""),
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [pods.controller_reference(sets.deployment, manifests.DEPLOYMENT)],
        },
        "spec": {
            "replicas": size,
            "selector": selector,
            "template": {**template, "metadata": {**stated, "labels": labels}},
        },
    }
    if manifests.number(sets.spec, "minReadySeconds"):
        manifest["spec"]["minReadySeconds"] = sets.spec["minReadySeconds"]
    said = ("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}") if size else None
    return steps_to.create(kinds.REPLICA_SET, manifest, said)


def _collisions(sets: Sets, template: Manifest) -> int:
    """Count how often the hash must be changed because another set has the name that it would give."""
    taken = {manifests.name(each) for each in sets.all}
    collisions = manifests.number(manifests.mapping(sets.deployment, "status"), "collisionCount")
    while f"{manifests.name(sets.deployment)}-{naming.template_hash(template, collisions)}" in taken:
        collisions += 1
    return collisions


def forgotten(sets: Sets) -> list[Step]:
    """Delete the oldest sets beyond the history that is kept, once a roll-out is over."""
    limit = manifests.number(sets.spec, "revisionHistoryLimit", 10)
    idle = [each for each in sets.old if not manifests.is_going(each)]
    beyond = len(idle) - limit
    if beyond <= 0 or sets.new is None or not scaling.is_saturated(sets.new, sets.replicas):
        return []
    idle.sort(key=lambda each: (number(each), manifests.created(each), manifests.name(each)))
    return [steps_to.delete(kinds.REPLICA_SET, each) for each in idle[:beyond] if _is_empty(each)]


def _is_empty(replica_set: Manifest) -> bool:
    """Tell whether a set wants no pods, has none, and has said so since it was last changed."""
    status = manifests.mapping(replica_set, "status")
    seen = manifests.number(status, "observedGeneration") >= manifests.number(replica_set["metadata"], "generation")
    return seen and not scaling.wanted(replica_set) and not manifests.number(status, "replicas")
