"""How the pods of a Job are called in its network: `host.subdomain`, by default the pod's name and the Job's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from pumice.controllers.volcano.jobs.reading import Job, Role


def pod_name(job: Job, role: Role, index: int) -> str:
    """Give the name of a pod."""
    return f"{job.name}-{role.name}-{index}"


def names(job: Job, role: Role) -> list[tuple[str, str]]:
    """Give host and subdomain of each pod of a role; a template that fixes the host name has one for all of them."""
    spec = manifests.mapping(role.template, "spec")
    host, domain = str(spec.get("hostname") or ""), str(spec.get("subdomain") or "") or job.name
    if host:
        return [(host, domain)] if role.replicas else []
    return [(pod_name(job, role, index), domain) for index in range(role.replicas)]


def addresses(job: Job, role: Role) -> list[str]:
    """Give the addresses of the pods of a role."""
    return [f"{host}.{domain}" for host, domain in names(job, role)]


def address(job: Job, role: Role, index: int) -> str:
    """Give the address of one pod."""
    spec = manifests.mapping(role.template, "spec")
    host = str(spec.get("hostname") or "") or pod_name(job, role, index)
    return f"{host}.{str(spec.get('subdomain') or '') or job.name}"
