"""Jobs that are gangs of Kubernetes' own, as its gate WorkloadWithJob has it: a Job whose pods all run at once gets a Workload and a PodGroup, and its pods name the group.

Both are made before the first pod. A Job that has begun without them, or for which more than one group exists, runs as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.workloads import manifests, naming, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step

Manifest = dict[str, Any]
CREATED: Final = "WorkloadCreated"
_LONGEST: Final = 200  # of a Job's name in a name made of it
_BEGUN: Final = ("startTime", "succeeded", "failed", "active")


class Gang(msgspec.Struct, frozen=True):
    """Where a Job stands: the group that its pods name, if any, or what is made first."""

    group: Manifest | None = None
    steps: list[Step] = []


def of(job: Manifest, pods: Iterable[Mapping[str, Any]], observed: Observed) -> Gang:
    """Find the group of a Job, or say what is to be made before its first pod."""
    if not _is_eligible(job):
        return Gang()
    groups = _owned(kinds.NATIVE_POD_GROUP, job, observed)
    if groups:
        return Gang(group=groups[0]) if len(groups) == 1 else Gang()
    if any(pods) or _has_begun(job):
        return Gang()
    workloads = _owned(kinds.WORKLOAD, job, observed)
    if len(workloads) > 1:
        return Gang()
    if not workloads:
        return Gang(steps=[_workload(job)])
    return Gang(steps=[_pod_group(job, workloads[0])])


def join(steps: Iterable[Step], group: Manifest | None) -> None:
    """Let new pods name a group.

    Kubernetes makes the group their second owner, too. Since a group stays until its pods have gone, and pods until their owners have, none of them would go with a deleted Job.
    """
    for step in steps:
        if group is not None and isinstance(step.request, effects.Create):
            step.request.manifest["spec"]["schedulingGroup"] = {"podGroupName": manifests.name(group)}


def _owned(kind: kinds.Kind, job: Manifest, observed: Observed) -> list[Manifest]:
    return [each for each in observed.owned(kind, manifests.uid(job)) if not manifests.is_going(each)]


def _is_eligible(job: Manifest) -> bool:
    """Tell whether all pods of a Job run at once, each with an index of its own, and name no group themselves."""
    spec = manifests.mapping(job, "spec")
    parallelism = manifests.number(spec, "parallelism", 1)
    named = manifests.mapping(spec, "template", "spec").get("schedulingGroup")
    whole = spec.get("completionMode") == "Indexed" and spec.get("completions") == parallelism
    return parallelism > 1 and whole and named is None


def _has_begun(job: Manifest) -> bool:
    status = manifests.mapping(job, "status")
    return any(status.get(field) for field in _BEGUN) or bool(manifests.condition(status, "Suspended"))


def _workload(job: Manifest) -> Step:
    name = f"{manifests.name(job)[:_LONGEST]}-{naming.suffix(manifests.uid(job))}"
    policy = {"gang": {"minCount": manifests.number(manifests.mapping(job, "spec"), "parallelism", 1)}}
    reference = {"apiGroup": kinds.BATCH_JOB.group, "kind": kinds.BATCH_JOB.name, "name": manifests.name(job)}
    spec = {
        "controllerRef": reference,
        "podGroupTemplates": [{"name": _template_name(job), "schedulingPolicy": policy}],
    }
    manifest = _made(kinds.WORKLOAD, job, name, spec, [_owner(kinds.BATCH_JOB, job, controls=True)])
    return steps_to.create(kinds.WORKLOAD, manifest, (CREATED, f"Created Workload {name}"))


def _pod_group(job: Manifest, workload: Manifest) -> Step:
    found = manifests.items(workload, "spec", "podGroupTemplates")
    template = manifests.mapping(found[0]) if found else {}
    inner = template.get("name", _template_name(job))
    prefix = f"{manifests.name(workload)}-{inner}"
    name = f"{prefix[:240]}-{naming.suffix(manifests.uid(job), manifests.uid(workload))}"
    reference = {"workloadName": manifests.name(workload), "podGroupTemplateName": inner}
    spec = {field: value for field, value in template.items() if field != "name"}
    spec["podGroupTemplateRef"] = {"workload": reference}
    owners = [_owner(kinds.BATCH_JOB, job, controls=True), _owner(kinds.WORKLOAD, workload)]
    return steps_to.create(kinds.NATIVE_POD_GROUP, _made(kinds.NATIVE_POD_GROUP, job, name, spec, owners))


def _template_name(job: Manifest) -> str:
    return f"{manifests.name(job)[:56]}-pgt-0"  # it is a label of DNS


def _made(kind: kinds.Kind, job: Manifest, name: str, spec: Manifest, owners: list[Manifest]) -> Manifest:
    metadata = {"name": name, "namespace": job["metadata"].get("namespace", ""), "ownerReferences": owners}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": spec}


def _owner(kind: kinds.Kind, owner: Mapping[str, Any], *, controls: bool = False) -> Manifest:
    metadata = owner["metadata"]
    found = {"apiVersion": kind.api_version, "kind": kind.name, "name": metadata["name"], "uid": metadata["uid"]}
    return {**found, "controller": True, "blockOwnerDeletion": True} if controls else found
