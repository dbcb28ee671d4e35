"""The core group: pods, nodes, namespaces and what belongs to them.

Affinity and volumes have modules of their own and are offered here too, since they are of the same group.
"""

from typing import Any

import msgspec

from pumice.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from pumice.api.meta import Condition, KubeObject, ObjectMeta, ObjectReference, ResourceList, Wire
from pumice.api.native import SchedulingGroup, WorkloadReference
from pumice.api.volumes import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Volume,
)

__all__ = [
    "Affinity",
    "Binding",
    "Condition",
    "Container",
    "ContainerImage",
    "ContainerPort",
    "ContainerRestartRule",
    "ContainerStatus",
    "Event",
    "EventSource",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "ObjectMeta",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeSpec",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "ReplicationController",
    "ReplicationControllerSpec",
    "ResourceClaimUse",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "SchedulingGroup",
    "Service",
    "ServiceSpec",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "WeightedPodAffinityTerm",
    "WorkloadReference",
]


class ResourceClaimUse(Wire, frozen=True, kw_only=True):
    """A claim of the pod that a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire, frozen=True, kw_only=True):
    """What a container, or a whole pod, asks for and may at most use."""

    requests: ResourceList = msgspec.field(default_factory=dict)
    limits: ResourceList = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaimUse, ...] = ()


class ContainerPort(Wire, frozen=True, kw_only=True):
    """A port of a container, and the port of its node that it takes."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ContainerRestartRule(Wire, frozen=True, kw_only=True):
    """What is done when a container exits in a certain way."""

    action: str = ""


class Container(Wire, frozen=True, kw_only=True):
    """A container, an init container, or (restart policy Always) a sidecar."""

    name: str = ""
    image: str = ""
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()


class PodSchedulingGate(Wire, frozen=True, kw_only=True):
    """Something a pod waits for before it may be scheduled."""

    name: str = ""


class PodResourceClaim(Wire, frozen=True, kw_only=True):
    """A device claim, by its own name or by the template it is made from."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Wire, frozen=True, kw_only=True):
    """What a pod needs."""

    scheduler_name: str = ""
    node_name: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    host_network: bool = False
    host_users: bool | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """What a running container holds while it is being resized."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)


class PodResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was made from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Wire, frozen=True, kw_only=True):
    """How a pod is doing."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(KubeObject, frozen=True, kw_only=True):
    """The unit that is placed."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Wire, frozen=True, kw_only=True):
    """What keeps pods off a node unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True, kw_only=True):
    """Whether a node takes pods, and which."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Wire, frozen=True, kw_only=True):
    """An image that a node already has."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(Wire, frozen=True, kw_only=True):
    """What a node offers and how it is doing."""

    allocatable: ResourceList = msgspec.field(default_factory=dict)
    capacity: ResourceList = msgspec.field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject, frozen=True, kw_only=True):
    """A machine."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(KubeObject, frozen=True, kw_only=True):
    """A namespace; only its labels and annotations are read."""


class ServiceSpec(Wire, frozen=True, kw_only=True):
    """The pods behind a service."""

    selector: dict[str, str] = msgspec.field(default_factory=dict)


class Service(KubeObject, frozen=True, kw_only=True):
    """A service, read for spreading."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Wire, frozen=True, kw_only=True):
    """The pods of a replication controller."""

    replicas: int | None = None
    selector: dict[str, str] = msgspec.field(default_factory=dict)


class ReplicationController(KubeObject, frozen=True, kw_only=True):
    """A replication controller, read for spreading."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ResourceQuotaSpec(Wire, frozen=True, kw_only=True):
    """The limits of a namespace."""

    hard: ResourceList = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(Wire, frozen=True, kw_only=True):
    """The limits in force and what is used of them."""

    hard: ResourceList = msgspec.field(default_factory=dict)
    used: ResourceList = msgspec.field(default_factory=dict)


class ResourceQuota(KubeObject, frozen=True, kw_only=True):
    """A quota of a namespace."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class Binding(KubeObject, frozen=True, kw_only=True):
    """The write that puts a pod on a node."""

    target: ObjectReference = ObjectReference()


class EventSource(Wire, frozen=True, kw_only=True):
    """The component that an event comes from."""

    component: str = ""


class Event(KubeObject, frozen=True, kw_only=True):
    """What happened to an object."""

    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
