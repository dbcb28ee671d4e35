"""What happens in a life, as the steps of a scenario file, plus `restart`, which only lives know.

Steps are drawn before anything runs. What controllers would do in answer to the scheduler (create the pods of a group that was let in, replace a
pod that was evicted) is done by the player, which leaves a script that says so step by step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.lives import policies, worlds

TAIL = 18
LONG_TAIL = 80


@dataclass
class Script:
    """A policy, the objects of the beginning, and the steps; `tail` counts the cycles at the end in which nothing changes."""

    seed: int
    policy: policies.Policy
    given: list
    steps: list
    late: dict = field(default_factory=dict)
    replaces: bool = False
    tail: int = 0

    @property
    def cycles(self):
        """Count the cycles."""
        return sum(step.get("cycles", 0) for step in self.steps)


def draw(seed, wanted="", cycles=0):
    """Draw the life of a seed; the same seed and wishes give the same life for ever. `cycles` makes the part in which things happen as long as that."""
    pick = random.Random(seed)  # noqa: S311  a life, not a secret
    policy = policies.draw(pick, wanted)
    large = pick.random() < 0.08
    maker = worlds.Maker(pick, policy, large=large)
    world = maker.make()
    script = Script(seed, policy, world.given, [], dict(world.late), replaces=pick.random() < 0.6)
    drawn = pick.randint(20, 60) if large else pick.randint(0, 12)
    _Course(pick, maker, world, script).run(cycles or drawn)
    script.tail = LONG_TAIL if pick.random() < 0.05 else TAIL
    script.steps += [{"cycles": 1} for _ in range(script.tail)]
    return script


class _Course:
    """Draws the steps up to the tail."""

    def __init__(self, pick, maker, world, script):
        self.pick, self.maker, self.world, self.script = pick, maker, world, script
        self.groups = {m["metadata"]["name"]: m for m in world.given if m["kind"] == "PodGroup"}
        self.pods = {name: _members(world.given, name) + world.late.get(name, []) for name in self.groups}
        self.cordoned = []
        self.closed = []
        self.calm = pick.random() < 0.35
        self.faulty = pick.random() < 0.25

    def run(self, cycles):
        """Draw what happens before each cycle."""
        for _ in range(cycles):
            self.script.steps.append({"cycles": 1})
            while self.pick.random() < (0.1 if self.calm else 0.4):
                self.script.steps += self._happening() or []

    def _happening(self):
        pick = self.pick
        chosen = pick.choices(
            [
                self._arrival,
                self._departure,
                self._pod_deleted,
                self._node_added,
                self._cordon,
                self._node_removed,
                self._queue_state,
                self._queue_changed,
                self._minimum_changed,
                self._fault,
                self._restart,
                self._foreign,
            ],
            [10, 4, 3, 2, 1.5, 1, 2, 1.5, 0.7, 4 if self.faulty else 0, 1.5, 1],
        )[0]
        return chosen()

    def _arrival(self):
        made, late = self.maker.job(runs=False)
        group = made[0]
        name = group["metadata"]["name"]
        self.groups[name] = group
        self.pods[name] = [m for m in made if m["kind"] == "Pod"] + late.get(name, [])
        self.script.late.update(late)
        return [{"apply": made}]

    def _departure(self):
        if not self.groups:
            return None
        name = self.pick.choice(sorted(self.groups))
        pods = [f"pod/{worlds.SPACE}/{p['metadata']['name']}" for p in self.pods.pop(name)]
        del self.groups[name]
        grace = {"grace": "2s"} if self.pick.random() < 0.7 else {}
        return [{"delete": [f"podgroup/{worlds.SPACE}/{name}"]}, {"delete": pods, **grace}]

    def _pod_deleted(self):
        if not self.groups:
            return None
        pods = self.pods[self.pick.choice(sorted(self.groups))]
        if not pods:
            return None
        name = self.pick.choice(pods)["metadata"]["name"]
        grace = {"grace": f"{self.pick.randint(1, 4)}s"} if self.pick.random() < 0.8 else {}
        return [{"delete": [f"pod/{worlds.SPACE}/{name}"], **grace}]

    def _node_added(self):
        return [{"apply": [self.maker.node()]}]

    def _cordon(self):
        if self.cordoned and self.pick.random() < 0.6:
            return [_node_patch(self.cordoned.pop(), unschedulable=False)]
        name = self.pick.choice(sorted(self.maker.nodes))
        self.cordoned.append(name)
        return [_node_patch(name, unschedulable=True)]

    def _node_removed(self):
        return [{"delete": [f"node/{self.pick.choice(sorted(self.maker.nodes))}"]}]

    def _queue_state(self):
        pick = self.pick
        if self.closed and pick.random() < 0.6:
            name, state = self.closed.pop(), "Open"
        else:
            name, state = pick.choice(self.maker.queues), pick.choice(["Closed", "Closing"])
            self.closed.append(name)
        return [{"patch": [_patch("Queue", name, status={"state": state})]}]

    def _queue_changed(self):
        spec = self.maker.queue_spec()
        return [{"patch": [_patch("Queue", self.pick.choice(self.maker.queues), spec=spec)]}]

    def _minimum_changed(self):
        if not self.groups:
            return None
        name = self.pick.choice(sorted(self.groups))
        spec = {"minMember": self.pick.randint(0, max(1, len(self.pods[name])))}
        return [{"patch": [_patch("PodGroup", name, namespace=worlds.SPACE, spec=spec)]}]

    def _fault(self):
        if not self.groups:
            return None
        pick, name = self.pick, self.pick.choice(sorted(self.groups))
        verb = pick.choice(["bind", "evict", "evict"])
        error = pick.choice(["conflict", "refused", "unavailable", "lost-reply"])
        return [
            {
                "fail": {
                    "verb": verb,
                    "object": f"pod/{worlds.SPACE}/{name}-*",
                    "times": pick.randint(1, 3),
                    "error": error,
                }
            }
        ]

    def _restart(self):
        return [{"restart": True}]

    def _foreign(self):
        node = self.maker.nodes[self.pick.choice(sorted(self.maker.nodes))]
        spec = {
            "schedulerName": "else",
            "nodeName": node["metadata"]["name"],
            "containers": [worlds.container({"cpu": 1})],
        }
        return [{"apply": [worlds.pod_manifest(f"late-{len(self.script.steps)}", "x", spec)]}]


def _members(manifests, group):
    return [
        m
        for m in manifests
        if m["kind"] == "Pod" and m["metadata"].get("annotations", {}).get(worlds.GROUP_NAME) == group
    ]


def _node_patch(name, **spec):
    return {"patch": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}]}


def _patch(kind, name, namespace="", **fields):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": worlds.VOLCANO, "kind": kind, "metadata": metadata, **fields}
