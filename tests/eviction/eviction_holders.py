"""Lives of full clusters in which many jobs of one pod, most of them equal, wait for victims that take long to go, while others keep arriving and leaving."""

from __future__ import annotations

import random

import recount
from builders import group, node, pod, priority_class, queue
from pumice.api import duration, kinds
from pumice.cache.cache import Cache
from pumice.framework import configuration, registry
from pumice.scheduler import Options, Scheduler
from pumice.sim.cluster import SimulatedCluster

KNOWN = registry.catalog()
CLASSES = {"low": 10, "mid": 50, "high": 100}
FIRST = "[{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]"
FIT = "{name: predicates}, {name: nodeorder}, {name: binpack}"
POLICIES = {
    "shared": ("enqueue, allocate, preempt, backfill", FIRST, f"[{{name: proportion}}, {FIT}]"),
    "shared, live": (
        "enqueue, allocate, preempt, backfill",
        FIRST,
        f"[{{name: drf, enablePreemptable: false}}, {{name: proportion}}, {FIT}]",
    ),
    "limited": ("enqueue, allocate, preempt", FIRST, f"[{{name: capacity}}, {FIT}]"),
    "not limited": ("enqueue, allocate, preempt, backfill", FIRST, f"[{FIT}]"),
    "preempt first": ("enqueue, preempt, allocate", FIRST, f"[{{name: proportion}}, {FIT}]"),
    "three voices": (
        "enqueue, allocate, preempt",
        "[{name: priority}, {name: gang}, {name: conformance}]",
        f"[{{name: proportion}}, {FIT}]",
    ),
    "two tiers": ("enqueue, allocate, preempt", "[{name: gang}, {name: conformance}]", f"[{{name: priority}}, {FIT}]"),
    "drf": ("enqueue, allocate, preempt", FIRST, f"[{{name: drf}}, {{name: proportion}}, {FIT}]"),
    "budgets": ("enqueue, allocate, preempt", FIRST, f"[{{name: pdb}}, {{name: proportion}}, {FIT}]"),
    "in time": ("enqueue, allocate, preempt", FIRST, f"[{{name: sla}}, {{name: proportion}}, {FIT}]"),
    "reclaim": (
        "enqueue, allocate, reclaim, preempt",
        "[{name: priority}, {name: conformance}]",
        f"[{{name: gang, enableReclaimable: false}}, {{name: proportion}}, {FIT}]",
    ),
}
CYCLES = 7


def policy(name):
    """Return the configuration text of a named policy."""
    actions, *tiers = POLICIES[name]
    return f'actions: "{actions}"\ntiers:\n' + "".join(f"- plugins: {tier}\n" for tier in tiers)


class Noting(SimulatedCluster):
    """A cluster that remembers what was sent to it."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def send(self, effect):
        self.sent.append(repr(effect))
        super().send(effect)


class Life:
    """One life; everything that happens in it follows from its seed and from what is decided."""

    def __init__(self, seed, name):
        self.pick = random.Random(seed)  # noqa: S311  a world, not a secret
        self.cluster = Noting()
        self.queues = self.pick.choice([["q0"], ["q0"], ["q0", "q1"]])
        self.namespaces = self.pick.choice([["a"], ["a", "a", "a", "kube-system"]])
        self.number, self.odd = 0, self.pick.choice([0, 0, 1])  # whether jobs differ in this and that
        self.asked = self.pick.choice(["2", "3", "3"])
        self.cluster.apply([priority_class(each, value) for each, value in CLASSES.items()])
        self.cluster.apply([queue(each, weight=1, **self._limits()) for each in self.queues])
        self._fill(self.pick.randint(4, 9))
        self.cache = Cache(self.cluster, Options())
        loaded = configuration.load(policy(name), KNOWN, "config")
        self.scheduler = Scheduler(self.cache, loaded, self.cluster.clock.now)
        self.cluster.restart(self.cache)

    def told(self):
        """Live, and say in every cycle what was decided, said and sent, what is held, and in which order the model lists what waits."""
        said = []
        for _ in range(CYCLES):
            self._arrive()
            self.cluster.pump()
            record = self.scheduler.cycle()
            assert not self.scheduler.failures, self.scheduler.failures
            model = self.cache.cluster
            recount.check(model)
            holds = {uid: (hold.node, hold.victims) for uid, hold in self.scheduler.reservations.holds.items()}
            order = [list(model.pending_jobs), {record.name: list(record.tasks) for record in model.nodes.records}]
            explained = [record.explain(key) for key in sorted(model.jobs)]
            said.append((record.trace(), explained, holds, order, self.scheduler.wake, self.cluster.sent))
            self.cluster.sent = []
            if self.pick.random() < 0.4:
                # The API server is slow: what was sent is not performed before the next cycle.
                self.cluster.clock.advance(duration.SECOND)
            else:
                self.cluster.settle()
                self._leave()
                self.cluster.advance(duration.SECOND)
        return said

    def _limits(self):
        cpu = str(self.pick.randint(6, 30))
        return {"deserved": {"cpu": cpu}, **({"capability": {"cpu": cpu}} if self.pick.random() < 0.3 else {})}

    def _fill(self, count):
        pick = self.pick
        for index in range(count):
            self.cluster.apply([node(f"n{index}", "4", "32Gi", pick.choice(["9", "110"]), labels={"zone": "a"})])
            size = pick.choice([1, 1, 2]) if self.odd else 1
            for _ in range(4 // size):
                rank = pick.choice(["low"] * 6 + ["mid"]) if self.odd else "low"
                self._job(rank, [str(size)], least=pick.choice([0, 0, 1]) if self.odd else 0, place=f"n{index}")

    def _arrive(self):
        pick = self.pick
        if pick.random() < 0.3:
            return
        rank, asked = pick.choice(["mid", "mid", "mid", "high"]), self.asked
        for _ in range(pick.randint(1, 6)):
            if pick.random() < 0.15:
                rank = pick.choice(list(CLASSES))
            if pick.random() < 0.05 + 0.2 * self.odd:
                asked = pick.choice(["500m", "1", "2", "4"])
            size = pick.choice([1] * 9 + [2])
            self._job(rank, [asked] * size, least=size)

    def _leave(self):
        there = [each for each in self.cluster.store.scan(kinds.POD) if each["spec"].get("nodeName")]
        names = sorted((each["metadata"]["namespace"], each["metadata"]["name"]) for each in there)
        for space, name in [name for name in names if self.pick.random() < 0.05]:
            self.cluster.delete([f"pod/{space}/{name}"], grace=duration.SECOND * self.pick.choice([0, 2]))

    def _job(self, rank, asked, *, least, place=""):
        pick, name = self.pick, f"j{self.number}"
        self.number += 1
        space = "a" if place else pick.choice(self.namespaces)
        spec = {"priorityClassName": rank, "queue": pick.choice(self.queues)}
        phase = "Running" if place else ""
        made = [group(name, least, namespace=space, created=self.number, phase=phase, **spec)]
        for index, cpu in enumerate(asked):
            more = {"ports": [{"containerPort": 80, "hostPort": 8080}]} if pick.random() < 0.05 * self.odd else {}
            notes = {"volcano.sh/preemptable": "false"} if pick.random() < 0.05 * self.odd else None
            grace = pick.choice([1, 30, 30])
            each = f"{name}-{index}"
            made.append(
                pod(
                    each,
                    name,
                    namespace=space,
                    cpu=cpu,
                    node=place,
                    uid=each,
                    annotations=notes,
                    terminationGracePeriodSeconds=grace,
                    **more,
                )
            )
        self.cluster.apply(made)
