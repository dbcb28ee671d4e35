"""Random small clusters: nodes, queues, priorities, gangs with surplus, roles, ports, selectors and pods that are on their way out.

Whatever runs was placed by simple rules that every policy keeps: nodes are not overfull, and no two pods share a port of a node.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from builders import group, node, pod, priority_class, queue

GRACE = 2
CLASSES = {"low": 10, "mid": 50, "high": 100}
PREEMPT = "[{name: priority}, {name: gang}, {name: conformance}]"
FIT = "[{name: predicates}, {name: nodeorder}]"
POLICIES = {
    "preempt": ("enqueue, allocate, preempt, backfill", PREEMPT, FIT),
    "preempt first": ("enqueue, preempt, allocate, backfill", PREEMPT, FIT),
    "preempt, later tier": (
        "enqueue, allocate, preempt",
        "[{name: gang}, {name: conformance}]",
        f"[{{name: priority}}, {FIT[1:]}",
    ),
    "preempt, all tiers": (
        "enqueue, allocate, preempt",
        "[{name: conformance}]",
        f"[{{name: priority}}, {{name: gang, enablePreemptable: false}}, {FIT[1:]}",
    ),
    "preempt, limits": ("enqueue, allocate, preempt", PREEMPT, f"[{{name: proportion}}, {FIT[1:]}"),
    "reclaim": (
        "enqueue, allocate, reclaim, backfill",
        "[{name: gang}, {name: conformance}]",
        f"[{{name: proportion}}, {FIT[1:]}",
    ),
    "reclaim, one tier": ("enqueue, allocate, reclaim", "[{name: priority}, {name: gang}, {name: proportion}]", FIT),
    "reclaim first": ("reclaim, allocate, backfill, preempt", PREEMPT, f"[{{name: proportion}}, {FIT[1:]}"),
    "both": ("enqueue, allocate, preempt, reclaim", PREEMPT, f"[{{name: proportion}}, {FIT[1:]}"),
    "drf": ("enqueue, allocate, preempt", "[{name: conformance}, {name: drf}]", f"[{{name: gang}}, {FIT[1:]}"),
    "drf after priority": ("enqueue, allocate, preempt", PREEMPT, f"[{{name: drf}}, {FIT[1:]}"),
    "capacity": (
        "enqueue, allocate, reclaim, preempt",
        "[{name: priority}, {name: gang}, {name: capacity}]",
        FIT,
    ),
    "gangreclaim, capacity": ("enqueue, allocate, gangreclaim", PREEMPT, f"[{{name: capacity}}, {FIT[1:]}"),
    "gangpreempt": ("enqueue, allocate, gangpreempt", PREEMPT, FIT),
    "gangreclaim": (
        "enqueue, allocate, gangreclaim",
        "[{name: priority}, {name: gang}, {name: conformance}]",
        f"[{{name: proportion}}, {FIT[1:]}",
    ),
}


def choices(seed):
    """Return a repeatable source of choices."""
    return random.Random(seed)  # noqa: S311  a world, not a secret


def policy(name):
    """Return the configuration text of a named policy."""
    actions, *tiers = POLICIES[name]
    listed = "".join(f"- plugins: {tier}\n" for tier in tiers)
    return f'actions: "{actions}"\ntiers:\n{listed}'


@dataclass
class Member:
    """A pod as it was made up, from which its successors are made."""

    name: str
    group: str
    cpu: int
    node: str = ""
    port: int = 0
    zone: str = ""
    role: str = ""
    fixed: bool = False
    leaving: bool = False

    def manifest(self, name="", *, fresh=False):
        """Write the pod, or one that takes its place."""
        chosen = {"nodeSelector": {"zone": self.zone}} if self.zone else {}
        return pod(
            name or self.name,
            self.group,
            cpu=str(self.cpu),
            node="" if fresh else self.node,
            role=self.role,
            uid=name or self.name,
            annotations={"volcano.sh/preemptable": "false"} if self.fixed else None,
            ports=[{"containerPort": 80, "hostPort": self.port}] if self.port else (),
            terminationGracePeriodSeconds=GRACE,
            **chosen,
        )


@dataclass
class World:
    """What there is before the first cycle."""

    nodes: dict = field(default_factory=dict)
    queues: list = field(default_factory=list)
    groups: list = field(default_factory=list)
    members: dict = field(default_factory=dict)

    def manifests(self):
        """Write everything down."""
        classes = [priority_class(name, value) for name, value in CLASSES.items()]
        return [
            *classes,
            *self.nodes.values(),
            *self.queues,
            *self.groups,
            *(m.manifest() for m in self.members.values()),
        ]

    @property
    def leaving(self):
        return [member.name for member in self.members.values() if member.leaving]


class Maker:
    """Makes one world from a source of choices."""

    def __init__(self, choices, *, nodes=3, jobs=6, pods=14, queues=2):
        self.pick = choices
        self.world = World()
        self.free = {}
        self.ports = set()
        self.limits = (nodes, jobs, pods, queues)

    def make(self):
        nodes, jobs, pods, queues = self.limits
        pick, world = self.pick, self.world
        for i in range(pick.randint(1, nodes)):
            cpu = pick.randint(1, 4)
            world.nodes[f"n{i}"] = node(
                f"n{i}", cpu=str(cpu), pods=str(pick.choice([110, 110, 3])), labels={"zone": pick.choice("ab")}
            )
            self.free[f"n{i}"] = cpu
        for i in range(pick.randint(1, queues)):
            world.queues.append(queue(f"q{i}", created=i, **self._queue()))
        left = pods
        for i in range(pick.randint(3, jobs)):
            if left <= 0:
                break
            left -= self._job(i, min(left, 4))
        return world

    def _queue(self):
        pick = self.pick
        spec = {"weight": pick.randint(1, 2)}
        if pick.random() < 0.25:
            spec["capability"] = {"cpu": str(pick.randint(2, 8))}
        if pick.random() < 0.25:
            spec["guarantee"] = {"resource": {"cpu": str(pick.randint(1, 2))}}
        if pick.random() < 0.5:
            spec["deserved"] = {"cpu": str(pick.randint(1, 6))}
        if pick.random() < 0.1:
            spec["reclaimable"] = False
        return spec

    def _job(self, index, most):
        pick, name = self.pick, f"j{index}"
        size = pick.randint(1, most)
        minimum = pick.randint(0, size) if pick.random() < 0.7 else size
        classes = ["low", "low", "mid", "high"] if index < 3 else ["mid", "high"]
        spec = {"priorityClassName": pick.choice(classes), "queue": pick.choice(self.world.queues)["metadata"]["name"]}
        roles = [""] * size
        if size > 1 and pick.random() < 0.25:
            cut = pick.randint(1, size - 1)
            roles = ["m"] * cut + ["w"] * (size - cut)
            least = {"m": pick.randint(0, cut), "w": pick.randint(0, size - cut)}
            spec["minTaskMember"] = least
            minimum = max(minimum, sum(least.values()))
        self.world.groups.append(group(name, minimum, created=index, **spec))
        starts = pick.random() < (0.8 if index < 3 else 0.3)
        shapes = [pick.randint(1, 3), pick.randint(1, 2)]
        members = [self._member(name, i, shapes, roles[i]) for i in range(size)]
        for member in members:
            if starts:
                self._place(member)
            self.world.members[member.name] = member
        # A gang that does not run whole does not run at all, unless it has what it needs.
        running = [member for member in members if member.node]
        enough = len(running) >= minimum and all(
            sum(m.role == role for m in running) >= least for role, least in spec.get("minTaskMember", {}).items()
        )
        if not enough:
            for member in running:
                self._take_off(member)
        elif running and len(running) > minimum and "minTaskMember" not in spec and pick.random() < 0.2:
            running[-1].leaving = True
        return size

    def _member(self, job, index, shapes, role):
        pick = self.pick
        return Member(
            f"{job}-{index}",
            job,
            pick.choice(shapes),
            role=role,
            port=8080 if pick.random() < 0.15 else 0,
            zone=pick.choice("ab") if pick.random() < 0.15 else "",
            fixed=pick.random() < 0.1,
        )

    def _place(self, member):
        for name in self.pick.sample(sorted(self.free), len(self.free)):
            labels = self.world.nodes[name]["metadata"]["labels"]
            slots = int(self.world.nodes[name]["status"]["allocatable"]["pods"])
            there = sum(m.node == name for m in self.world.members.values())
            if (
                self.free[name] < member.cpu
                or there + 1 >= slots
                or (member.port and (name, member.port) in self.ports)
            ):
                continue
            if member.zone and labels["zone"] != member.zone:
                continue
            self.free[name] -= member.cpu
            member.node = name
            if member.port:
                self.ports.add((name, member.port))
            return

    def _take_off(self, member):
        self.free[member.node] += member.cpu
        self.ports.discard((member.node, member.port))
        member.node = ""
