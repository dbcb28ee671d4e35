"""Every kind this project knows, with its group, scope and struct.

A kind without a struct is stored and otherwise ignored. Where one name exists in several groups the first of `KINDS` is the current one.
"""

from typing import Final

import msgspec

from pumice.api import (
    apps,
    coordination,
    core,
    native,
    nodeinfo,
    policy,
    resource,
    scheduling,
    storage,
    topology,
    usage,
    workloads,
)
from pumice.api.meta import KubeObject


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of object, as the API server names it; `struct` is what its objects are decoded into."""

    name: str
    group: str
    version: str
    plural: str
    namespaced: bool
    struct: type[KubeObject] | None = None

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its manifests."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """The lower-case name, as in `podgroup/a/g`."""
        return self.name.lower()


def _kind(
    api_version: str, name: str, plural: str, struct: type[KubeObject] | None = None, *, cluster: bool = False
) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(name=name, group=group, version=version, plural=plural, namespaced=not cluster, struct=struct)


POD: Final = _kind("v1", "Pod", "pods", core.Pod)
NODE: Final = _kind("v1", "Node", "nodes", core.Node, cluster=True)
NAMESPACE: Final = _kind("v1", "Namespace", "namespaces", core.Namespace, cluster=True)
PERSISTENT_VOLUME: Final = _kind("v1", "PersistentVolume", "persistentvolumes", core.PersistentVolume, cluster=True)
PERSISTENT_VOLUME_CLAIM: Final = _kind(
    "v1", "PersistentVolumeClaim", "persistentvolumeclaims", core.PersistentVolumeClaim
)
SERVICE: Final = _kind("v1", "Service", "services", core.Service)
CONFIG_MAP: Final = _kind("v1", "ConfigMap", "configmaps")
SECRET: Final = _kind("v1", "Secret", "secrets")
NETWORK_POLICY: Final = _kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
REPLICATION_CONTROLLER: Final = _kind(
    "v1", "ReplicationController", "replicationcontrollers", core.ReplicationController
)
RESOURCE_QUOTA: Final = _kind("v1", "ResourceQuota", "resourcequotas", core.ResourceQuota)
BINDING: Final = _kind("v1", "Binding", "bindings", core.Binding)
EVENT: Final = _kind("v1", "Event", "events", core.Event)

_SCHEDULING: Final = "scheduling.volcano.sh/v1beta1"
POD_GROUP: Final = _kind(_SCHEDULING, "PodGroup", "podgroups", scheduling.PodGroup)
QUEUE: Final = _kind(_SCHEDULING, "Queue", "queues", scheduling.Queue, cluster=True)
PRIORITY_CLASS: Final = _kind(
    "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", scheduling.PriorityClass, cluster=True
)
# Kubernetes' own gangs; the plural of theirs is that of Volcano's, so they are always addressed with the group.
_NATIVE: Final = "scheduling.k8s.io/v1alpha2"
NATIVE_POD_GROUP: Final = _kind(_NATIVE, "PodGroup", "podgroups", native.PodGroup)
WORKLOAD: Final = _kind(_NATIVE, "Workload", "workloads")
HYPER_NODE: Final = _kind("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", topology.HyperNode, cluster=True)
POD_DISRUPTION_BUDGET: Final = _kind(
    "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", policy.PodDisruptionBudget
)

_STORAGE: Final = "storage.k8s.io/v1"
STORAGE_CLASS: Final = _kind(_STORAGE, "StorageClass", "storageclasses", storage.StorageClass, cluster=True)
CSI_NODE: Final = _kind(_STORAGE, "CSINode", "csinodes", storage.CSINode, cluster=True)
CSI_DRIVER: Final = _kind(_STORAGE, "CSIDriver", "csidrivers", storage.CSIDriver, cluster=True)
CSI_STORAGE_CAPACITY: Final = _kind(_STORAGE, "CSIStorageCapacity", "csistoragecapacities", storage.CSIStorageCapacity)
VOLUME_ATTACHMENT: Final = _kind(
    _STORAGE, "VolumeAttachment", "volumeattachments", storage.VolumeAttachment, cluster=True
)

REPLICA_SET: Final = _kind("apps/v1", "ReplicaSet", "replicasets", apps.ReplicaSet)
STATEFUL_SET: Final = _kind("apps/v1", "StatefulSet", "statefulsets", apps.StatefulSet)
DAEMON_SET: Final = _kind("apps/v1", "DaemonSet", "daemonsets")
LEASE: Final = _kind("coordination.k8s.io/v1", "Lease", "leases", coordination.Lease)

_RESOURCE: Final = "resource.k8s.io/v1"
RESOURCE_CLAIM: Final = _kind(_RESOURCE, "ResourceClaim", "resourceclaims", resource.ResourceClaim)
RESOURCE_CLAIM_TEMPLATE: Final = _kind(
    _RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates", resource.ResourceClaimTemplate
)
RESOURCE_SLICE: Final = _kind(_RESOURCE, "ResourceSlice", "resourceslices", resource.ResourceSlice, cluster=True)
DEVICE_CLASS: Final = _kind(_RESOURCE, "DeviceClass", "deviceclasses", resource.DeviceClass, cluster=True)
DEVICE_TAINT_RULE: Final = _kind(
    "resource.k8s.io/v1beta2", "DeviceTaintRule", "devicetaintrules", resource.DeviceTaintRule, cluster=True
)

NUMATOPOLOGY: Final = _kind(
    "nodeinfo.volcano.sh/v1alpha1", "Numatopology", "numatopologies", nodeinfo.Numatopology, cluster=True
)
NODE_USAGE: Final = _kind("pumice.dev/v1alpha1", "NodeUsage", "nodeusages", usage.NodeUsage, cluster=True)
CARD_GEOMETRIES: Final = _kind(
    "pumice.dev/v1alpha1", "CardGeometries", "cardgeometries", usage.CardGeometries, cluster=True
)
UNSERVED_KIND: Final = _kind("pumice.dev/v1alpha1", "UnservedKind", "unservedkinds", usage.UnservedKind, cluster=True)
NODE_SHARD: Final = _kind("shard.volcano.sh/v1alpha1", "NodeShard", "nodeshards", cluster=True)
JOB: Final = _kind("batch.volcano.sh/v1alpha1", "Job", "jobs", workloads.Job)
CRON_JOB: Final = _kind("batch.volcano.sh/v1alpha1", "CronJob", "cronjobs", workloads.CronJob)
COMMAND: Final = _kind("bus.volcano.sh/v1alpha1", "Command", "commands")
JOB_FLOW: Final = _kind("flow.volcano.sh/v1alpha1", "JobFlow", "jobflows", workloads.JobFlow)
JOB_TEMPLATE: Final = _kind("flow.volcano.sh/v1alpha1", "JobTemplate", "jobtemplates")
COLOCATION_CONFIGURATION: Final = _kind(
    "config.volcano.sh/v1alpha1", "ColocationConfiguration", "colocationconfigurations"
)
HYPER_JOB: Final = _kind("training.volcano.sh/v1alpha1", "HyperJob", "hyperjobs")
DATA_SOURCE: Final = _kind("datadependency.volcano.sh/v1alpha1", "DataSource", "datasources", cluster=True)
DATA_SOURCE_CLAIM: Final = _kind("datadependency.volcano.sh/v1alpha1", "DataSourceClaim", "datasourceclaims")
BATCH_JOB: Final = _kind("batch/v1", "Job", "jobs")
BATCH_CRON_JOB: Final = _kind("batch/v1", "CronJob", "cronjobs")

# kube-batch's groups: read, and converted into today's structs.
_INCUBATOR: Final = "scheduling.incubator.k8s.io/v1alpha1"
_SIGS: Final = "scheduling.sigs.dev/v1alpha2"
INCUBATOR_POD_GROUP: Final = _kind(_INCUBATOR, "PodGroup", "podgroups", scheduling.PodGroup)
INCUBATOR_QUEUE: Final = _kind(_INCUBATOR, "Queue", "queues", scheduling.Queue, cluster=True)
SIGS_POD_GROUP: Final = _kind(_SIGS, "PodGroup", "podgroups", scheduling.PodGroup)
SIGS_QUEUE: Final = _kind(_SIGS, "Queue", "queues", scheduling.Queue, cluster=True)

KINDS: Final[tuple[Kind, ...]] = (
    POD,
    NODE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    SERVICE,
    CONFIG_MAP,
    SECRET,
    NETWORK_POLICY,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    BINDING,
    EVENT,
    POD_GROUP,
    QUEUE,
    PRIORITY_CLASS,
    NATIVE_POD_GROUP,
    WORKLOAD,
    HYPER_NODE,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    LEASE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    NUMATOPOLOGY,
    NODE_USAGE,
    CARD_GEOMETRIES,
    UNSERVED_KIND,
    NODE_SHARD,
    JOB,
    CRON_JOB,
    COMMAND,
    JOB_FLOW,
    JOB_TEMPLATE,
    COLOCATION_CONFIGURATION,
    HYPER_JOB,
    DATA_SOURCE,
    DATA_SOURCE_CLAIM,
    BATCH_JOB,
    BATCH_CRON_JOB,
    INCUBATOR_POD_GROUP,
    INCUBATOR_QUEUE,
    SIGS_POD_GROUP,
    SIGS_QUEUE,
)

FOR_CONTROLLERS: Final = frozenset({CONFIG_MAP, SECRET, NETWORK_POLICY, WORKLOAD})
"""Kinds that controllers make and no scheduler looks at; they are in no dump and in no study of a cluster."""

SCHEDULING: Final[tuple[Kind, ...]] = tuple(kind for kind in KINDS if kind not in FOR_CONTROLLERS)
"""Kinds that a scheduler may look at."""

_BY_NAME: Final = {(kind.api_version, kind.name): kind for kind in KINDS}
_BY_SINGULAR: Final = {kind.singular: kind for kind in reversed(KINDS)}


def find(api_version: str, kind_name: str) -> Kind | None:
    """Return the kind of a manifest's `apiVersion` and `kind`, or None if it is not known."""
    return _BY_NAME.get((api_version, kind_name))


def by_singular(singular: str) -> Kind | None:
    """Return the kind of a lower-case name such as "podgroup"; of several versions the current one."""
    return _BY_SINGULAR.get(singular)
