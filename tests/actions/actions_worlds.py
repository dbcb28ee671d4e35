"""Random clusters with work on them, the simulated cluster they live on, and a digest of everything the scheduler does there.

Run as a program it prints the digests of a few worlds, so that processes with different hash seeds can be compared.
"""

from __future__ import annotations

import hashlib
import random
import sys

from builders import group, node, pod, priority_class, queue, settings
from pumice.api import duration, kinds
from pumice.cache.cache import Cache
from pumice.scheduler import Scheduler
from pumice.sim.cluster import SimulatedCluster
from pumice.sim.faults import Fault

CONFIG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}]
"""
GPU = "nvidia.com/gpu"
RUN_TIME = "pumice.dev/run-time"
SOFT = {"key": "k", "effect": "PreferNoSchedule"}
HARD = {"key": "k", "effect": "NoSchedule"}


# ---- what there is


def nodes(pick):
    made = []
    for i in range(pick.randint(1, 5)):
        each = node(
            f"n{i}",
            cpu=str(pick.randint(2, 8)),
            memory=f"{pick.randint(2, 8)}Gi",
            pods=str(pick.choice([2, 4, 110])),
            labels={"zone": pick.choice(["a", "b"])},
            taints=pick.choice([(), (), (SOFT,), (HARD,)]),
        )
        if pick.randint(0, 1):
            each["status"]["allocatable"][GPU] = "2"
        made.append(each)
    return made


def neighbours(pick, known):
    """Pods of other schedulers, one a node at most: running, or about to be gone."""
    return [
        pod(
            f"alien-{i}",
            scheduler="else",
            cpu=pick.choice(["1", each["status"]["allocatable"]["cpu"]]),
            memory="1Gi",
            node=each["metadata"]["name"],
            deleting=pick.choice([False, 2, 3, 5]),
        )
        for i, each in enumerate(known)
        if pick.randint(0, 1)
    ]


def gang(pick, name):
    """A group and its pods: one or two shapes, perhaps roles, perhaps pods without requests, perhaps short-lived."""
    size = pick.randint(1, 6)
    minimum = pick.randint(0, size + 1)
    roles = pick.choice([{}, {"m": pick.randint(0, 2), "w": pick.randint(0, 2)}])
    members = [member(pick, f"{name}-w-{i}", name, pick.choice(["m", "w"]) if roles else "") for i in range(size)]
    spec = {"minTaskMember": roles} if roles else {}
    made = group(
        name,
        minimum,
        queue=pick.choice(["", "red", "blue"]),
        priorityClassName=pick.choice(["", "", "high", "low"]),
        **spec,
    )
    return [made, *members]


def member(pick, name, of, role):
    requests = pick.choice(
        [{}, {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": "1", "memory": "3Gi"}, {"cpu": "1", GPU: "1"}]
    )
    spec = pick.choice(
        [{}, {}, {"nodeSelector": {"zone": "a"}}, {"tolerations": [{"operator": "Exists"}]}, {"priority": 5}]
    )
    notes = pick.choice([{}, {}, {RUN_TIME: "2s"}, {RUN_TIME: "5s"}])
    ports = pick.choice([(), (), (), ({"hostPort": 80},)])
    return pod(name, of, requests=requests, role=role, annotations=notes, ports=ports, **spec)


def world(pick):
    """Objects that are there at the start, and those that come later, cycle by cycle."""
    known = nodes(pick)
    gangs = [gang(pick, f"g{i}") for i in range(pick.randint(1, 5))]
    late = pick.randint(0, len(gangs))
    start = [
        queue("red", weight=1),
        queue("blue", weight=3),
        priority_class("high", 100),
        priority_class("low", -5),
        *known,
        *neighbours(pick, known),
        *(each for made in gangs[late:] for each in made),
    ]
    return start, gangs[:late]


# ---- where it happens


class Recording(SimulatedCluster):
    """Writes down every effect in the order in which it is handed over."""

    def __init__(self):
        super().__init__()
        self.log = []

    def send(self, effect):
        self.log.append(effect)
        super().send(effect)


class Rig:
    """A scheduler on a simulated cluster."""

    def __init__(self, config=CONFIG):
        self.cluster = Recording()
        self.cache = Cache(self.cluster)
        self.scheduler = Scheduler(self.cache, settings(config)[0], self.cluster.clock.now)
        self.traces = []

    def start(self, manifests):
        self.cluster.apply(manifests)
        self.cluster.connect(self.cache)

    def cycle(self):
        self.cluster.pump()
        self.traces.append(self.scheduler.cycle().trace())
        assert self.scheduler.failures == []
        self.cluster.settle()
        self.cluster.advance(duration.SECOND)

    def fail(self, verb, error, times):
        self.cluster.fail(Fault(verb=verb, error=error, times=times))

    def pods(self):
        return list(self.cluster.store.scan(kinds.POD))

    def objects(self, kind):
        return {manifest["metadata"]["name"]: manifest for manifest in self.cluster.store.scan(kind)}


def digest(pick, cycles=8):
    """Everything that is decided and written in one world, as one hash."""
    rig = Rig()
    start, late = world(pick)
    rig.start(start)
    for number in range(cycles):
        rig.cycle()
        if number < len(late):
            rig.cluster.apply(late[number])
    return hashlib.sha256(repr((rig.cluster.log, rig.traces)).encode()).hexdigest()


def main():
    for seed in range(int(sys.argv[1])):
        print(digest(random.Random(seed)))  # noqa: S311, T201  the comparison is the output


if __name__ == "__main__":
    main()
