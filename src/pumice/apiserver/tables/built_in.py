"""The columns of the built-in kinds, with the names and the order that `kubectl get` shows on any cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, timestamp
from pumice.apiserver.subresources import selector_text
from pumice.apiserver.tables import ages, pods
from pumice.apiserver.tables.columns import AGE, CREATED, NAME, Column, number, wide
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Cell = Callable[[Mapping[str, Any], int], Any]

Item = "Mapping[str, Any]"


def _at(*path: str, default: Any = "<none>") -> Cell:
    """Give a cell that shows one field."""

    def cell(item: Mapping[str, Any], _: int) -> Any:
        value = structure.mapping(item, *path[:-1]).get(path[-1])
        return default if value is None or value == "" else value

    return cell


def _text(*path: str, default: str = "<none>") -> Cell:
    """Give a cell that shows one field as a text."""
    cell = _at(*path, default=default)
    return lambda item, now: _word(cell(item, now))


def _word(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _count(*path: str) -> Cell:
    def cell(item: Mapping[str, Any], _: int) -> int:
        value = structure.mapping(item, *path[:-1]).get(path[-1])
        return value if isinstance(value, int) else len(value) if isinstance(value, (list, dict)) else 0

    return cell


def _template(field: str, *path: str) -> Cell:
    def cell(item: Mapping[str, Any], _: int) -> str:
        found = structure.mapping(item, *path).get("containers") or ()
        return ",".join(str(each.get(field, "")) for each in found)

    return cell


def _selector(item: Mapping[str, Any], _: int) -> str:
    selector = structure.mapping(item, "spec").get("selector")
    return selector_text(selector) if selector else "<none>"


_CONTAINERS: Final = (
    wide("Containers", _template("name", "spec", "template", "spec")),
    wide("Images", _template("image", "spec", "template", "spec")),
)
_SELECTED: Final = (*_CONTAINERS, wide("Selector", _selector))


# ---- nodes


def _node_status(node: Mapping[str, Any], _: int) -> str:
    ready = structure.mapping(structure.condition(node, "Ready"))
    words = ["Unknown" if not ready else "Ready" if ready.get("status") == "True" else "NotReady"]
    if structure.mapping(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Mapping[str, Any], _: int) -> str:
    labels = structure.mapping(node, "metadata", "labels")
    prefix = "node-role.kubernetes.io/"
    found = sorted({key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""})
    return ",".join(found) or "<none>"


def _address(kind: str) -> Cell:
    def cell(node: Mapping[str, Any], _: int) -> str:
        found = structure.mapping(node, "status").get("addresses") or ()
        return next((str(each.get("address")) for each in found if each.get("type") == kind), "<none>")

    return cell


def _info(field: str) -> Cell:
    return lambda node, _: structure.mapping(node, "status", "nodeInfo").get(field) or "<unknown>"


# ---- volumes

_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(item: Mapping[str, Any], _: int) -> str:
    bound = structure.mapping(item, "status").get("accessModes")
    stated = structure.mapping(item, "spec").get("accessModes") if item["kind"] == "PersistentVolume" else bound
    return ",".join(_MODES.get(each, each) for each in stated or ())


def _claim_status(item: Mapping[str, Any], _: int) -> str:
    return (
        "Terminating"
        if item["metadata"].get("deletionTimestamp")
        else str(structure.mapping(item, "status").get("phase", ""))
    )


def _claimed_by(item: Mapping[str, Any], _: int) -> str:
    reference = structure.mapping(item, "spec", "claimRef")
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""


# ---- services


def _external(item: Mapping[str, Any], _: int) -> str:
    spec = structure.mapping(item, "spec")
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName"))
    if spec.get("externalIPs"):
        return ",".join(spec["externalIPs"])
    return "<pending>" if spec.get("type") == "LoadBalancer" else "<none>"


def _ports(item: Mapping[str, Any], _: int) -> str:
    found = structure.mapping(item, "spec").get("ports") or ()
    return (
        ",".join(
            f"{each['port']}{':' + str(each['nodePort']) if each.get('nodePort') else ''}/{each.get('protocol', 'TCP')}"
            for each in found
        )
        or "<none>"
    )


# ---- workloads


def _ready_of(item: Mapping[str, Any], _: int) -> str:
    wanted = structure.mapping(item, "spec").get("replicas", 0)
    return f"{structure.mapping(item, 'status').get('readyReplicas', 0)}/{wanted}"


def _job_status(item: Mapping[str, Any], _: int) -> str:
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet", "SuccessCriteriaMet")):  # fmt: skip
        if structure.mapping(structure.condition(item, kind)).get("status") == "True":
            return word
    return "Terminating" if item["metadata"].get("deletionTimestamp") else "Running"


def _completions(item: Mapping[str, Any], _: int) -> str:
    spec, done = structure.mapping(item, "spec"), structure.mapping(item, "status").get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(item: Mapping[str, Any], now: int) -> str:
    status = structure.mapping(item, "status")
    if not status.get("startTime"):
        return ""
    end = timestamp.parse(status["completionTime"]) if status.get("completionTime") else now
    return ages.span((end - timestamp.parse(status["startTime"])) // duration.SECOND)


def _last_schedule(item: Mapping[str, Any], now: int) -> str:
    last = structure.mapping(item, "status").get("lastScheduleTime")
    return ages.since(last, now) if last else "<none>"


# ---- events


def _event_time(*fields: str) -> Cell:
    def cell(item: Mapping[str, Any], now: int) -> str:
        found = next((item[field] for field in fields if item.get(field)), None)
        if fields[0] == "lastTimestamp" and isinstance(item.get("series"), dict):
            found = item["series"].get("lastObservedTime") or found
        return ages.since(found, now)

    return cell


def _regarding(item: Mapping[str, Any], _: int) -> str:
    about = structure.mapping(item, "involvedObject")
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _source(item: Mapping[str, Any], _: int) -> str:
    source = structure.mapping(item, "source")
    parts = [
        source.get("component") or item.get("reportingComponent"),
        source.get("host") or item.get("reportingInstance"),
    ]
    return ", ".join(str(each) for each in parts if each)


def _event_count(item: Mapping[str, Any], _: int) -> str:
    return str(structure.mapping(item, "series").get("count") or item.get("count") or 1)


_EVENT: Final = (
    Column("Last Seen", _event_time("lastTimestamp", "eventTime", "firstTimestamp")),
    Column("Type", _text("type", default="")),
    Column("Reason", _text("reason", default="")),
    Column("Object", _regarding),
    wide("Subobject", _text("involvedObject", "fieldPath", default="")),
    wide("Source", _source),
    Column("Message", lambda item, _: str(item.get("message", "")).strip()),
    wide("First Seen", _event_time("firstTimestamp", "eventTime")),
    wide("Count", _event_count),
    Column("Name", lambda item, _: item["metadata"]["name"], "string", "name", 1),
)


# ---- the rest


def _quota(part: str) -> Cell:
    def cell(item: Mapping[str, Any], _: int) -> str:
        hard, used = structure.mapping(item, "status", "hard"), structure.mapping(item, "status", "used")
        names = sorted(name for name in hard if name.startswith("limits.") is (part == "limits"))
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _subjects(kind: str) -> Cell:
    def cell(item: Mapping[str, Any], _: int) -> str:
        found = [each for each in item.get("subjects") or () if each.get("kind") == kind]
        return ", ".join(
            f"{each.get('namespace')}/{each['name']}" if kind == "ServiceAccount" else each["name"] for each in found
        )

    return cell


def _role(item: Mapping[str, Any], _: int) -> str:
    return f"{item['roleRef']['kind']}/{item['roleRef']['name']}"


_BINDING: Final = (NAME, Column("Role", _role), AGE, wide("Users", _subjects("User")), wide("Groups", _subjects("Group")), wide("ServiceAccounts", _subjects("ServiceAccount")))  # fmt: skip


def _endpoints(item: Mapping[str, Any], _: int) -> str:
    found = [each.get("ip", "") for subset in item.get("subsets") or () for each in subset.get("addresses") or ()]
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "") or "<none>"


def _class_name(item: Mapping[str, Any], _: int) -> str:
    default = (
        structure.mapping(item, "metadata", "annotations").get("storageclass.kubernetes.io/is-default-class") == "true"
    )
    return f"{item['metadata']['name']} (default)" if default else str(item["metadata"]["name"])


def _claim_state(item: Mapping[str, Any], _: int) -> str:
    words = ["deleted"] if item["metadata"].get("deletionTimestamp") else []
    words += ["allocated"] if structure.mapping(item, "status").get("allocation") else []
    words += ["reserved"] if structure.mapping(item, "status").get("reservedFor") else []
    return ",".join(words) or "pending"


def _controller(item: Mapping[str, Any], _: int) -> str:
    owner = next((each for each in item["metadata"].get("ownerReferences") or () if each.get("controller")), None)
    return f"{owner['kind'].lower()}.apps/{owner['name']}" if owner else "<none>"


def _hosts(item: Mapping[str, Any], _: int) -> str:
    return ",".join(each.get("host", "*") for each in structure.mapping(item, "spec").get("rules") or ()) or "*"


def _missing_level(item: Mapping[str, Any], _: int) -> str:
    return str(structure.mapping(structure.condition(item, "Dangling")).get("status", "?"))


def _limited(field: str) -> Cell:
    return _text("spec", "limited", "limitResponse", "queuing", field)


_REPLICAS: Final = (NAME, number("Desired", _count("spec", "replicas")), number("Current", _count("status", "replicas")), number("Ready", _count("status", "readyReplicas")), AGE, *_SELECTED)  # fmt: skip
PLAIN: Final = (NAME, AGE)
COLUMNS: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "ConfigMap"): (
        NAME,
        Column("Data", lambda i, _: len(i.get("data") or {}) + len(i.get("binaryData") or {})),
        AGE,
    ),
    ("", "Endpoints"): (NAME, Column("Endpoints", _endpoints), AGE),
    ("", "Event"): _EVENT,
    ("", "LimitRange"): (NAME, CREATED),
    ("", "Namespace"): (NAME, Column("Status", _text("status", "phase")), AGE),
    ("", "Node"): (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _roles),
        AGE,
        Column("Version", _text("status", "nodeInfo", "kubeletVersion", default="")),
        wide("Internal-IP", _address("InternalIP")),
        wide("External-IP", _address("ExternalIP")),
        wide("OS-Image", _info("osImage")),
        wide("Kernel-Version", _info("kernelVersion")),
        wide("Container-Runtime", _info("containerRuntimeVersion")),
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        Column("Status", _claim_status),
        Column("Volume", _text("spec", "volumeName", default="")),
        Column("Capacity", _text("status", "capacity", "storage", default="")),
        Column("Access Modes", _modes),
        Column("StorageClass", _text("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", _text("spec", "volumeAttributesClassName", default="<unset>")),
        AGE,
        wide("VolumeMode", _text("spec", "volumeMode", default="<unset>")),
    ),
    ("", "PersistentVolume"): (
        NAME,
        Column("Capacity", _text("spec", "capacity", "storage", default="")),
        Column("Access Modes", _modes),
        Column("Reclaim Policy", _text("spec", "persistentVolumeReclaimPolicy", default="")),
        Column("Status", _claim_status),
        Column("Claim", _claimed_by),
        Column("StorageClass", _text("spec", "storageClassName", default="")),
        Column("VolumeAttributesClass", _text("spec", "volumeAttributesClassName", default="<unset>")),
        Column("Reason", _text("status", "reason", default="")),
        AGE,
        wide("VolumeMode", _text("spec", "volumeMode", default="<unset>")),
    ),
    ("", "Pod"): (
        NAME,
        Column("Ready", pods.ready),
        Column("Status", pods.status),
        Column("Restarts", pods.restarts),
        AGE,
        wide("IP", _text("status", "podIP")),
        wide("Node", _text("spec", "nodeName")),
        wide("Nominated Node", _text("status", "nominatedNodeName")),
        wide("Readiness Gates", pods.gates),
    ),
    ("", "PodTemplate"): (
        NAME,
        Column("Containers", _template("name", "template", "spec")),
        Column("Images", _template("image", "template", "spec")),
        Column(
            "Pod Labels",
            lambda item, _: selector_text(structure.mapping(item, "template", "metadata", "labels")) or "<none>",
        ),
    ),
    ("", "ReplicationController"): _REPLICAS,
    ("", "ResourceQuota"): (NAME, Column("Request", _quota("requests")), Column("Limit", _quota("limits")), AGE),
    ("", "Secret"): (
        NAME,
        Column("Type", _text("type")),
        Column("Data", lambda i, _: len(i.get("data") or {})),
        AGE,
    ),
    ("", "ServiceAccount"): (NAME, AGE),
    ("", "Service"): (
        NAME,
        Column("Type", _text("spec", "type")),
        Column("Cluster-IP", _text("spec", "clusterIP")),
        Column("External-IP", _external),
        Column("Port(s)", _ports),
        AGE,
        wide("Selector", _selector),
    ),
    ("apps", "ControllerRevision"): (
        NAME,
        Column("Controller", _controller),
        Column("Revision", _text("revision", default="0")),
        AGE,
    ),
    ("apps", "DaemonSet"): (
        NAME,
        number("Desired", _count("status", "desiredNumberScheduled")),
        number("Current", _count("status", "currentNumberScheduled")),
        number("Ready", _count("status", "numberReady")),
        number("Up-to-date", _count("status", "updatedNumberScheduled")),
        number("Available", _count("status", "numberAvailable")),
        Column(
            "Node Selector",
            lambda i, _: selector_text(structure.mapping(i, "spec", "template", "spec", "nodeSelector")) or "<none>",
        ),
        AGE,
        *_SELECTED,
    ),
    ("apps", "Deployment"): (
        NAME,
        Column("Ready", _ready_of),
        Column("Up-to-date", _count("status", "updatedReplicas")),
        Column("Available", _count("status", "availableReplicas")),
        AGE,
        *_SELECTED,
    ),
    ("apps", "ReplicaSet"): _REPLICAS,
    ("apps", "StatefulSet"): (NAME, Column("Ready", _ready_of), AGE, *_CONTAINERS),
    ("events.k8s.io", "Event"): _EVENT,
    ("batch", "CronJob"): (
        NAME,
        Column("Schedule", _text("spec", "schedule")),
        Column("Timezone", _text("spec", "timeZone")),
        Column("Suspend", _at("spec", "suspend", default=False), "boolean"),
        number("Active", _count("status", "active")),
        Column("Last Schedule", _last_schedule),
        AGE,
        wide("Containers", _template("name", "spec", "jobTemplate", "spec", "template", "spec")),
        wide("Images", _template("image", "spec", "jobTemplate", "spec", "template", "spec")),
        wide("Selector", lambda *_: "<none>"),
    ),
    ("batch", "Job"): (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _completions),
        Column("Duration", _job_duration),
        AGE,
        *_SELECTED,
    ),
    ("networking.k8s.io", "IngressClass"): (
        NAME,
        Column("Controller", _text("spec", "controller")),
        Column("Parameters", _text("spec", "parameters", "name")),
        AGE,
    ),
    ("networking.k8s.io", "Ingress"): (
        NAME,
        Column("Class", _text("spec", "ingressClassName")),
        Column("Hosts", _hosts),
        Column("Address", lambda *_: ""),
        Column("Ports", lambda item, _: "80, 443" if structure.mapping(item, "spec").get("tls") else "80"),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        NAME,
        Column("Pod-Selector", lambda i, _: selector_text(structure.mapping(i, "spec", "podSelector")) or "<none>"),
        AGE,
    ),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        Column("Min Available", _text("spec", "minAvailable", default="N/A")),
        Column("Max Unavailable", _text("spec", "maxUnavailable", default="N/A")),
        number("Allowed Disruptions", _count("status", "disruptionsAllowed")),
        AGE,
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRole"): (NAME, CREATED),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "Role"): (NAME, CREATED),
    ("storage.k8s.io", "CSIDriver"): (
        NAME,
        Column("AttachRequired", _at("spec", "attachRequired", default=True), "boolean"),
        Column("PodInfoOnMount", _at("spec", "podInfoOnMount", default=False), "boolean"),
        Column("StorageCapacity", _at("spec", "storageCapacity", default=False), "boolean"),
        Column(
            "TokenRequests",
            lambda i, _: (
                ",".join(e.get("audience", "") for e in structure.mapping(i, "spec").get("tokenRequests") or ())
                or "<unset>"
            ),
        ),
        Column("RequiresRepublish", _at("spec", "requiresRepublish", default=False), "boolean"),
        Column(
            "Modes", lambda i, _: ",".join(structure.mapping(i, "spec").get("volumeLifecycleModes") or ["Persistent"])
        ),
        AGE,
    ),
    ("storage.k8s.io", "CSINode"): (NAME, number("Drivers", _count("spec", "drivers")), AGE),
    ("storage.k8s.io", "CSIStorageCapacity"): (NAME, CREATED),
    ("storage.k8s.io", "StorageClass"): (
        Column("Name", _class_name, "string", "name"),
        Column("Provisioner", _text("provisioner")),
        Column("ReclaimPolicy", _text("reclaimPolicy")),
        Column("VolumeBindingMode", _text("volumeBindingMode")),
        Column("AllowVolumeExpansion", _text("allowVolumeExpansion", default="false")),
        AGE,
    ),
    ("storage.k8s.io", "VolumeAttachment"): (
        NAME,
        Column("Attacher", _text("spec", "attacher"), "string", "name"),
        Column("PV", _text("spec", "source", "persistentVolumeName", default="")),
        Column("Node", _text("spec", "nodeName")),
        Column("Attached", _at("status", "attached", default=False), "boolean"),
        AGE,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): (NAME, Column("DriverName", _text("driverName")), AGE),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (NAME, CREATED),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        number("Value", _count("value")),
        Column("Global-Default", _at("globalDefault", default=False), "boolean"),
        AGE,
        Column("PreemptionPolicy", _text("preemptionPolicy")),
    ),
    ("coordination.k8s.io", "Lease"): (NAME, Column("Holder", _text("spec", "holderIdentity", default="")), AGE),
    ("discovery.k8s.io", "EndpointSlice"): (
        NAME,
        Column("AddressType", _text("addressType")),
        Column("Ports", lambda i, _: ",".join(str(e.get("port", "*")) for e in i.get("ports") or ()) or "<unset>"),
        Column(
            "Endpoints",
            lambda i, _: ",".join(a for e in i.get("endpoints") or () for a in e.get("addresses") or ()) or "<unset>",
        ),
        AGE,
    ),
    ("resource.k8s.io", "DeviceClass"): (NAME, AGE),
    ("resource.k8s.io", "ResourceClaim"): (NAME, Column("State", _claim_state), AGE),
    ("resource.k8s.io", "ResourceClaimTemplate"): (NAME, AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        NAME,
        Column("Node", _text("spec", "nodeName", default="<unset>")),
        Column("Driver", _text("spec", "driver")),
        Column("Pool", _text("spec", "pool", "name")),
        AGE,
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): (
        NAME,
        Column("PriorityLevel", _text("spec", "priorityLevelConfiguration", "name")),
        Column("MatchingPrecedence", _text("spec", "matchingPrecedence")),
        Column("DistinguisherMethod", _text("spec", "distinguisherMethod", "type")),
        AGE,
        Column("MissingPL", _missing_level),
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): (
        NAME,
        Column("Type", _text("spec", "type")),
        Column("NominalConcurrencyShares", _text("spec", "limited", "nominalConcurrencyShares")),
        Column("Queues", _limited("queues")),
        Column("HandSize", _limited("handSize")),
        Column("QueueLengthLimit", _limited("queueLengthLimit")),
        AGE,
    ),
}
