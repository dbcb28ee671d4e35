"""What stands in the cells of built-in kinds: each function is given an object and the time, or makes such a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, timestamp
from pumice.apiserver.subresources import selector_text
from pumice.apiserver.tables import ages
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Cell = Callable[[Mapping[str, Any], int], Any]


def at(*path: str, default: Any = "<none>") -> Cell:
    """Give a cell that shows one field."""

    def cell(item: Mapping[str, Any], _: int) -> Any:
        value = structure.mapping(item, *path[:-1]).get(path[-1])
        return default if value is None or value == "" else value

    return cell


def suspended(item: Mapping[str, Any], _: int) -> str:
    """Tell whether a CronJob is suspended, as Go writes it for people."""
    return str(structure.mapping(item, "spec").get("suspend") is True)


def text(*path: str, default: str = "<none>") -> Cell:
    """Give a cell that shows one field as a text."""
    cell = at(*path, default=default)
    return lambda item, now: word(cell(item, now))


def word(value: Any) -> str:
    """Say a value in one word."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def group_policy(item: Mapping[str, Any], _: int) -> str:
    """Name the policy of a group of Kubernetes' own."""
    policy = structure.mapping(item, "spec", "schedulingPolicy")
    return next((name.capitalize() for name in ("gang", "basic") if policy.get(name) is not None), "<none>")


def group_status(item: Mapping[str, Any], _: int) -> str:
    """Say how such a group stands: that it is disrupted, else whether it is scheduled, in the words of the condition."""
    conditions = structure.mapping(item, "status").get("conditions") or ()
    stated = {each.get("type"): each for each in conditions if isinstance(each, dict)}
    disrupted = stated.get("DisruptionTarget")
    if disrupted is not None and disrupted.get("status") == "True":
        return str(disrupted.get("reason"))
    scheduled = stated.get("PodGroupScheduled")
    return "Pending" if scheduled is None else str(scheduled.get("reason"))


def count(*path: str) -> Cell:
    """Give a cell that shows a number, or how many a field holds."""

    def cell(item: Mapping[str, Any], _: int) -> int:
        value = structure.mapping(item, *path[:-1]).get(path[-1])
        return value if isinstance(value, int) else len(value) if isinstance(value, (list, dict)) else 0

    return cell


def template(field: str, *path: str) -> Cell:
    """Give a cell that shows one field of every container of a template."""

    def cell(item: Mapping[str, Any], _: int) -> str:
        found = structure.mapping(item, *path).get("containers") or ()
        return ",".join(str(each.get(field, "")) for each in found)

    return cell


def selector(item: Mapping[str, Any], _: int) -> str:
    """Show what a workload selects."""
    selector = structure.mapping(item, "spec").get("selector")
    return selector_text(selector) if selector else "<none>"


def node_status(node: Mapping[str, Any], _: int) -> str:
    """Say whether a node is ready and takes pods."""
    ready = structure.mapping(structure.condition(node, "Ready"))
    words = ["Unknown" if not ready else "Ready" if ready.get("status") == "True" else "NotReady"]
    if structure.mapping(node, "spec").get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def roles(node: Mapping[str, Any], _: int) -> str:
    """List the roles of a node."""
    labels = structure.mapping(node, "metadata", "labels")
    prefix = "node-role.kubernetes.io/"
    found = sorted({key.removeprefix(prefix) for key in labels if key.startswith(prefix)} - {""})
    return ",".join(found) or "<none>"


def address(kind: str) -> Cell:
    """Give a cell that shows one of the addresses of a node."""

    def cell(node: Mapping[str, Any], _: int) -> str:
        found = structure.mapping(node, "status").get("addresses") or ()
        return next((str(each.get("address")) for each in found if each.get("type") == kind), "<none>")

    return cell


def info(field: str) -> Cell:
    """Give a cell that shows what a node says about itself."""
    return lambda node, _: structure.mapping(node, "status", "nodeInfo").get(field) or "<unknown>"


_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def modes(item: Mapping[str, Any], _: int) -> str:
    """List access modes in their short forms."""
    bound = structure.mapping(item, "status").get("accessModes")
    stated = structure.mapping(item, "spec").get("accessModes") if item["kind"] == "PersistentVolume" else bound
    return ",".join(_MODES.get(each, each) for each in stated or ())


def claim_status(item: Mapping[str, Any], _: int) -> str:
    """Say in which phase a volume or a claim is."""
    return (
        "Terminating"
        if item["metadata"].get("deletionTimestamp")
        else str(structure.mapping(item, "status").get("phase", ""))
    )


def claimed_by(item: Mapping[str, Any], _: int) -> str:
    """Name the claim of a volume."""
    reference = structure.mapping(item, "spec", "claimRef")
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""


def external(item: Mapping[str, Any], _: int) -> str:
    """Show where a service is reached from outside."""
    spec = structure.mapping(item, "spec")
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName"))
    if spec.get("externalIPs"):
        return ",".join(spec["externalIPs"])
    return "<pending>" if spec.get("type") == "LoadBalancer" else "<none>"


def ports(item: Mapping[str, Any], _: int) -> str:
    """List the ports of a service."""
    found = structure.mapping(item, "spec").get("ports") or ()
    return (
        ",".join(
            f"{each['port']}{':' + str(each['nodePort']) if each.get('nodePort') else ''}/{each.get('protocol', 'TCP')}"
            for each in found
        )
        or "<none>"
    )


def ready_of(item: Mapping[str, Any], _: int) -> str:
    """Say how many replicas of how many are ready."""
    wanted = structure.mapping(item, "spec").get("replicas", 0)
    return f"{structure.mapping(item, 'status').get('readyReplicas', 0)}/{wanted}"


def job_status(item: Mapping[str, Any], _: int) -> str:
    """Say how far a job has come."""
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet", "SuccessCriteriaMet")):  # fmt: skip
        if structure.mapping(structure.condition(item, kind)).get("status") == "True":
            return word
    return "Terminating" if item["metadata"].get("deletionTimestamp") else "Running"


def completions(item: Mapping[str, Any], _: int) -> str:
    """Say how many completions of how many there are."""
    spec, done = structure.mapping(item, "spec"), structure.mapping(item, "status").get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(item: Mapping[str, Any], now: int) -> str:
    """Say how long a job took, or takes so far."""
    status = structure.mapping(item, "status")
    if not status.get("startTime"):
        return ""
    end = timestamp.parse(status["completionTime"]) if status.get("completionTime") else now
    return ages.span((end - timestamp.parse(status["startTime"])) // duration.SECOND)


def elapsed(*path: str) -> Cell:
    """Give a cell that shows how long ago a moment was."""

    def cell(item: Mapping[str, Any], now: int) -> str:
        moment = at(*path, default=None)(item, now)
        return ages.since(moment, now) if moment else "<none>"

    return cell


def event_time(*fields: str) -> Cell:
    """Give a cell that shows how long ago one of some moments was."""

    def cell(item: Mapping[str, Any], now: int) -> str:
        found = next((item[field] for field in fields if item.get(field)), None)
        if fields[0] == "lastTimestamp" and isinstance(item.get("series"), dict):
            found = item["series"].get("lastObservedTime") or found
        return ages.since(found, now)

    return cell


def regarding(item: Mapping[str, Any], _: int) -> str:
    """Name the object that an event is about."""
    about = structure.mapping(item, "involvedObject")
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def source(item: Mapping[str, Any], _: int) -> str:
    """Name who wrote an event."""
    source = structure.mapping(item, "source")
    parts = [
        source.get("component") or item.get("reportingComponent"),
        source.get("host") or item.get("reportingInstance"),
    ]
    return ", ".join(str(each) for each in parts if each)


def event_count(item: Mapping[str, Any], _: int) -> str:
    """Say how often an event happened."""
    return str(structure.mapping(item, "series").get("count") or item.get("count") or 1)


def quota(part: str) -> Cell:
    """Give a cell that shows what of a quota is used, requests or limits."""

    def cell(item: Mapping[str, Any], _: int) -> str:
        hard, used = structure.mapping(item, "status", "hard"), structure.mapping(item, "status", "used")
        names = sorted(name for name in hard if name.startswith("limits.") is (part == "limits"))
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def subjects(kind: str) -> Cell:
    """Give a cell that lists the subjects of one kind."""

    def cell(item: Mapping[str, Any], _: int) -> str:
        found = [each for each in item.get("subjects") or () if each.get("kind") == kind]
        return ", ".join(
            f"{each.get('namespace')}/{each['name']}" if kind == "ServiceAccount" else each["name"] for each in found
        )

    return cell


def role(item: Mapping[str, Any], _: int) -> str:
    """Name the role of a binding."""
    return f"{item['roleRef']['kind']}/{item['roleRef']['name']}"


def endpoints(item: Mapping[str, Any], _: int) -> str:
    """List the first addresses, each with its ports."""
    found = [
        f"{each.get('ip', '')}{port}"
        for subset in item.get("subsets") or ()
        for port in [f":{each.get('port')}" for each in subset.get("ports") or ()] or [""]
        for each in subset.get("addresses") or ()
    ]
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "") or "<none>"


def class_name(item: Mapping[str, Any], _: int) -> str:
    """Name a storage class, and say whether it is the default."""
    default = (
        structure.mapping(item, "metadata", "annotations").get("storageclass.kubernetes.io/is-default-class") == "true"
    )
    return f"{item['metadata']['name']} (default)" if default else str(item["metadata"]["name"])


def claim_state(item: Mapping[str, Any], _: int) -> str:
    """Say how far a claim of devices has come."""
    words = ["deleted"] if item["metadata"].get("deletionTimestamp") else []
    words += ["allocated"] if structure.mapping(item, "status").get("allocation") else []
    words += ["reserved"] if structure.mapping(item, "status").get("reservedFor") else []
    return ",".join(words) or "pending"


def controller(item: Mapping[str, Any], _: int) -> str:
    """Name the controller of an object."""
    owner = next((each for each in item["metadata"].get("ownerReferences") or () if each.get("controller")), None)
    return f"{owner['kind'].lower()}.apps/{owner['name']}" if owner else "<none>"


def hosts(item: Mapping[str, Any], _: int) -> str:
    """List the hosts of an ingress."""
    return ",".join(each.get("host", "*") for each in structure.mapping(item, "spec").get("rules") or ()) or "*"


def missing_level(item: Mapping[str, Any], _: int) -> str:
    """Say whether the priority level of a flow schema is missing."""
    return str(structure.mapping(structure.condition(item, "Dangling")).get("status", "?"))


def limited(field: str) -> Cell:
    """Give a cell that shows how a priority level queues."""
    return text("spec", "limited", "limitResponse", "queuing", field)
