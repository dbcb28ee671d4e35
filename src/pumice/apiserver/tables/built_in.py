"""The columns of the built-in kinds, with the names and the order that `kubectl get` shows on any cluster."""

from __future__ import annotations

from typing import Final

from pumice.apiserver.subresources import selector_text
from pumice.apiserver.tables import cells, pods
from pumice.apiserver.tables.columns import AGE, CREATED, NAME, Column, number, wide
from pumice.sim import structure

_CONTAINERS: Final = (
    wide("Containers", cells.template("name", "spec", "template", "spec")),
    wide("Images", cells.template("image", "spec", "template", "spec")),
)
_SELECTED: Final = (*_CONTAINERS, wide("Selector", cells.selector))


_EVENT: Final = (
    Column("Last Seen", cells.event_time("lastTimestamp", "eventTime", "firstTimestamp")),
    Column("Type", cells.text("type", default="")),
    Column("Reason", cells.text("reason", default="")),
    Column("Object", cells.regarding),
    wide("Subobject", cells.text("involvedObject", "fieldPath", default="")),
    wide("Source", cells.source),
    Column("Message", lambda item, _: str(item.get("message", "")).strip()),
    wide("First Seen", cells.event_time("firstTimestamp", "eventTime")),
    wide("Count", cells.event_count),
    Column("Name", lambda item, _: item["metadata"]["name"], "string", "name", 1),
)


_WEBHOOKS: Final = (NAME, number("Webhooks", cells.count("webhooks")), AGE)
_BINDING: Final = (NAME, Column("Role", cells.role), AGE, wide("Users", cells.subjects("User")), wide("Groups", cells.subjects("Group")), wide("ServiceAccounts", cells.subjects("ServiceAccount")))  # fmt: skip


_REPLICAS: Final = (NAME, number("Desired", cells.count("spec", "replicas")), number("Current", cells.count("status", "replicas")), number("Ready", cells.count("status", "readyReplicas")), AGE, *_SELECTED)  # fmt: skip
PLAIN: Final = (NAME, AGE)
COLUMNS: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "ConfigMap"): (
        NAME,
        Column("Data", lambda i, _: len(i.get("data") or {}) + len(i.get("binaryData") or {})),
        AGE,
    ),
    ("", "Endpoints"): (NAME, Column("Endpoints", cells.endpoints), AGE),
    ("", "Event"): _EVENT,
    ("", "LimitRange"): (NAME, CREATED),
    ("", "Namespace"): (NAME, Column("Status", cells.text("status", "phase")), AGE),
    ("", "Node"): (
        NAME,
        Column("Status", cells.node_status),
        Column("Roles", cells.roles),
        AGE,
        Column("Version", cells.text("status", "nodeInfo", "kubeletVersion", default="")),
        wide("Internal-IP", cells.address("InternalIP")),
        wide("External-IP", cells.address("ExternalIP")),
        wide("OS-Image", cells.info("osImage")),
        wide("Kernel-Version", cells.info("kernelVersion")),
        wide("Container-Runtime", cells.info("containerRuntimeVersion")),
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        Column("Status", cells.claim_status),
        Column("Volume", cells.text("spec", "volumeName", default="")),
        Column("Capacity", cells.text("status", "capacity", "storage", default="")),
        Column("Access Modes", cells.modes),
        Column("StorageClass", cells.text("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", cells.text("spec", "volumeAttributesClassName", default="<unset>")),
        AGE,
        wide("VolumeMode", cells.text("spec", "volumeMode", default="<unset>")),
    ),
    ("", "PersistentVolume"): (
        NAME,
        Column("Capacity", cells.text("spec", "capacity", "storage", default="")),
        Column("Access Modes", cells.modes),
        Column("Reclaim Policy", cells.text("spec", "persistentVolumeReclaimPolicy", default="")),
        Column("Status", cells.claim_status),
        Column("Claim", cells.claimed_by),
        Column("StorageClass", cells.text("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", cells.text("spec", "volumeAttributesClassName", default="<unset>")),
        Column("Reason", cells.text("status", "reason", default="")),
        AGE,
        wide("VolumeMode", cells.text("spec", "volumeMode", default="<unset>")),
    ),
    ("", "Pod"): (
        NAME,
        Column("Ready", pods.ready),
        Column("Status", pods.status),
        Column("Restarts", pods.restarts),
        AGE,
        wide("IP", cells.text("status", "podIP")),
        wide("Node", cells.text("spec", "nodeName")),
        wide("Nominated Node", cells.text("status", "nominatedNodeName")),
        wide("Readiness Gates", pods.gates),
    ),
    ("", "PodTemplate"): (
        NAME,
        Column("Containers", cells.template("name", "template", "spec")),
        Column("Images", cells.template("image", "template", "spec")),
        Column(
            "Pod Labels",
            lambda item, _: selector_text(structure.mapping(item, "template", "metadata", "labels")) or "<none>",
        ),
    ),
    ("", "ReplicationController"): _REPLICAS,
    ("", "ResourceQuota"): (
        NAME,
        Column("Request", cells.quota("requests")),
        Column("Limit", cells.quota("limits")),
        AGE,
    ),
    ("", "Secret"): (
        NAME,
        Column("Type", cells.text("type")),
        Column("Data", lambda i, _: len(i.get("data") or {})),
        AGE,
    ),
    ("", "ServiceAccount"): (NAME, AGE),
    ("", "Service"): (
        NAME,
        Column("Type", cells.text("spec", "type")),
        Column("Cluster-IP", cells.text("spec", "clusterIP")),
        Column("External-IP", cells.external),
        Column("Port(s)", cells.ports),
        AGE,
        wide("Selector", cells.selector),
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("apps", "ControllerRevision"): (
        NAME,
        Column("Controller", cells.controller),
        Column("Revision", cells.text("revision", default="0")),
        AGE,
    ),
    ("apps", "DaemonSet"): (
        NAME,
        number("Desired", cells.count("status", "desiredNumberScheduled")),
        number("Current", cells.count("status", "currentNumberScheduled")),
        number("Ready", cells.count("status", "numberReady")),
        number("Up-to-date", cells.count("status", "updatedNumberScheduled")),
        number("Available", cells.count("status", "numberAvailable")),
        Column(
            "Node Selector",
            lambda i, _: selector_text(structure.mapping(i, "spec", "template", "spec", "nodeSelector")) or "<none>",
        ),
        AGE,
        *_SELECTED,
    ),
    ("apps", "Deployment"): (
        NAME,
        Column("Ready", cells.ready_of),
        Column("Up-to-date", cells.count("status", "updatedReplicas")),
        Column("Available", cells.count("status", "availableReplicas")),
        AGE,
        *_SELECTED,
    ),
    ("apps", "ReplicaSet"): _REPLICAS,
    ("apps", "StatefulSet"): (NAME, Column("Ready", cells.ready_of), AGE, *_CONTAINERS),
    ("events.k8s.io", "Event"): _EVENT,
    ("batch", "CronJob"): (
        NAME,
        Column("Schedule", cells.text("spec", "schedule")),
        Column("Timezone", cells.text("spec", "timeZone")),
        Column("Suspend", cells.suspended, "boolean"),
        number("Active", cells.count("status", "active")),
        Column("Last Schedule", cells.elapsed("status", "lastScheduleTime")),
        AGE,
        wide("Containers", cells.template("name", "spec", "jobTemplate", "spec", "template", "spec")),
        wide("Images", cells.template("image", "spec", "jobTemplate", "spec", "template", "spec")),
        wide("Selector", lambda *_: "<none>"),
    ),
    ("batch", "Job"): (
        NAME,
        Column("Status", cells.job_status),
        Column("Completions", cells.completions),
        Column("Duration", cells.job_duration),
        AGE,
        *_SELECTED,
    ),
    ("networking.k8s.io", "IngressClass"): (
        NAME,
        Column("Controller", cells.text("spec", "controller")),
        Column("Parameters", cells.text("spec", "parameters", "name")),
        AGE,
    ),
    ("networking.k8s.io", "Ingress"): (
        NAME,
        Column("Class", cells.text("spec", "ingressClassName")),
        Column("Hosts", cells.hosts),
        Column("Address", lambda *_: ""),
        Column("Ports", lambda item, _: "80, 443" if structure.mapping(item, "spec").get("tls") else "80"),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        NAME,
        Column("Pod-Selector", lambda i, _: selector_text(structure.mapping(i, "spec", "podSelector")) or "<none>"),
        AGE,
    ),
    ("node.k8s.io", "RuntimeClass"): (NAME, Column("Handler", cells.text("handler")), AGE),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        Column("Min Available", cells.text("spec", "minAvailable", default="N/A")),
        Column("Max Unavailable", cells.text("spec", "maxUnavailable", default="N/A")),
        number("Allowed Disruptions", cells.count("status", "disruptionsAllowed")),
        AGE,
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRole"): (NAME, CREATED),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "Role"): (NAME, CREATED),
    ("storage.k8s.io", "CSIDriver"): (
        NAME,
        Column("AttachRequired", cells.at("spec", "attachRequired", default=True), "boolean"),
        Column("PodInfoOnMount", cells.at("spec", "podInfoOnMount", default=False), "boolean"),
        Column("StorageCapacity", cells.at("spec", "storageCapacity", default=False), "boolean"),
        Column(
            "TokenRequests",
            lambda i, _: (
                ",".join(e.get("audience", "") for e in structure.mapping(i, "spec").get("tokenRequests") or ())
                or "<unset>"
            ),
        ),
        Column("RequiresRepublish", cells.at("spec", "requiresRepublish", default=False), "boolean"),
        Column(
            "Modes", lambda i, _: ",".join(structure.mapping(i, "spec").get("volumeLifecycleModes") or ["Persistent"])
        ),
        AGE,
    ),
    ("storage.k8s.io", "CSINode"): (NAME, number("Drivers", cells.count("spec", "drivers")), AGE),
    ("storage.k8s.io", "CSIStorageCapacity"): (NAME, CREATED),
    ("storage.k8s.io", "StorageClass"): (
        Column("Name", cells.class_name, "string", "name"),
        Column("Provisioner", cells.text("provisioner")),
        Column("ReclaimPolicy", cells.text("reclaimPolicy")),
        Column("VolumeBindingMode", cells.text("volumeBindingMode")),
        Column("AllowVolumeExpansion", cells.text("allowVolumeExpansion", default="false")),
        AGE,
    ),
    ("storage.k8s.io", "VolumeAttachment"): (
        NAME,
        Column("Attacher", cells.text("spec", "attacher"), "string", "name"),
        Column("PV", cells.text("spec", "source", "persistentVolumeName", default="")),
        Column("Node", cells.text("spec", "nodeName")),
        Column("Attached", cells.at("status", "attached", default=False), "boolean"),
        AGE,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): (NAME, Column("DriverName", cells.text("driverName")), AGE),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (NAME, CREATED),
    ("scheduling.k8s.io", "PodGroup"): (
        NAME,
        Column("Policy", cells.group_policy),
        Column("Workload", cells.text("spec", "podGroupTemplateRef", "workload", "workloadName")),
        Column("Status", cells.group_status),
        AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        number("Value", cells.count("value")),
        Column("Global-Default", cells.at("globalDefault", default=False), "boolean"),
        AGE,
        Column("PreemptionPolicy", cells.text("preemptionPolicy")),
    ),
    ("coordination.k8s.io", "Lease"): (NAME, Column("Holder", cells.text("spec", "holderIdentity", default="")), AGE),
    ("discovery.k8s.io", "EndpointSlice"): (
        NAME,
        Column("AddressType", cells.text("addressType")),
        Column("Ports", lambda i, _: ",".join(str(e.get("port", "*")) for e in i.get("ports") or ()) or "<unset>"),
        Column(
            "Endpoints",
            lambda i, _: ",".join(a for e in i.get("endpoints") or () for a in e.get("addresses") or ()) or "<unset>",
        ),
        AGE,
    ),
    ("resource.k8s.io", "DeviceClass"): (NAME, AGE),
    ("resource.k8s.io", "DeviceTaintRule"): (
        NAME,
        Column("Key", cells.text("spec", "taint", "key")),
        Column("Value", cells.text("spec", "taint", "value", default="")),
        Column("Effect", cells.text("spec", "taint", "effect")),
        Column("TimeAdded", cells.elapsed("spec", "taint", "timeAdded")),
        AGE,
    ),
    ("resource.k8s.io", "ResourceClaim"): (NAME, Column("State", cells.claim_state), AGE),
    ("resource.k8s.io", "ResourceClaimTemplate"): (NAME, AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        NAME,
        Column("Node", cells.text("spec", "nodeName", default="<unset>")),
        Column("Driver", cells.text("spec", "driver")),
        Column("Pool", cells.text("spec", "pool", "name")),
        AGE,
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): (
        NAME,
        Column("PriorityLevel", cells.text("spec", "priorityLevelConfiguration", "name")),
        Column("MatchingPrecedence", cells.text("spec", "matchingPrecedence")),
        Column("DistinguisherMethod", cells.text("spec", "distinguisherMethod", "type")),
        AGE,
        Column("MissingPL", cells.missing_level),
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): (
        NAME,
        Column("Type", cells.text("spec", "type")),
        Column("NominalConcurrencyShares", cells.text("spec", "limited", "nominalConcurrencyShares")),
        Column("Queues", cells.limited("queues")),
        Column("HandSize", cells.limited("handSize")),
        Column("QueueLengthLimit", cells.limited("queueLengthLimit")),
        AGE,
    ),
}
