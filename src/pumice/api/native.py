"""Kubernetes' own gangs: the PodGroup of `scheduling.k8s.io/v1alpha2`, and how a pod names its group.

A Workload of the same group is a store of templates that no scheduler reads, so it has no struct.
"""

from typing import Any

from pumice.api.meta import Condition, KubeObject, Wire


class BasicPolicy(Wire, frozen=True, kw_only=True):
    """Members start one by one."""


class GangPolicy(Wire, frozen=True, kw_only=True):
    """So many members start together, or none."""

    min_count: int = 0


class SchedulingPolicy(Wire, frozen=True, kw_only=True):
    """How members start; exactly one of the two is set."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Wire, frozen=True, kw_only=True):
    """A node label of which all members share one value."""

    key: str = ""


class SchedulingConstraints(Wire, frozen=True, kw_only=True):
    """Where members may be."""

    topology: tuple[TopologyConstraint, ...] = ()


class GroupResourceClaim(Wire, frozen=True, kw_only=True):
    """A device claim that all members share."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupSpec(Wire, frozen=True, kw_only=True):
    """What a group asks for; nothing of it ever changes."""

    pod_group_template_ref: dict[str, Any] | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[GroupResourceClaim, ...] = ()
    disruption_mode: str = ""
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupStatus(Wire, frozen=True, kw_only=True):
    """What schedulers say of a group."""

    conditions: tuple[Condition, ...] = ()


class PodGroup(KubeObject, frozen=True, kw_only=True):
    """One instance of a gang."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class SchedulingGroup(Wire, frozen=True, kw_only=True):
    """The group of a pod."""

    pod_group_name: str = ""


class WorkloadReference(Wire, frozen=True, kw_only=True):
    """How a pod named its group in Kubernetes 1.35."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""
