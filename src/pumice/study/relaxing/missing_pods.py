"""The pods that a group lacks below its minimum, of its roles too, and that nobody is going to make: whoever made the others would make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, names, timestamp
from pumice.study import quotas, staffing

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.job import Job

AMOUNTS: Final = {name: "64Mi" if name.endswith("memory") else "100m" for name in sorted(quotas.MUST_STATE)}
"""What pods state that stated nothing."""


def find(cluster: Cluster, job: Job, now: int, scheduler: str, *, backfills: bool) -> list[core.Pod]:
    """Return them, like those that are there or as minResources say, stating what quotas limit and what the policy asks of a pod that it places."""
    roles = _roles(job)
    lacking = max(job.min_member - job.tally.valid, len(roles))
    if job.group is None or lacking <= 0:
        return []
    task = next(iter(job.tasks.values()), None)
    if task is not None:
        pods = [_another(task.pod, index, now) for index in range(lacking)]
    else:
        pods = staffing.imagined(job, now, scheduler, lacking)
    pods = [_in_role(pod, role) for pod, role in zip(pods, roles, strict=False)] + pods[len(roles) :]
    unstated = set(unstated_of(cluster, job.namespace, pods))
    if not backfills and any(asks_for_nothing(pod) for pod in pods):
        unstated.add("cpu")
    return [structs.replace(pod, spec=stating(pod.spec, sorted(unstated))) for pod in pods]


def _roles(job: Job) -> list[str]:
    """Return the role of each pod that a role lacks below its minimum."""
    if not job.roles_enforced:
        return []
    there = {role: tally.valid for role, tally in job.roles.items()}
    return [role for role, least in sorted(job.min_task_member.items()) for _ in range(least - there.get(role, 0))]


def _another(pod: core.Pod, index: int, now: int) -> core.Pod:
    """Return a pod like one that is there, under a name that nobody has."""
    metadata = structs.replace(
        pod.metadata,
        name=f"{pod.metadata.name}-more-{index}",
        uid=f"{pod.metadata.uid}-more-{index}",
        creation_timestamp=timestamp.format_timestamp(now),
        deletion_timestamp=None,
        resource_version="",
    )
    spec = structs.replace(pod.spec, node_name="")
    return core.Pod(metadata=metadata, spec=spec, status=core.PodStatus(phase=names.PHASE_PENDING))


def _in_role(pod: core.Pod, role: str) -> core.Pod:
    annotations = {**pod.metadata.annotations, names.TASK_SPEC: role}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=annotations))


# -- what pods have to state -----------------------------------------------------------------------------------


def asks_for_nothing(pod: core.Pod) -> bool:
    """Tell whether a pod states no request, nor a limit that stands for one."""
    return not any(each.resources.requests or each.resources.limits for each in pod.spec.containers)


def unstated_of(cluster: Cluster, namespace: str, pods: Sequence[core.Pod]) -> dict[str, str]:
    """Return what quotas limit and some pods do not state, each with a quota that does."""
    return {
        name: f"{quota.metadata.namespace}/{quota.metadata.name}"
        for quota in quotas.Quotas(cluster).of(namespace)
        for pod in pods
        for name in quotas.unstated_of(quota, quotas.charges(pod))
    }


def stating(spec: core.PodSpec, lacking: Collection[str]) -> core.PodSpec:
    """Let every container state what it lacks."""

    def completed(container: core.Container) -> core.Container:
        requests, bounds = dict(container.resources.requests), dict(container.resources.limits)
        for name in lacking:
            target = bounds if name.startswith("limits.") else requests
            target.setdefault(name.rpartition(".")[2], AMOUNTS[name])
        return structs.replace(
            container, resources=structs.replace(container.resources, requests=requests, limits=bounds)
        )

    return structs.replace(spec, containers=tuple(map(completed, spec.containers)))
