"""Small clusters in tiers, a life for their pods, and what a search of everything says about domains. Nothing here asks the code under test."""

from __future__ import annotations

from builders import Desk, group, metadata, node, pod

CONFIG = """
actions: "enqueue, allocate, backfill%s"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: network-topology-aware}]
"""
ALLOCATE = CONFIG % ""
PREEMPT = CONFIG % ", gangpreempt"


def hyper_node(name, tier, members, kind="Node", tier_name=""):
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    spec = {"tier": tier, "members": listed, **({"tierName": tier_name} if tier_name else {})}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": metadata(name),
        "spec": spec,
    }


class Tiers:
    """Racks of nodes and blocks of racks; nodes may lie outside."""

    def __init__(self, racks, blocks, outside=(), tiers=(1, 2)):
        self.racks = {f"rack-{i}": list(nodes) for i, nodes in enumerate(racks)}
        self.blocks = {f"block-{i}": [f"rack-{r}" for r in members] for i, members in enumerate(blocks)}
        self.outside = list(outside)
        self.low, self.high = tiers

    @property
    def nodes(self):
        return [*(name for nodes in self.racks.values() for name in nodes), *self.outside]

    @property
    def top(self):
        """The tier of the virtual root."""
        return (self.high if self.blocks else self.low) + 1

    def manifests(self):
        racks = [hyper_node(name, self.low, nodes) for name, nodes in self.racks.items()]
        return racks + [hyper_node(name, self.high, members, "HyperNode") for name, members in self.blocks.items()]

    def domains(self, limit):
        """All sets of nodes that a job with a limit may be in."""
        found = [set(nodes) for nodes in self.racks.values()] if self.low <= limit else []
        if self.high <= limit:
            found += [{n for rack in racks for n in self.racks[rack]} for racks in self.blocks.values()]
        return found + ([set(self.nodes)] if self.top <= limit else [])

    def allows(self, nodes, limit):
        return not nodes or any(set(nodes) <= domain for domain in self.domains(limit))


class Life:
    """A desk whose binds and evictions come true: bound pods run, evicted ones are gone."""

    def __init__(self, tiers, config=ALLOCATE, cpu=4):
        self.tiers = tiers
        self.desk = Desk(config)
        self.cpu = dict.fromkeys(tiers.nodes, cpu)
        self.desk.feed(*(node(name, cpu=str(cpu), memory="64Gi") for name in tiers.nodes), *tiers.manifests())
        self.pods = {}
        self.made = 0
        self.seen = 0

    def add_group(self, name, minimum, **spec):
        self.desk.feed(group(name, minimum, phase="Inqueue", **spec))

    def add_pod(self, owner, cpu=1, node="", labels=None, **spec):
        self.made += 1
        name = f"{owner}-p-{self.made}"
        self.pods[name] = made = pod(name, owner, cpu=str(cpu), node=node, labels=labels, created=self.made, **spec)
        self.desk.feed(made)
        return name

    def remove(self, name):
        self.desk.delete(self.pods.pop(name))

    def cycle(self):
        self.desk.cycle()
        failures = self.desk.scheduler.failures
        assert not failures, failures
        binds, evictions = self.desk.world.binds, self.desk.world.evictions
        for name, where in binds.items():
            if name in self.pods and not self.pods[name]["spec"]["nodeName"]:
                changed = dict(self.pods[name], spec={**self.pods[name]["spec"], "nodeName": where})
                changed["status"] = {"phase": "Running"}
                self.pods[name] = changed
                self.desk.modify(changed)
        for name in evictions[self.seen :]:
            if name in self.pods:
                self.remove(name)
        self.seen = len(evictions)

    def members(self, owner):
        return [made for name, made in self.pods.items() if name.startswith(f"{owner}-p-")]

    def nodes_of(self, owner):
        return [made["spec"]["nodeName"] for made in self.members(owner) if made["spec"]["nodeName"]]

    def free(self):
        """What is free on each node, in cpus."""
        left = dict(self.cpu)
        for made in self.pods.values():
            where = made["spec"]["nodeName"]
            if where:
                left[where] -= int(made["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        return left
