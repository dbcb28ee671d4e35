"""Plain reading of API objects: what pods, groups, queues and nodes say, with no word of the scheduler's own model."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

GROUP_NAME = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"
PREEMPTABLE = "volcano.sh/preemptable"
CRITICAL = ("system-cluster-critical", "system-node-critical")
FACTORS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}


@cache
def quantity(text):
    """Read a quantity as an exact number."""
    text = str(text)
    number = text.rstrip("KMGTimk")
    found = Fraction(number) * FACTORS[text[len(number) :]]
    return int(found) if found.denominator == 1 else found


def amounts(quantities):
    """Read a map of quantities."""
    return {name: quantity(text) for name, text in (quantities or {}).items()}


def plus(left, right, sign=1):
    """Add amounts, or take them off."""
    return {name: left.get(name, 0) + sign * right.get(name, 0) for name in {**left, **right}}


def total(parts):
    """Add many amounts."""
    found = {}
    for part in parts:
        found = plus(found, part)
    return found


def truth(text):
    """Read a boolean as Go does; what cannot be read is false."""
    return str(text) in ("1", "t", "T", "true", "TRUE", "True")


@dataclass(eq=False)
class Pod:
    """One pod."""

    key: str
    uid: str
    name: str
    namespace: str
    group: str
    foreign: bool
    request: dict
    node: str
    nominated: str
    state: str  # pending, on, leaving, succeeded, failed
    preemptable: bool
    priority: int
    class_name: str
    role: str
    labels: dict
    selector: dict
    tolerates: bool
    never: bool

    @property
    def best_effort(self):
        """Tell whether it requests nothing."""
        return not any(self.request.values())

    @property
    def is_in_room(self):
        """Tell whether it takes room on its node."""
        return bool(self.node) and self.state in ("on", "leaving")

    @property
    def shape(self):
        """Give what decides where it fits."""
        return (tuple(sorted(self.request.items())), tuple(sorted(self.selector.items())), self.tolerates)


@dataclass(eq=False)
class Group:
    """One pod group."""

    key: str
    namespace: str
    queue: str
    minimum: int
    roles: dict  # as far as they are enforced
    phase: str
    priority: int
    min_resources: dict | None
    protected: bool
    conditions: dict


@dataclass(eq=False)
class Queue:
    """One queue."""

    name: str
    weight: int
    capability: dict
    guarantee: dict
    deserved: dict
    parent: str
    reclaimable: bool
    is_open: bool


@dataclass(eq=False)
class Node:
    """One node."""

    name: str
    room: dict
    labels: dict
    tainted: bool
    cordoned: bool
    ready: bool


def _pod(manifest):
    metadata, spec, status = manifest["metadata"], manifest["spec"], manifest.get("status", {})
    notes, labels = metadata.get("annotations", {}), metadata.get("labels", {})
    wish = notes.get(PREEMPTABLE, labels.get(PREEMPTABLE))
    node = spec.get("nodeName", "")
    phase = status.get("phase")
    if phase in ("Succeeded", "Failed"):
        state = phase.lower()
    elif metadata.get("deletionTimestamp"):
        state = "leaving"
    else:
        state = "on" if node else "pending"
    return Pod(
        key=f"{metadata['namespace']}/{metadata['name']}",
        uid=metadata["uid"],
        name=metadata["name"],
        namespace=metadata["namespace"],
        group=f"{metadata['namespace']}/{notes[GROUP_NAME]}" if GROUP_NAME in notes else "",
        foreign=spec.get("schedulerName") != "volcano",
        request=total(amounts(c.get("resources", {}).get("requests")) for c in spec["containers"]),
        node=node,
        nominated=status.get("nominatedNodeName", ""),
        state=state,
        preemptable=wish is None or truth(wish),
        priority=spec.get("priority", 1),
        class_name=spec.get("priorityClassName", ""),
        role=notes.get(ROLE, labels.get(ROLE, "")),
        labels=labels,
        selector=spec.get("nodeSelector", {}),
        tolerates=any(t.get("operator") == "Exists" and not t.get("key") for t in spec.get("tolerations", [])),
        never=spec.get("preemptionPolicy") == "Never",
    )


def _group(manifest, classes):
    metadata, spec, status = manifest["metadata"], manifest["spec"], manifest.get("status", {})
    roles, minimum = spec.get("minTaskMember") or {}, spec.get("minMember", 0)
    notes = {**metadata.get("labels", {}), **metadata.get("annotations", {})}
    default = next((c["value"] for c in classes.values() if c.get("globalDefault")), 0)
    chosen = classes.get(spec.get("priorityClassName", ""))
    return Group(
        key=f"{metadata['namespace']}/{metadata['name']}",
        namespace=metadata["namespace"],
        queue=spec.get("queue") or "default",
        minimum=minimum,
        roles={role: least for role, least in roles.items() if least > 0} if minimum >= sum(roles.values()) else {},
        phase=status.get("phase", "") or "Pending",
        priority=default if chosen is None else chosen["value"],
        min_resources=None if spec.get("minResources") is None else amounts(spec["minResources"]),
        protected=PREEMPTABLE in notes and not truth(notes[PREEMPTABLE]),
        conditions={c["type"]: c for c in status.get("conditions", [])},
    )


def _queue(manifest):
    spec = manifest["spec"]
    return Queue(
        name=manifest["metadata"]["name"],
        weight=spec.get("weight", 1),
        capability={k: v for k, v in amounts(spec.get("capability")).items() if v > 0 or k not in ("cpu", "memory")},
        guarantee=amounts(spec.get("guarantee", {}).get("resource")),
        deserved=amounts(spec.get("deserved")),
        parent=spec.get("parent", ""),
        reclaimable=spec.get("reclaimable", True) is not False,
        is_open=manifest.get("status", {}).get("state", "Open") in ("Open", ""),
    )


def _node(manifest):
    spec, status = manifest.get("spec", {}), manifest["status"]
    ready = all(c["status"] == "True" for c in status.get("conditions", []) if c["type"] == "Ready")
    return Node(
        name=manifest["metadata"]["name"],
        room=amounts(status["allocatable"]),
        labels=manifest["metadata"].get("labels", {}),
        tainted=any(t["effect"] in ("NoSchedule", "NoExecute") for t in spec.get("taints", [])),
        cordoned=spec.get("unschedulable", False),
        ready=ready,
    )


class Facts:
    """What one look at the API server says."""

    def __init__(self, objects, policy, known=None):
        self.policy = policy
        self.now = objects.now
        known = {} if known is None else known  # manifests read before; they never change
        self.pods = {key: _remembered(known, m, _pod) for key, m in objects["Pod"].items()}
        classes = objects["PriorityClass"]
        self.groups = {
            key: _remembered(known, m, lambda each: _group(each, classes)) for key, m in objects["PodGroup"].items()
        }
        self.queues = {key: _remembered(known, m, _queue) for key, m in objects["Queue"].items()}
        self.nodes = {key: _remembered(known, m, _node) for key, m in objects["Node"].items()}
        self.budgets = objects["PodDisruptionBudget"]

    @cached_property
    def by_uid(self):
        """Pods by uid."""
        return {pod.uid: pod for pod in self.pods.values()}

    @cached_property
    def members(self):
        """The pods of each group."""
        found = {key: [] for key in self.groups}
        for pod in self.pods.values():
            if not pod.foreign and pod.group in found:
                found[pod.group].append(pod)
        return found

    def queue_of(self, pod):
        """Give the name of a pod's queue, or nothing."""
        group = self.groups.get(pod.group)
        return "" if group is None or pod.foreign else group.queue

    # ---- gangs (core 4.3)

    def counts(self, key, extra=(), less=()):
        """Give how many members count as ready, by role and in all; `extra` are taken as placed, `less` as gone."""
        there = {pod.uid for pod in extra}
        gone = {pod.uid for pod in less}
        ready = [
            pod
            for pod in self.members[key]
            if pod.uid not in gone
            and (pod.uid in there or pod.state in ("on", "succeeded") or (pod.state == "pending" and pod.best_effort))
        ]
        return len(ready), {role: sum(pod.role == role for pod in ready) for role in self.groups[key].roles}

    def is_ready(self, key, extra=(), less=()):
        """Tell whether a gang has its minimum, roles included."""
        group = self.groups[key]
        number, roles = self.counts(key, extra, less)
        return number >= group.minimum and all(roles[role] >= least for role, least in group.roles.items())

    def is_valid(self, key):
        """Tell whether a gang has pods enough to start at all."""
        group = self.groups[key]
        living = [pod for pod in self.members[key] if pod.state in ("on", "succeeded", "pending")]
        return len(living) >= group.minimum and all(
            sum(pod.role == role for pod in living) >= least for role, least in group.roles.items()
        )

    def alive(self, key):
        """Give the members that hold a node and are not on their way out."""
        return [pod for pod in self.members[key] if pod.state == "on"]


def _remembered(known, manifest, read):
    metadata = manifest["metadata"]
    key = (manifest["kind"], metadata["uid"], metadata["resourceVersion"])
    if key not in known:
        known[key] = read(manifest)
    return known[key]
