"""The PodGroup of a Job: what it asks of the scheduler, and how it is kept up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names, quantity
from pumice.controllers import usage
from pumice.controllers.queueing.observed import controller
from pumice.controllers.workloads import manifests, pods, steps_to
from pumice.framework import reason_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step
    from pumice.controllers.volcano.jobs.reading import Job, Role

Manifest = dict[str, Any]
_KEPT: Final = ("priorityClassName", "minMember", "minResources", "minTaskMember", "subGroupPolicy")
_WAITING: Final = ("", names.PHASE_PENDING)
_NOT_MADE: Final = (names.REASON_NOT_ENOUGH_TASKS, names.REASON_NOT_ENOUGH_PODS_OF_TASK)


def name(job: Job) -> str:
    """Give the name of a Job's group."""
    return f"{job.name}-{job.uid}"


def find(job: Job, observed: Observed) -> Manifest | None:
    """Give the group of a Job; one that is named after the Job alone, as older releases had it, counts if it is the Job's own."""
    found = observed.find(kinds.POD_GROUP, job.namespace, name(job))
    if found is not None:
        return found
    older = observed.find(kinds.POD_GROUP, job.namespace, job.name)
    return older if older is not None and (controller(older) or {}).get("uid") == job.uid else None


def lets_in(group: Mapping[str, Any] | None) -> bool:
    """Tell whether the scheduler has let a group in, so that its pods may be created."""
    if group is None or manifests.is_going(group):
        return False
    return manifests.mapping(group, "status").get("phase", "") not in _WAITING


def why_it_waits(group: Mapping[str, Any] | None) -> str:
    """Give what the scheduler says against a group, by the newest condition that holds; that pods are yet to be made is no news to who makes them, and when they are expected to start speaks against nobody."""
    conditions = (manifests.mapping(each) for each in manifests.items(group, "status", "conditions"))
    holding = [
        each
        for each in conditions
        if each.get("status") == "True" and each.get("type") != names.CONDITION_START_FORECAST
    ]
    newest = max(holding, key=lambda each: str(each.get("lastTransitionTime", "")), default={})
    if newest.get("type") in (None, names.CONDITION_SCHEDULED) or newest.get("reason") in _NOT_MADE:
        return ""
    return str(newest.get("message") or newest.get("reason") or "")


def cause(group: Mapping[str, Any] | None, said: str) -> str:
    """Give the cause for which the scheduler lets a group wait; what was `said` before as long as that is the same but for the numbers of the moment."""
    found = reason_keys.cause(why_it_waits(group))
    return said if said and reason_keys.cause_key(said) == reason_keys.cause_key(found) else found


def is_of_the_past(job: Job, group: Mapping[str, Any]) -> bool:
    """Tell whether a group was made for pods that a restart has done away with; one that does not say is of the present."""
    stamped = manifests.mapping(group, "metadata", "annotations").get(names.JOB_VERSION)
    return manifests.written_number(stamped, job.version) < job.version


def keep(job: Job, group: Manifest | None, observed: Observed) -> list[Step]:
    """Create a Job's group, or bring it up to date."""
    spec = _kept_spec(job, observed)
    if group is None:
        return [steps_to.create(kinds.POD_GROUP, _made(job, spec))]
    if manifests.is_going(group):
        return []
    present = manifests.mapping(group, "spec")
    changed = {field: _change(present.get(field), spec.get(field)) for field in _KEPT if differs(present, spec, field)}
    return [steps_to.patch(kinds.POD_GROUP, group, {"spec": changed})] if changed else []


def _made(job: Job, spec: Manifest) -> Manifest:
    metadata: Manifest = {"name": name(job), "namespace": job.namespace}
    own = job.manifest["metadata"]
    if manifests.mapping(own, "labels"):
        metadata["labels"] = dict(own["labels"])
    copied = {key: text for key, text in manifests.mapping(own, "annotations").items() if key != names.LAST_APPLIED}
    metadata["annotations"] = {**copied, names.JOB_VERSION: str(job.version)}
    metadata["ownerReferences"] = [pods.controller_reference(job.manifest, kinds.JOB)]
    stated = {field: value for field, value in spec.items() if value not in ("", [], {})}
    kind = kinds.POD_GROUP
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": stated}


def _kept_spec(job: Job, observed: Observed) -> Manifest:
    """Give what the group says, worked out once for each spec of the Job and values of its roles' priorities."""
    priorities = {role.name: _priority(role, observed) for role in job.roles}
    key = ("group", *priorities.values())
    kept = job.asked.kept
    if key not in kept:
        kept[key] = _spec(job, priorities)
    found: Manifest = kept[key]
    return found


def _spec(job: Job, priorities: Mapping[str, int]) -> Manifest:
    spec: Manifest = {
        "minMember": job.min_available,
        "minTaskMember": {role.name: role.gang_minimum for role in job.roles},
        "queue": job.queue,
        "priorityClassName": job.spec.get("priorityClassName") or "",
        "minResources": usage.total(_minimum(job, priorities)),
        "subGroupPolicy": [_sub_group(role) for role in job.roles if role.partition is not None],
    }
    topology = manifests.mapping(job.spec, "networkTopology")
    if topology:
        spec["networkTopology"] = _topology(topology)
    return spec


def _topology(stated: Mapping[str, Any]) -> Manifest:
    found: Manifest = {"mode": stated.get("mode") or names.TOPOLOGY_HARD}
    if stated.get("highestTierAllowed") is not None:
        found["highestTierAllowed"] = stated["highestTierAllowed"]
    elif stated.get("highestTierName"):
        found["highestTierName"] = stated["highestTierName"]
    return found


def _sub_group(role: Role) -> Manifest:
    partition = role.partition
    assert partition is not None  # noqa: S101  asked of those that have one
    found: Manifest = {
        "name": role.name,
        "subGroupSize": partition.size,
        "minSubGroups": partition.minimum,
        "labelSelector": {"matchLabels": {names.TASK_SPEC: role.name}},
        "matchLabelKeys": [names.PARTITION_ID],
    }
    if partition.topology:
        found["networkTopology"] = _topology(partition.topology)
    return found


def _minimum(job: Job, priorities: Mapping[str, int]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Give how many pods of each role the minimum is made of, the roles of highest priority first."""
    left, taken = job.min_available, {}
    ordered = sorted(job.roles, key=lambda role: -priorities[role.name])
    if job.min_available >= sum(role.least for role in job.roles):
        for role in ordered:
            taken[role.name] = min(role.least, left)
            left -= taken[role.name]
    for role in ordered:
        before = taken.get(role.name, 0)
        more = max(0, min(role.replicas - before, left))
        left -= more
        if before + more:
            yield manifests.mapping(role.template, "spec"), before + more


def _priority(role: Role, observed: Observed) -> int:
    named = manifests.mapping(role.template, "spec").get("priorityClassName")
    found = observed.find(kinds.PRIORITY_CLASS, "", named) if isinstance(named, str) else None
    return manifests.number(found, "value") if found is not None else 0


# ---- what differs


def differs(present: Mapping[str, Any], wanted: Mapping[str, Any], field: str) -> bool:
    """Tell whether a field says something else than it should, amounts by their value."""
    old, new = present.get(field), wanted.get(field)
    if old == new or (not old and not new):
        return False
    if field != "minResources" or not isinstance(old, dict) or not isinstance(new, dict):
        return True
    return old.keys() != new.keys() or any(not _equal(old[key], new[key]) for key in new)


def _equal(one: Any, other: Any) -> bool:
    try:
        return quantity.parse(one) == quantity.parse(other)
    except quantity.QuantityError:
        return False


def _change(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return manifests.merge_patch(old, new)
    return new
