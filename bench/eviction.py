"""Figures of eviction: many victims, one large gang, a full node group, a cluster where nobody may be taken, and many holds."""

from __future__ import annotations

import time
from typing import Any

from bench import worlds
from bench.cases import Figure, seconds

CONFIG = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""

NODE_GROUPS = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodegroup}, {name: nodeorder}]
"""


def _class(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _full(nodes: int, per_node: int, *, preemptable: bool = True) -> worlds.Bench:
    """Return a cluster full of small pods of low priority, in elastic jobs of fifty."""
    bench = worlds.Bench(CONFIG)
    bench.feed([_class("low", 1), _class("high", 100)])
    bench.feed(worlds.node(i, cpu=per_node, memory=4 * per_node) for i in range(nodes))
    marks = {} if preemptable else {"volcano.sh/preemptable": "false"}
    count = 0
    for g in range(nodes * per_node // 50):
        bench.feed([worlds.group(f"low-{g}", 1, phase="Running", priorityClassName="low")])
        for i in range(50):
            pod = worlds.pod(f"low-{g}", i, "1", "1Gi", f"node-{count % nodes:05d}")
            pod["metadata"]["annotations"].update(marks)
            bench.feed([pod])
            count += 1
    return bench


def thousand_victims() -> Figure:
    """Preempt 1,000 pods out of 10,000 on 1,000 full nodes, for 50 gangs of 20."""
    bench = _full(1000, 10)
    for g in range(50):
        bench.feed([worlds.group(f"high-{g}", 20, priorityClassName="high")])
        bench.feed(worlds.pod(f"high-{g}", i, "1", "1Gi") for i in range(20))
    bench.apply()
    start = time.process_time()
    bench.decide()
    spent = time.process_time() - start
    victims = len(bench.world.evictions)
    return Figure(
        "preempt 1,000 of 10,000 pods on 1,000 full nodes",
        spent,
        "s",
        "<= 0.5",
        spent <= 0.5,
        note=f"{victims} pods evicted, 1000 are needed; processor time",
    )


def one_gang() -> Figure:
    """Make room for one gang of 500 that needs 500 victims on 500 of 5,000 nodes."""
    bench = worlds.Bench(CONFIG)
    bench.feed([_class("low", 1), _class("high", 100)])
    bench.feed(worlds.node(i, cpu=8, memory=32) for i in range(5000))
    bench.feed([worlds.group("low", 0, phase="Running", priorityClassName="low")])
    bench.feed([worlds.group("equal", 1, phase="Running", priorityClassName="high")])
    bench.feed(worlds.pod("low", i, "8", "8Gi", f"node-{i * 10:05d}") for i in range(500))
    bench.feed(worlds.pod("equal", i, "8", "8Gi", f"node-{i:05d}") for i in range(5000) if i % 10)
    bench.feed([worlds.group("gang", 500, priorityClassName="high")])
    bench.feed(worlds.pod("gang", i, "8", "8Gi") for i in range(500))
    bench.apply()
    spent = seconds(bench.decide)
    victims = len(bench.world.evictions)
    return Figure(
        "one gang of 500 needs 500 victims on 500 of 5,000 nodes",
        spent,
        "s",
        "<= 1",
        spent <= 1,
        note=f"{victims} pods evicted",
    )


def full_node_group() -> Figure:
    """Reclaim for 5 gangs of 4 whose queue has used up its limit in one of two node groups, 500 nodes in all."""
    bench = _node_groups(500)
    for g in range(5):
        bench.feed([worlds.group(f"new-{g}", 4, "asking")])
        bench.feed(worlds.pod(f"new-{g}", i, "1", "1Gi") for i in range(4))
    bench.apply()
    start = time.process_time()
    bench.decide()
    spent = time.process_time() - start
    return Figure(
        "reclaim for 5 gangs of 4 with one node group full, 500 nodes",
        spent,
        "s",
        "<= 0.07",
        spent <= 0.07,
        note=f"{len(bench.world.evictions)} pods evicted, 20 are needed; processor time",
    )


def _node_groups(nodes: int) -> worlds.Bench:
    """Return a cluster of two node groups full of small pods of one queue, where another has a pod on each node of the first, which is all it may have there."""
    bench = worlds.Bench(NODE_GROUPS)
    half = nodes // 2
    affinity = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["full", "open"]}}
    asking = worlds.queue("asking", deserved={"cpu": str(nodes)}, affinity=affinity)
    limits = f'{{"full": {{"cpu": "{half}"}}}}'
    asking["metadata"]["annotations"] = {"volcano.sh/nodegroup-resource-limits": limits}
    bench.feed([asking, worlds.queue("rich", deserved={"cpu": "1"}, affinity=affinity)])
    for i in range(nodes):
        node = worlds.node(i, cpu=10, memory=40)
        node["metadata"]["labels"]["volcano.sh/nodegroup-name"] = "full" if i < half else "open"
        bench.feed([node])
    bench.feed([worlds.group("own", 1, "asking", "Running")])
    bench.feed(worlds.pod("own", i, "1", "1Gi", f"node-{i:05d}") for i in range(half))
    places = [i for i in range(nodes) for _ in range(9 if i < half else 10)]
    for g in range(0, len(places), 50):
        bench.feed([worlds.group(f"rich-{g}", 1, "rich", "Running")])
        here = enumerate(places[g : g + 50])
        bench.feed(worlds.pod(f"rich-{g}", i, "1", "1Gi", f"node-{place:05d}") for i, place in here)
    return bench


def nobody() -> Figure:
    """Run a cycle with 10,000 pending jobs on a cluster where nobody may be evicted."""
    bench = _full(1000, 10, preemptable=False)
    for g in range(10_000):
        bench.feed([worlds.group(f"high-{g}", 1, priorityClassName="high")])
        bench.feed([worlds.pod(f"high-{g}", 0, "1", "1Gi")])
    first = seconds(bench.scheduler.cycle)
    bench.cache.cluster.changed += 1
    bench.scheduler.cycle()

    def again() -> float:
        bench.cache.cluster.changed += 1
        return seconds(bench.scheduler.cycle)

    spent = min(again() for _ in range(3))
    return Figure(
        "cycle with 10,000 pending jobs and no victims",
        spent,
        "s",
        "<= 0.3",
        spent <= 0.3,
        note=f"the first cycle, which applies all events and writes all statuses, took {first:.2f} s",
    )


def many_holders() -> Figure:
    """Ask for 60 claimants of different sizes whether they may take over the room that is held for 150 others."""
    bench = worlds.Bench(CONFIG)
    bench.feed([_class("low", 1), _class("high", 100)])
    bench.feed(worlds.node(i, cpu=4, memory=16) for i in range(150))
    for g in range(150):
        bench.feed([worlds.group(f"low-{g}", 0, phase="Running", priorityClassName="low")])
        bench.feed([worlds.pod(f"low-{g}", 0, "4", "1Gi", f"node-{g:05d}")])
        bench.feed([worlds.group(f"high-{g}", 1, priorityClassName="high")])
        bench.feed([worlds.pod(f"high-{g}", 0, "4", "1Gi")])
    bench.apply()
    bench.scheduler.cycle()
    for g in range(60):
        bench.feed([worlds.group(f"more-{g}", 1, priorityClassName="high")])
        bench.feed([worlds.pod(f"more-{g}", 0, f"{1000 + g}m", "1Gi")])
    bench.apply()
    start = time.process_time()
    bench.scheduler.cycle()
    spent = time.process_time() - start
    held = len(bench.scheduler.reservations.holds)
    return Figure(
        "cycle with 150 holds and 60 claimants that cannot take them over",
        spent,
        "s",
        "<= 1",
        spent <= 1,
        note=f"{held} pods hold room; processor time",
    )


def everything() -> list[Any]:
    """Return all measurements."""
    return [thousand_victims, one_gang, full_node_group, nobody, many_holders]
