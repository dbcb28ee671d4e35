"""Figures of refusals: what a cycle costs in a full cluster where many ask, and nobody may be evicted for them."""

from __future__ import annotations

import statistics
import time
from typing import Any

from bench import worlds
from bench.cases import Figure

RECLAIM = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
DRF = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: drf}]
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
BUDGETS = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def _class(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _settled(running: int, waiting: int) -> worlds.Bench:
    """Return three queues at their shares on full nodes, with one-pod groups waiting in each."""
    bench = worlds.Bench(RECLAIM)
    queues = ["a", "b", "c"]
    bench.feed(worlds.queue(name) for name in queues)
    nodes = -(-running // 33)
    bench.feed(worlds.node(i, cpu=33, memory=132) for i in range(nodes))
    for i in range(running):
        queue = queues[i % 3]
        bench.feed([worlds.group(f"run-{i}", 1, queue, "Running")])
        bench.feed([worlds.pod(f"run-{i}", 0, "1", "1Gi", f"node-{i % nodes:05d}")])
    for i in range(waiting):
        bench.feed([worlds.group(f"wait-{i}", 1, queues[i % 3])])
        bench.feed([worlds.pod(f"wait-{i}", 0, "1", "1Gi")])
    bench.apply()
    return bench


def _alone(running: int, waiting: int, size: int = 1) -> worlds.Bench:
    """Return full nodes with jobs of some size, and one-pod groups that wait in the same queue, where drf alone judges first."""
    bench = worlds.Bench(DRF)
    nodes = -(-running // 33)
    bench.feed(worlds.node(i, cpu=33, memory=132) for i in range(nodes))
    for i in range(running):
        if i % size == 0:
            bench.feed([worlds.group(f"run-{i // size}", 1, phase="Running")])
        bench.feed([worlds.pod(f"run-{i // size}", i, "1", "1Gi", f"node-{i % nodes:05d}")])
    for i in range(waiting):
        bench.feed([worlds.group(f"wait-{i}", 1)])
        bench.feed([worlds.pod(f"wait-{i}", 0, "1", "1Gi")])
    bench.apply()
    return bench


def _budgets(nodes: int, gangs: int) -> worlds.Bench:
    """Return nodes full of pods of low priority whose budgets are used up, and gangs of high priority that wait."""
    bench = worlds.Bench(BUDGETS)
    bench.feed([_class("low", 1), _class("high", 100)])
    bench.feed(worlds.node(i, cpu=10, memory=40) for i in range(nodes))
    for job in range(nodes * 10 // 20):
        name = f"run-{job}"
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "bench"},
            "spec": {"selector": {"matchLabels": {"app": name}}},
            "status": {"disruptionsAllowed": 0},
        }
        bench.feed([worlds.group(name, 1, phase="Running", priorityClassName="low"), budget])
        for i in range(20):
            pod = worlds.pod(name, i, "1", "1Gi", f"node-{(job * 20 + i) % nodes:05d}")
            pod["metadata"]["labels"] = {"app": name}
            bench.feed([pod])
    for gang in range(gangs):
        bench.feed([worlds.group(f"gang-{gang}", 4, priorityClassName="high")])
        bench.feed(worlds.pod(f"gang-{gang}", i, "1", "1Gi") for i in range(4))
    bench.apply()
    return bench


def _cycle(bench: worlds.Bench) -> float:
    """Run a cycle in full, as after a change that concerns nobody; return milliseconds of the processor."""
    bench.cache.cluster.changed += 1
    start = time.process_time()
    bench.scheduler.cycle()
    return (time.process_time() - start) * 1000


def _one_more(bench: worlds.Bench, number: int, **group: Any) -> float:
    """Let one more claimant come, like those that wait."""
    bench.feed([worlds.group(f"more-{number}", 1, **group), worlds.pod(f"more-{number}", 0, "1", "1Gi")])
    return _cycle(bench)


def _figures(name: str, bench: worlds.Bench, **group: Any) -> list[Figure]:
    """Measure a cycle that could only repeat the last one but is run in full, and what one more claimant adds."""
    first = _cycle(bench)
    _cycle(bench)
    full = statistics.median(_cycle(bench) for _ in range(3))
    more = statistics.median(_one_more(bench, number, **group) for number in range(3)) - full
    if bench.world.evictions:
        raise RuntimeError(f"{name}: {len(bench.world.evictions)} pods were evicted, nobody may be")
    note = f"the first cycle took {first:.0f} ms, processor time"
    return [
        Figure(f"{name}: a cycle in full", full, "ms", "<= 100", full <= 100, note=note),
        Figure("  and what one more claimant adds", more, "ms", "<= 20", more <= 20),
    ]


def reclaim() -> list[Figure]:
    """Measure reclaim where all queues hold their shares: 1,683 running pods, 2,300 waiting one-pod groups."""
    return _figures("reclaim, 1,683 running and 2,300 waiting", _settled(1683, 2300), queue="a")


def shares() -> list[Figure]:
    """Measure preempt where drf judges alone: 1,683 running one-pod jobs, 500 waiting ones."""
    return _figures("drf alone, 1,683 running and 500 waiting", _alone(1683, 500))


def budgets() -> list[Figure]:
    """Measure preempt and reclaim beside budgets that are used up: 200 nodes, 100 waiting gangs."""
    return _figures("budgets used up, 200 nodes and 100 gangs", _budgets(200, 100), priorityClassName="high")


def everything() -> list[Any]:
    """Return all measurements."""
    return [reclaim, shares, budgets]
