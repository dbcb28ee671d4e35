"""Tiny random worlds for the exhaustive reference: one or two jobs wait, everybody else runs, and any plugins vote about victims in any tiers.

What a world says is written as manifests only, so that the scheduler, the reference and a scenario file read the same.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

from builders import NOW, SECOND, group, node, pod, priority_class, queue, stamp
from tests.lives import facts, policies

ACTIONS = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
WITHIN = ("preempt", "gangpreempt")
CLASSES = {"low": 10, "mid": 50, "high": 100, "system-node-critical": 2000}
CLAIMANT = "a/zz"
KINDS = ("Node", "Queue", "PriorityClass", "PodGroup", "Pod", "PodDisruptionBudget")
VOTERS = {
    "preempt": ("priority", "gang", "drf", "conformance", "pdb", "cdp"),
    "reclaim": ("priority", "gang", "conformance", "pdb", "cdp"),
    "gangpreempt": ("priority", "gang", "conformance", "pdb", "cdp"),
    "gangreclaim": ("priority", "gang", "conformance", "pdb", "cdp"),
}
COOLDOWN = "volcano.sh/cooldown-time"


class Objects(dict):
    """Manifests by kind and key, at one moment."""

    now = NOW


@dataclass
class World:
    """What there is before the one cycle that is judged."""

    seed: int
    action: str
    policy: policies.Policy
    manifests: list = field(default_factory=list)
    cooling: set = field(default_factory=set)  # keys of pods whose cooldown is not over

    def seen(self):
        """Give what the objects say, as plain facts."""
        objects = Objects({kind: {} for kind in KINDS})
        for manifest in self.manifests:
            metadata = manifest["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
            written = {**manifest, "metadata": {**metadata, "resourceVersion": "1"}}
            objects[manifest["kind"]][key] = written
        return facts.Facts(objects, self.policy)

    def scenario(self, text=""):
        """Write the world as a scenario file of one cycle."""
        lines = [*(f"# {line}" for line in text.splitlines()), f"scenario: tiny world {self.seed}", "config: |"]
        lines += [f"  {line}" for line in self.policy.text.splitlines()]
        lines += ["given:", *(f"- {json.dumps(manifest)}" for manifest in self.manifests), "steps:", "- cycles: 1"]
        return "\n".join(lines) + "\n"


def draw(seed, action=""):
    """Make the world of a seed."""
    return _Maker(random.Random(seed), seed, action).make()  # noqa: S311  a world, not a secret


class _Maker:
    def __init__(self, pick, seed, action):
        self.pick = pick
        self.action = action or pick.choice(ACTIONS)
        self.sharing = self._sharing()
        self.world = World(seed, self.action, self._policy())
        self.pods, self.groups, self.queues = [], [], []
        self.used = {}

    def _sharing(self):
        wanted = ["", "", "", "proportion", "capacity"] if self.action in WITHIN else ["", "proportion", "capacity"]
        return self.pick.choice(wanted)

    # ---- policies

    def _policy(self):
        pick = self.pick
        names = [name for name in VOTERS[self.action] if name != "gang" and pick.random() < 0.45] + ["gang"]
        if self.action == "preempt" and "priority" not in names and "drf" not in names and pick.random() < 0.8:
            names.append("priority")
        names += [self.sharing] if self.sharing else []
        pick.shuffle(names)
        tiers = [[] for _ in range(pick.choice([1, 2, 2, 3]))]
        for name in names:
            pick.choice(tiers).append(self._plugin(name, names))
        scoring = {"name": pick.choice(["nodeorder", "binpack"])}
        tiers = [tier for tier in tiers if tier]
        if pick.random() < 0.5:
            tiers.append([])
        tiers[-1] += [{"name": "predicates"}, scoring]
        before = ["allocate"] if pick.random() < 0.5 else []
        return policies.Policy(f"tiny {self.action}", [*before, self.action], tiers)

    def _plugin(self, name, names):
        pick, plugin = self.pick, {"name": name}
        if name == "gang" and pick.random() < 0.3:
            plugin["enablePreemptable" if self.action in WITHIN else "enableReclaimable"] = False
        if name == "priority" and pick.random() < 0.2:
            plugin["enableJobStarving"] = False
        if name == "gang" and "priority" in names and pick.random() < 0.2:
            plugin["enableJobStarving"] = False
        if name == "priority" and self.action == "preempt" and pick.random() < 0.1:
            plugin["enablePreemptable"] = False
        return plugin

    # ---- objects

    def make(self):
        pick = self.pick
        nodes = [f"n{i}" for i in range(pick.randint(1, 3))]
        self.used = {name: [0, 0] for name in nodes}
        self.gpus = pick.random() < 0.2
        mine = "q0"
        others = [f"q{i}" for i in range(1, pick.choice([1, 1, 2]) + 1)]
        if self.action in WITHIN and pick.random() < 0.6:
            others = []
        left = pick.choice([4, 5, 6])
        for i in range(pick.randint(1, 4)):
            left -= self._running_job(f"j{i}", i, min(left, 3), self._queue_of(mine, others), nodes)
        self._claimant(mine, nodes)
        if pick.random() < 0.15:
            self._waiting_job("yy", 8, pick.choice([mine, *others]), pick.randint(1, 2))
        self._sparing_budget()
        for name in [mine, *others]:
            self.queues.append(self._queue(name))
        made = [priority_class(name, value) for name, value in CLASSES.items()]
        made += [self._node(name) for name in nodes]
        self.world.manifests = [*made, *self.queues, *self.groups, *self.pods, *self.budgets]
        return self.world

    def _queue_of(self, mine, others):
        within = self.pick.random() < (0.85 if self.action in WITHIN else 0.15)
        return mine if within or not others else self.pick.choice(others)

    def _queue(self, name):
        pick, spec = self.pick, {"weight": self.pick.choice([1, 1, 2])}
        if self.sharing:
            if pick.random() < 0.25:
                spec["capability"] = {"cpu": str(pick.randint(2, 6))}
            if pick.random() < 0.25:
                spec["guarantee"] = {"resource": {"cpu": str(pick.randint(1, 2))}}
            if self.sharing == "capacity" and pick.random() < 0.85:
                spec["deserved"] = {"cpu": str(pick.randint(1, 5))}
        if pick.random() < 0.1:
            spec["reclaimable"] = False
        return queue(name, created=int(name[1:]), **spec)

    def _node(self, name):
        cpu, gpu = self.used[name]
        more = {"nvidia.com__gpu": str(max(1, gpu))} if self.gpus else {}
        cpu += self.pick.choice([0, 0, 0, 1])
        return node(name, cpu=str(max(1, cpu)), memory="64Gi", **more)

    def _running_job(self, name, index, most, queue_name, nodes):
        pick = self.pick
        if most < 1:
            return 0
        size = pick.randint(1, most)
        minimum = pick.choice([0, 1, size, size, pick.randint(0, size)])
        level = pick.choice(["low", "low", "mid", "high"])
        roles, least = self._roles(size, minimum) if pick.random() < 0.2 else ([""] * size, {})
        self._group(name, minimum, index, queue_name, level, least=least, running=True)
        for i in range(size):
            self._pod(f"{name}-{i}", name, level, roles[i], pick.choice(nodes))
        return size

    def _roles(self, size, minimum):
        roles = [self.pick.choice("mw") for _ in range(size)]
        least = {"m": self.pick.randint(0, roles.count("m")), "w": self.pick.randint(0, roles.count("w"))}
        return roles, least if sum(least.values()) <= minimum else {}

    def _claimant(self, queue_name, nodes):
        pick = self.pick
        level = pick.choice(["mid", "high", "high"])
        running = pick.choice([0, 0, 1, 2]) if self.action == "preempt" else pick.choice([0, 0, 0, 1])
        size = pick.choice([1, 1, 2, 2, 3])
        minimum = pick.choice([running + size, running + size, pick.randint(1, running + size)])
        own = self.action == "preempt" and running and pick.random() < 0.6
        roles, least = [""] * (size + running), {}
        if pick.random() < 0.15:
            roles, least = self._roles(size + running, minimum)
        self._group("zz", minimum, 9, queue_name, level, least=least, running=bool(running))
        for i in range(running):
            self._pod(f"zz-{i}", "zz", level, roles[i], pick.choice(nodes), priority=CLASSES["low"] if own else None)
        for i in range(running, running + size):
            self._pod(f"zz-{i}", "zz", level, roles[i], "")

    def _waiting_job(self, name, index, queue_name, size):
        level = self.pick.choice(["low", "mid", "high"])
        self._group(name, size, index, queue_name, level, least={}, running=False)
        for i in range(size):
            self._pod(f"{name}-{i}", name, level, "", "")

    def _group(self, name, minimum, index, queue_name, level, *, least, running):
        spec = {"priorityClassName": level, **({"minTaskMember": least} if any(least.values()) else {})}
        notes = {"volcano.sh/preemptable": "false"} if name != "zz" and self.pick.random() < 0.03 else None
        phase = "Running" if running else "Inqueue"
        made = group(name, minimum, created=index, queue=queue_name, phase=phase, annotations=notes, **spec)
        self.groups.append(made)

    def _pod(self, name, group_name, level, role="", where="", *, priority=None):
        pick = self.pick
        cpu = pick.choice([1, 1, 1, 2, 2, 3])
        asked = {"nvidia.com/gpu": "1"} if self.gpus and pick.random() < 0.4 else {}
        notes, labels, conditions = {}, {}, []
        if where:
            self.used[where][0] += cpu
            self.used[where][1] += bool(asked)
            if pick.random() < 0.06:
                notes["volcano.sh/preemptable"] = "false"
            if pick.random() < 0.2:
                labels["app"] = "kept"
            if pick.random() < 0.15:
                conditions = [self._cooled(name, notes)]
        critical = where and group_name != "zz" and pick.random() < 0.04
        made = pod(
            name,
            group_name,
            cpu=str(cpu),
            requests=asked,
            node=where,
            role=role,
            labels=labels,
            annotations=notes,
            priority=CLASSES[level] if priority is None else priority,
            priorityClassName="system-node-critical" if critical else level,
        )
        made["status"]["conditions"] = conditions
        self.pods.append(made)

    def _cooled(self, name, notes):
        """A pod that asks for ten minutes of peace, and was scheduled a moment or an hour ago."""
        notes[COOLDOWN] = "600s"
        fresh = self.pick.random() < 0.5
        if fresh:
            self.world.cooling.add(f"a/{name}")
        moment = "2025-12-31T23:59:00Z" if fresh else "2025-12-31T23:00:00Z"
        return {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}

    def _sparing_budget(self):
        self.budgets = []
        if self.world.policy.lists("pdb") and self.pick.random() < 0.7:
            self.budgets.append(
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": "kept", "namespace": "a", "uid": "budget.kept", "creationTimestamp": stamp(0)},
                    "spec": {"selector": {"matchLabels": {"app": "kept"}}},
                    "status": {"disruptionsAllowed": self.pick.choice([0, 1, 1])},
                }
            )


assert NOW // SECOND == 1_767_225_600  # 2026-01-01T00:00:00Z, what the moments above are told from
