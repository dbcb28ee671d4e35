"""Keys and fixed words of the API: labels, annotations, taints, gates, conditions, reasons, well-known objects.

A key says in its comment where it is found when that is not pods.
"""

from typing import Final

# Groups, schedulers, queues and namespaces that exist by convention.
SCHEDULER: Final = "volcano"
KUBE_BATCH_SCHEDULER: Final = "kube-batch"
ROOT_QUEUE: Final = "root"
DEFAULT_QUEUE: Final = "default"
DEFAULT_NAMESPACE: Final = "default"
SYSTEM_NAMESPACE: Final = "kube-system"
SYSTEM_CLUSTER_CRITICAL: Final = "system-cluster-critical"
SYSTEM_NODE_CRITICAL: Final = "system-node-critical"
POD_GROUP_PREFIX: Final = "podgroup-"
SCHEDULER_EXTENSION: Final = "pumice.dev/scheduled-by"  # clusters in kubeconfigs
GROUP_PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"  # a finalizer of Kubernetes' own pod groups

# Membership of groups and queues.
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
VOLCANO_GROUP_NAME: Final = "scheduling.volcano.sh/group-name"
KUBE_BATCH_GROUP_MIN_MEMBER: Final = "scheduling.k8s.io/group-min-member"
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"  # owners
GROUP_MIN_RESOURCES: Final = "scheduling.volcano.sh/group-min-resources"  # owners; nobody reads it
SHADOW_POD_GROUP: Final = "volcano/shadow-pod-group"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"  # pods and namespaces
JOB_QUEUE_NAME: Final = "volcano.sh/queue-name"

# What a pod is within its job.
TASK_SPEC: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
TASK_PRIORITY: Final = "volcano.sh/task-priority"
JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
JOB_TYPE: Final = "volcano.sh/job-type"  # jobs
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
CREATED_BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"  # jobs
CREATED_BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"  # jobs
CRON_JOB_SCHEDULED: Final = "volcano.sh/cronjob-scheduled-timestamp"  # jobs
BATCH_CRON_JOB_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"  # jobs of batch/v1
CONTROLLER_OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
RANK_INDEX: Final = "hccl/rankIndex"

# Who may be evicted, and when (pods and pod groups).
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"  # nodes too
BUDGET_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
BUDGET_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"

# Waiting and gates.
QUEUE_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"  # gate and annotation
SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"  # pod groups
OLDER_SLA_WAITING_TIME: Final = "sla-waiting-time"  # pod groups

# Topology.
NUMA_TOPOLOGY_POLICY: Final = "volcano.sh/numa-topology-policy"
TOPOLOGY_DECISION: Final = "volcano.sh/topology-decision"
NETWORK_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
NETWORK_TOPOLOGY_HIGHEST_TIER: Final = "volcano.sh/network-topology-highest-tier"
NETWORK_TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"  # hyper-nodes
ALLOCATED_HYPER_NODE: Final = "volcano.sh/job-allocated-hypernode"  # pod groups
TASK_TOPOLOGY_AFFINITY: Final = "volcano.sh/task-topology-affinity"  # pod groups
TASK_TOPOLOGY_ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"  # pod groups
TASK_TOPOLOGY_TASK_ORDER: Final = "volcano.sh/task-topology-task-order"  # pod groups

# Strategies, groups of resources and quality of service.
RESOURCE_GROUP: Final = "volcano.sh/resource-group"
QOS_LEVEL: Final = "volcano.sh/qos-level"
COLOCATION_CONFIG_NAME: Final = "volcano.sh/colocation-config-name"
COLOCATION_CONFIG: Final = "volcano.sh/colocation-config"
STRATEGY_SCORING_TYPE: Final = "volcano.sh/resource-strategy-scoring-type"
STRATEGY_WEIGHT: Final = "volcano.sh/resource-strategy-weight"

# Forwarding to other clusters.
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"
FORWARD_CLUSTER: Final = "volcano.sh/forward-cluster"
BURST_NAME: Final = "volcano.sh/burst-name"
SILO_RESOURCE: Final = "volcano.sh/silo-resource"

# Sharing of devices.
GPU_INDEX: Final = "volcano.sh/gpu-index"
PREDICATE_TIME: Final = "volcano.sh/predicate-time"
BIND_PHASE: Final = "volcano.sh/bind-phase"
BIND_TIME: Final = "volcano.sh/bind-time"
DEVICES_TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"
VGPU_MODE: Final = "volcano.sh/vgpu-mode"
VGPU_NODE: Final = "volcano.sh/vgpu-node"
VGPU_TIME: Final = "volcano.sh/vgpu-time"
VGPU_IDS: Final = "volcano.sh/vgpu-ids-new"
VGPU_USE_UUID: Final = "volcano.sh/vgpu-use-gpuuuid"
VGPU_NO_USE_UUID: Final = "volcano.sh/vgpu-nouse-gpuuuid"
VGPU_POD_GROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"  # pod groups
NODE_VGPU_REGISTER: Final = "volcano.sh/node-vgpu-register"  # nodes
CROSS_QUOTA: Final = "volcano.sh/crossquota-"  # nodes, before the name of a resource
GPU_UNHEALTHY_IDS: Final = "volcano.sh/gpu-unhealthy-ids"  # nodes
USE_GPU_TYPE: Final = "nvidia.com/use-gputype"
NO_USE_GPU_TYPE: Final = "nvidia.com/nouse-gputype"
GPU_LOCK: Final = "gpu"  # nodes
VGPU_LOCK: Final = "hamivgpu"  # nodes
CARD_INDEX: Final = "pumice.dev/gpu-index"
CARD_UNHEALTHY_IDS: Final = "pumice.dev/gpu-unhealthy-ids"  # nodes
GPU_PRODUCT: Final = "nvidia.com/gpu.product"  # nodes, a label

# Claims for devices.
CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"  # namespaces

# Queues.
HIERARCHY: Final = "volcano.sh/hierarchy"
NAMESPACE_WEIGHT: Final = "volcano.sh/namespace.weight"  # quotas, where namespaces are queues
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
NODE_GROUP_RESOURCE_LIMITS: Final = "volcano.sh/nodegroup-resource-limits"

# Nodes.
NODE_GROUP_NAME: Final = "volcano.sh/nodegroup-name"
OVERSUBSCRIPTION: Final = "volcano.sh/oversubscription"
OVERSUBSCRIPTION_CPU: Final = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY: Final = "volcano.sh/oversubscription-memory"
OFFLINE_JOB_EVICTING: Final = "volcano.sh/offline-job-evicting"  # taint too
COLOCATION: Final = "volcano.sh/colocation"
WARMUP: Final = "node.volcano.sh/warmup"
EVICTING_CPU_HIGH_WATERMARK: Final = "volcano.sh/evicting-cpu-high-watermark"
EVICTING_CPU_LOW_WATERMARK: Final = "volcano.sh/evicting-cpu-low-watermark"
EVICTING_MEMORY_HIGH_WATERMARK: Final = "volcano.sh/evicting-memory-high-watermark"
EVICTING_MEMORY_LOW_WATERMARK: Final = "volcano.sh/evicting-memory-low-watermark"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
OLDER_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
OLDER_REGION: Final = "failure-domain.beta.kubernetes.io/region"
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
NODE_NAME_FIELD: Final = "metadata.name"

# Volumes.
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"  # claims
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"  # claims and volumes
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"  # claims
OLDER_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"  # claims and volumes; wins over the field
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"  # CSINodes
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
CSI_DRIVER_NAME: Final = "csi.storage.k8s.io/csi-driver-name"  # parameter of storage classes
CSI_LIMIT_PREFIX: Final = "attachable-volumes-csi-"
IGNORED_PROVISIONERS: Final = ("rancher.io/local-path", "hostpath.csi.k8s.io")

# Names of resources.
CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGE_PAGES_PREFIX: Final = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
COUNT_PREFIX: Final = "count/"
NVIDIA_GPU: Final = "nvidia.com/gpu"
GPU_MEMORY: Final = "volcano.sh/gpu-memory"
GPU_NUMBER: Final = "volcano.sh/gpu-number"
VGPU_NUMBER: Final = "volcano.sh/vgpu-number"
VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"
VGPU_CORES: Final = "volcano.sh/vgpu-cores"
VGPU_MEMORY_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"
AMD_GPU: Final = "amd.com/gpu"
CARD_MILLI: Final = "pumice.dev/gpu-milli"
CARD_COUNT: Final = "pumice.dev/gpu-count"

# Phases of pods, pod groups and states of queues.
PHASE_PENDING: Final = "Pending"
PHASE_RUNNING: Final = "Running"
PHASE_SUCCEEDED: Final = "Succeeded"
PHASE_FAILED: Final = "Failed"
PHASE_UNKNOWN: Final = "Unknown"
PHASE_INQUEUE: Final = "Inqueue"
PHASE_COMPLETED: Final = "Completed"
QUEUE_OPEN: Final = "Open"
QUEUE_CLOSED: Final = "Closed"
QUEUE_CLOSING: Final = "Closing"
QUEUE_UNKNOWN: Final = "Unknown"

# Conditions of pod groups, pods and nodes, and their reasons.
CONDITION_UNSCHEDULABLE: Final = "Unschedulable"
CONDITION_SCHEDULED: Final = "Scheduled"
CONDITION_POD_SCHEDULED: Final = "PodScheduled"
CONDITION_POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
CONDITION_READY: Final = "Ready"
CONDITION_DISRUPTION_TARGET: Final = "DisruptionTarget"
CONDITION_START_FORECAST: Final = "StartForecast"
REASON_RESERVED: Final = "Reserved"
REASON_PLANNED: Final = "Planned"
REASON_UNKNOWN: Final = "Unknown"
REASON_NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"
REASON_QUEUE_UNUSABLE: Final = "QueueUnusable"
REASON_NOT_ENOUGH_TASKS: Final = "NotEnoughTasks"
REASON_NOT_ENOUGH_PODS_OF_TASK: Final = "NotEnoughPodsOfTask"
REASON_POD_FAILED: Final = "PodFailed"
REASON_POD_DELETED: Final = "PodDeleted"
REASON_SCHEDULABLE: Final = "Schedulable"
REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"
REASON_PREEMPTION: Final = "PreemptionByScheduler"

# Reasons of events.
EVENT_SCHEDULED: Final = "Scheduled"
EVENT_FAILED_SCHEDULING: Final = "FailedScheduling"
EVENT_UNSCHEDULABLE: Final = "Unschedulable"
EVENT_GROUP_PENDING: Final = "PodGroupPending"  # of a Job: what the condition of its group says
EVENT_EVICT: Final = "Evict"
EVENT_INVALID_SPEC: Final = "InvalidSpec"
EVENT_NO_EFFECT: Final = "SettingHasNoEffect"
EVENT_BROKE_DOWN: Final = "PluginBrokeDown"
EVENT_CLAIM_FREED: Final = "ResourceClaimDeallocated"
EVENT_CONDITIONS_PENDING: Final = "BindingConditionsPending"
EVENT_GUARANTEE_REDUCED: Final = "GuaranteeReduced"
EVENT_GUARANTEE_ABOVE_CAPABILITY: Final = "GuaranteeAboveCapability"

# Operators, effects and policies.
TAINT_NO_SCHEDULE: Final = "NoSchedule"
TAINT_NO_EXECUTE: Final = "NoExecute"
TAINT_PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
RESTART_ALWAYS: Final = "Always"
TOPOLOGY_HARD: Final = "hard"
TOPOLOGY_SOFT: Final = "soft"
DEQUEUE_FIFO: Final = "fifo"
DEQUEUE_TRAVERSE: Final = "traverse"

# kubectl's copy of a whole manifest, secrets in it included.
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

# Ours: how long the pods of a group, or of a queue that says so for all of them, are expected to run; and who submitted them.
ESTIMATE: Final = "pumice.dev/estimate"
DEFAULT_ESTIMATE: Final = "pumice.dev/default-estimate"
ENDS_BY: Final = "pumice.dev/ends-by"  # when the Job of a group ends all of its pods
USER: Final = "pumice.dev/user"

# Ours: how long a simulated pod runs, and how it ends.
RUN_TIME: Final = "pumice.dev/run-time"
EXIT: Final = "pumice.dev/exit"
EXIT_CODE: Final = "pumice.dev/exit-code"
QUEUE_ORDER: Final = "pumice.dev/queue-order"  # queues: a Command that was taken and is not carried out yet

# Leases: the one of Volcano's scheduler; on ours, which of them belong to schedulers, and what these serve.
LEASE_OF_VOLCANO: Final = "volcano"
LEASE_OF_SCHEDULER: Final = "pumice.dev/scheduler"
LEASE_SERVES: Final = "pumice.dev/scheduler-names"
CONTROLLER_MANAGER: Final = "vc-controller-manager"  # as source of events, and as the name of Volcano's Lease
LEASE_OF_CONTROLLERS: Final = "pumice.dev/controllers"
LEASE_RUNS: Final = "pumice.dev/controller-names"
COMPANION_CONTROLLER: Final = "pg-controller"
CONTROLLERS: Final = (
    "job-controller",
    "queue-controller",
    "gc-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "cronjob-controller",
    "hyperNode-controller",
)
"""The controllers of Volcano's kinds, by the names under which operators choose them."""
