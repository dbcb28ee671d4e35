"""Figures of eviction for unequal gangs: what one cycle costs in which 30 gangs of 4 different pods each ask for room on a full cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bench import worlds
from bench.cases import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

GANGS = 30
MEMBERS = 4
PER_NODE = 10
# Nodes, and how many seconds of processor time a cycle may take.
SIZES = ((50, 1.0), (100, 1.0), (1000, 1.0), (5000, 3.0))
# Together they fill a node of 32 cpus, and no two neighbours are equal.
CPUS = (2, 3, 4, 3, 2, 4, 3, 5, 1, 5)
# Of jobs of eight: gangs that can spare nobody, some that can spare a few, and jobs that are no gangs.
MINIMUMS = (8, 6, 1, 4, 1, 7)
PRIORITIES = ("low", "middle", "low", "lower")


def _configuration(action: str, sharing: str) -> str:
    plugins = "{name: predicates}, {name: nodeorder}" + (f", {{name: {sharing}}}" if sharing else "")
    return f"""
actions: "enqueue, allocate, {action}, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{plugins}]
"""


def _class(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def crowd(nodes: int, action: str, sharing: str = "") -> worlds.Bench:
    """Build a full cluster of varied jobs in two queues, and the gangs that ask, in a queue of their own where they reclaim."""
    bench = worlds.Bench(_configuration(action, sharing))
    ranks = {"low": 10, "lower": 5, "middle": 20, "high": 100}
    bench.feed(_class(name, value) for name, value in ranks.items())
    due = {"cpu": str(nodes * 32 // 3), "memory": f"{nodes * 128 // 3}Gi"}
    spec = {"deserved": due} if sharing == "capacity" else {}
    bench.feed(worlds.queue(name, **spec) for name in ("first", "second", "asking"))
    bench.feed(worlds.node(i, cpu=32, memory=128) for i in range(nodes))
    apart = action in {"reclaim", "gangreclaim"}
    for g in range(nodes * PER_NODE // 8):
        queue = ("first", "second")[g % 2] if apart else "asking"
        minimum = MINIMUMS[g % len(MINIMUMS)]
        priority = PRIORITIES[g % len(PRIORITIES)]
        bench.feed([worlds.group(f"old-{g}", minimum, queue, "Running", priorityClassName=priority)])
        for i in range(8):
            place, slot = (g * 8 + i) % nodes, (g * 8 + i) // nodes
            cpu = CPUS[(place + slot) % PER_NODE]
            bench.feed([worlds.pod(f"old-{g}", i, str(cpu), f"{2 + (3 * cpu + g) % 9}Gi", f"node-{place:05d}")])
    for g in range(GANGS):
        bench.feed([worlds.group(f"new-{g}", MEMBERS, "asking", priorityClassName="high")])
        for i in range(MEMBERS):
            shape = g * MEMBERS + i
            bench.feed([worlds.pod(f"new-{g}", i, f"{1000 + 50 * (shape * 37 % 120)}m", f"{1024 + 64 * shape}Mi")])
    bench.apply()
    return bench


def measure(nodes: int, limit: float, action: str, sharing: str) -> Figure:
    """Run one cycle and count the gangs that got a plan."""
    bench = crowd(nodes, action, sharing)
    start = time.process_time()
    session = bench.decide()
    spent = time.process_time() - start
    tasks = bench.cache.cluster.tasks
    held = {tasks[uid].job_key for uid in session.reservations.holds}
    by = f"{action} with {sharing}" if sharing else action
    name = f"{by}: 120 unequal pods in 30 gangs, {nodes:,} nodes, {nodes * PER_NODE:,} pods"
    note = f"{len(held)} of {GANGS} gangs got a plan, {len(bench.world.evictions)} pods evicted; processor time"
    return Figure(name, spent, "s", f"<= {limit:g}", spent <= limit, note=note)


def _at_all_sizes(action: str, sharing: str = "") -> list[Figure]:
    return [measure(nodes, limit, action, sharing) for nodes, limit in SIZES]


def preempt() -> list[Figure]:
    """Measure claims on the jobs of the own queue."""
    return _at_all_sizes("preempt")


def reclaim() -> list[Figure]:
    """Measure claims on other queues, by either plugin that shares."""
    return [*_at_all_sizes("reclaim", "capacity"), *_at_all_sizes("reclaim", "proportion")]


def gangpreempt() -> list[Figure]:
    """Measure claims on bundles of the own queue."""
    return _at_all_sizes("gangpreempt")


def gangreclaim() -> list[Figure]:
    """Measure claims on bundles of other queues, by either plugin that shares."""
    return [*_at_all_sizes("gangreclaim", "capacity"), *_at_all_sizes("gangreclaim", "proportion")]


def everything() -> list[Callable[[], list[Figure]]]:
    """Return all measurements."""
    return [preempt, reclaim, gangpreempt, gangreclaim]
