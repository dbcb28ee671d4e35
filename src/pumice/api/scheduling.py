"""Pod groups, queues and priority classes; kube-batch's older groups are converted into today's."""

import msgspec

from pumice.api.meta import KubeObject, LabelSelector, ResourceList, Wire


class NetworkTopology(Wire, frozen=True, kw_only=True):
    """How close together members must be."""

    mode: str = "hard"
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Wire, frozen=True, kw_only=True):
    """How members are cut into sub-groups."""

    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: int = 1
    min_sub_groups: int = 0
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()


class PodGroupSpec(Wire, frozen=True, kw_only=True):
    """What a gang needs; absent `minResources` (None) and empty ones differ."""

    min_member: int = 0
    min_task_member: dict[str, int] = msgspec.field(default_factory=dict)
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupCondition(Wire, frozen=True, kw_only=True):
    """A verdict about a gang, and the cycle that gave it."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Wire, frozen=True, kw_only=True):
    """Phase, verdicts and counts of a gang."""

    phase: str = ""
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(KubeObject, frozen=True, kw_only=True):
    """A gang."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class Cluster(Wire, frozen=True, kw_only=True):
    """A cluster that jobs of a queue may be forwarded to."""

    name: str = ""
    weight: int = 0
    capacity: ResourceList = msgspec.field(default_factory=dict)


class Guarantee(Wire, frozen=True, kw_only=True):
    """What is reserved for a queue."""

    resource: ResourceList = msgspec.field(default_factory=dict)


class NodeGroupAffinity(Wire, frozen=True, kw_only=True):
    """Node groups by name."""

    required_during_scheduling_ignored_during_execution: tuple[str, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[str, ...] = ()


class QueueAffinity(Wire, frozen=True, kw_only=True):
    """Node groups that a queue uses and avoids."""

    node_group_affinity: NodeGroupAffinity | None = None
    node_group_anti_affinity: NodeGroupAffinity | None = None


class QueueSpec(Wire, frozen=True, kw_only=True):
    """Shares and limits of a queue; defaults are those of its schema."""

    weight: int = 1
    capability: ResourceList = msgspec.field(default_factory=dict)
    reclaimable: bool | None = None
    extend_clusters: tuple[Cluster, ...] = ()
    guarantee: Guarantee = Guarantee()
    affinity: QueueAffinity | None = None
    type: str = ""
    parent: str = ""
    deserved: ResourceList = msgspec.field(default_factory=dict)
    priority: int = 0
    dequeue_strategy: str = "traverse"


class Reservation(Wire, frozen=True, kw_only=True):
    """Nodes and resources set aside; nobody writes it today."""

    nodes: tuple[str, ...] = ()
    resource: ResourceList = msgspec.field(default_factory=dict)


class QueueStatus(Wire, frozen=True, kw_only=True):
    """State, use and counts of a queue."""

    state: str = ""
    allocated: ResourceList = msgspec.field(default_factory=dict)
    unknown: int = 0
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    reservation: Reservation = Reservation()


class Queue(KubeObject, frozen=True, kw_only=True):
    """A share of the cluster."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class PriorityClass(KubeObject, frozen=True, kw_only=True):
    """A named priority."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class OlderPodGroupSpec(Wire, frozen=True, kw_only=True):
    """What kube-batch knew of a gang."""

    min_member: int = 0
    queue: str = ""
    priority_class_name: str = ""


class OlderPodGroup(KubeObject, frozen=True, kw_only=True):
    """A gang of kube-batch's groups."""

    spec: OlderPodGroupSpec = OlderPodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    def current(self) -> PodGroup:
        """Return the same gang in today's form."""
        spec = PodGroupSpec(
            min_member=self.spec.min_member,
            queue=self.spec.queue,
            priority_class_name=self.spec.priority_class_name,
        )
        return PodGroup(metadata=self.metadata, spec=spec, status=self.status)


class OlderQueueSpec(Wire, frozen=True, kw_only=True):
    """What kube-batch knew of a queue."""

    weight: int = 1
    capability: ResourceList = msgspec.field(default_factory=dict)


class OlderQueueStatus(Wire, frozen=True, kw_only=True):
    """The counts that kube-batch kept."""

    unknown: int = 0
    pending: int = 0
    running: int = 0


class OlderQueue(KubeObject, frozen=True, kw_only=True):
    """A queue of kube-batch's groups."""

    spec: OlderQueueSpec = OlderQueueSpec()
    status: OlderQueueStatus = OlderQueueStatus()

    def current(self) -> Queue:
        """Return the same queue in today's form."""
        spec = QueueSpec(weight=self.spec.weight, capability=self.spec.capability)
        status = QueueStatus(unknown=self.status.unknown, pending=self.status.pending, running=self.status.running)
        return Queue(metadata=self.metadata, spec=spec, status=status)
