"""The status of a Deployment: its counts, and the conditions that `kubectl rollout status` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import duration
from pumice.cache import effects
from pumice.controllers.workloads import manifests, steps_to
from pumice.controllers.workloads.deployments import scaling

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.controllers.queueing.requests import Moment, Step
    from pumice.controllers.workloads.deployments.scaling import Sets

Manifest = dict[str, Any]
_NO_DEADLINE = 2**31 - 1


def status_steps(sets: Sets, moment: Moment, changes: Sequence[Step], *, scaled: bool = False) -> list[Step]:
    """Write the status if it has changed."""
    old = manifests.mapping(sets.deployment, "status")
    status = _counts(sets)
    status = _available(sets, status, moment)
    status = _failing(sets, status)
    if not scaled and not manifests.mapping(sets.deployment, "spec").get("paused"):
        status = _progressing(sets, old, status, changes, moment)
    elif not scaled and not old.get("conditions"):
        status = manifests.with_condition(
            status, _said("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", moment)
        )
    return steps_to.write_status(manifests.DEPLOYMENT, sets.deployment, status)


def deadline(sets: Sets, moment: Moment) -> int | None:
    """Give when a roll-out that does not move will have taken too long."""
    status = manifests.mapping(sets.deployment, "status")
    limit, since = _limit(sets), _last_update(status)
    if limit is None or since is None or _is_complete(sets, _counts(sets)):
        return None
    at = moment.reaches(since, limit)
    return at if at > moment.now else None


def _counts(sets: Sets) -> Manifest:
    old = dict(manifests.mapping(sets.deployment, "status"))
    new = [sets.new] if sets.new is not None else []
    total = _sum(sets.all, "replicas")
    counts = {
        "replicas": total,
        "updatedReplicas": _sum(new, "replicas"),
        "readyReplicas": _sum(sets.all, "readyReplicas"),
        "availableReplicas": _sum(sets.all, "availableReplicas"),
        "unavailableReplicas": max(
            0, sum(scaling.wanted(each) for each in sets.all) - _sum(sets.all, "availableReplicas")
        ),
        "terminatingReplicas": _sum(sets.all, "terminatingReplicas"),
    }
    kept = {field: value for field, value in old.items() if field not in counts}
    said = {field: count for field, count in counts.items() if count or field == "terminatingReplicas"}
    return {**kept, **said, "observedGeneration": sets.deployment["metadata"].get("generation", 0)}


def _failing(sets: Sets, status: Manifest) -> Manifest:
    """Pass on why a set cannot have its pods."""
    newest = [sets.new] if sets.new is not None else sets.old
    found = (manifests.condition(manifests.mapping(each, "status"), "ReplicaFailure") for each in newest)
    failure = next((each for each in found if each), None)
    if failure is None:
        return manifests.without_condition(status, "ReplicaFailure")
    return manifests.with_condition(status, {"lastUpdateTime": failure.get("lastTransitionTime"), **failure})


def _available(sets: Sets, status: Manifest, moment: Moment) -> Manifest:
    if manifests.number(status, "availableReplicas") >= sets.replicas - sets.unavailable:
        said = _said("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", moment)
    else:
        said = _said(
            "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", moment
        )
    return manifests.with_condition(status, said)


def _progressing(sets: Sets, old: Any, status: Manifest, changes: Sequence[Step], moment: Moment) -> Manifest:
    """Say how a roll-out goes: it moves, it is over, or nothing has happened for too long."""
    name, subject = manifests.name(sets.deployment), "Deployment"
    made = _made(changes)
    if made:
        message = f'Created new replica set "{made}"'
        return _moved(status, _said("Progressing", "True", "NewReplicaSetCreated", message, moment))
    if sets.new is not None:
        name, subject = manifests.name(sets.new), "ReplicaSet"
    present = manifests.condition(old, "Progressing")
    if _is_complete(sets, status):
        if present.get("reason") == "NewReplicaSetAvailable":
            return status
        message = f'{subject} "{name}" has successfully progressed.'
        return _moved(status, _said("Progressing", "True", "NewReplicaSetAvailable", message, moment))
    if _has_moved(old, status) or changes or not present:
        message = f'{subject} "{name}" is progressing.'
        return _moved(status, _said("Progressing", "True", "ReplicaSetUpdated", message, moment))
    if present.get("reason") == "NewReplicaSetAvailable" or _limit(sets) is None:
        return status
    since, limit = _last_update(old), _limit(sets)
    if since is not None and limit is not None and moment.reaches(since, limit) <= moment.now:
        message = f'{subject} "{name}" has timed out progressing.'
        return _moved(status, _said("Progressing", "False", "ProgressDeadlineExceeded", message, moment))
    return status


def _moved(status: Manifest, said: Manifest) -> Manifest:
    """Take a condition over; one that says the same as before is written again only if its time matters: when a roll-out moves."""
    old = manifests.condition(status, said["type"])
    if old.get("status") == said["status"]:
        said = {**said, "lastTransitionTime": old.get("lastTransitionTime", said["lastTransitionTime"])}
    others = [
        each for each in manifests.items(status, "conditions") if manifests.mapping(each).get("type") != said["type"]
    ]
    same = all(old.get(key) == said[key] for key in ("status", "reason", "message", "lastUpdateTime"))
    return status if same else {**status, "conditions": [*others, said]}


def _is_complete(sets: Sets, status: Manifest) -> bool:
    counts = (manifests.number(status, field) for field in ("replicas", "updatedReplicas", "availableReplicas"))
    return sets.new is not None and all(count == sets.replicas for count in counts)


def _has_moved(old: Any, status: Manifest) -> bool:
    def of(one: Any, field: str) -> int:
        return manifests.number(manifests.mapping(one), field)

    before, after = (
        of(old, "replicas") - of(old, "updatedReplicas"),
        of(status, "replicas") - of(status, "updatedReplicas"),
    )
    grown = any(of(status, each) > of(old, each) for each in ("updatedReplicas", "readyReplicas", "availableReplicas"))
    return grown or after < before


def _limit(sets: Sets) -> int | None:
    seconds = manifests.number(sets.spec, "progressDeadlineSeconds", 600)
    return None if seconds >= _NO_DEADLINE else seconds * duration.SECOND


def _last_update(status: Any) -> int | None:
    found = manifests.condition(manifests.mapping(status), "Progressing")
    return manifests.moment_of(found.get("lastUpdateTime")) if found else None


def _made(changes: Sequence[Step]) -> str:
    created = (each.request for each in changes if isinstance(each.request, effects.Create))
    return next((each.manifest["metadata"]["name"] for each in created), "")


def _sum(sets: Iterable[Manifest], field: str) -> int:
    return sum(manifests.number(manifests.mapping(each, "status"), field) for each in sets)


def _said(kind: str, status: str, reason: str, message: str, moment: Moment) -> Manifest:
    when = manifests.stamp(moment)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": when,
        "lastTransitionTime": when,
    }
