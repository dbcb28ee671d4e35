"""Figures of network topology: gangs in blocks, a large gang with a wish or with none, gangs that others make room for, and what the plugin costs when nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import cases, floor, worlds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES = 5000
RACK = 16
BLOCK = 16  # racks
GANGS, SIZE = 100, 64
LARGE = 4096

_TIERS = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}%s]
"""
STARVING = 8
VICTIMS = 20_000
WITHOUT = _TIERS % ""
WITH = _TIERS % ", {name: network-topology-aware}"


def hyper_node(name: str, tier: int, kind: str, members: list[str]) -> dict[str, Any]:
    """Return a HyperNode with members by name."""
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": listed},
    }


def tree() -> Iterator[dict[str, Any]]:
    """Give 5,000 nodes in racks of 16, blocks of 16 racks, and one root over all blocks."""
    racks = -(-NODES // RACK)
    blocks = -(-racks // BLOCK)
    for i in range(NODES):
        yield worlds.node(i)
    for r in range(racks):
        nodes = [f"node-{i:05d}" for i in range(r * RACK, min(NODES, (r + 1) * RACK))]
        yield hyper_node(f"rack-{r:03d}", 1, "Node", nodes)
    for b in range(blocks):
        below = [f"rack-{r:03d}" for r in range(b * BLOCK, min(racks, (b + 1) * BLOCK))]
        yield hyper_node(f"block-{b:02d}", 2, "HyperNode", below)
    yield hyper_node("root", 3, "HyperNode", [f"block-{b:02d}" for b in range(blocks)])


def _decide(size: int, gangs: int, cpu: str, config: str, **topology: Any) -> float:
    bench = worlds.Bench(config)
    bench.feed(tree())
    for g in range(gangs):
        spec: dict[str, Any] = {"networkTopology": topology} if topology else {}
        bench.feed([worlds.group(f"gang-{g}", size, **spec)])
        bench.feed(worlds.pod(f"gang-{g}", i, cpu, "2Gi") for i in range(size))
    bench.apply()
    spent = cases.seconds(bench.decide)
    if len(bench.world.binds) != size * gangs:
        raise RuntimeError(f"{len(bench.world.binds)} of {size * gangs} pods were bound")
    return spent


def blocks() -> list[cases.Figure]:
    """Measure 100 gangs of 64 equal pods, each limited to a block: small pods, of which a rack holds a gang, and large ones, which fill nodes."""
    figures = []
    for what, cpu in (("a rack holds it", "1"), ("it needs two racks", "32")):
        best = min(_decide(SIZE, GANGS, cpu, WITH, mode="hard", highestTierAllowed=2) for _ in range(3))
        base, placed = floor.scan_per_pod(
            NODES, (64_000, 256 * cases.GI, 110), [(int(cpu) * 1000, 2 * cases.GI, 1)] * (SIZE * GANGS // 10)
        )
        rate = GANGS * SIZE / best
        name = f"100 gangs of 64 equal pods, each limited to a block; {what}"
        figures.append(cases.Figure(name, rate, "pods/s", ">= 3000", rate >= 3000, placed / base, "pods/s"))
    return figures


def large() -> list[cases.Figure]:
    """Measure one gang of 4,096 pods with a wish, of small pods and of pods that fill a node."""
    figures = []
    for what, cpu in (("in one block", "1"), ("all over the cluster", "64")):
        best = min(_decide(LARGE, 1, cpu, WITH, mode="soft") for _ in range(3))
        base = min(_decide(LARGE, 1, cpu, WITHOUT) for _ in range(3))
        name = f"one soft gang of 4,096 pods, {what}"
        note = "the floor is the same gang without the plugin"
        figures.append(cases.Figure(name, best, "s", "<= 1.5", best <= 1.5, base, "s", note))
    return figures


def _decide_later(cpu: str, config: str) -> float:
    """Return the seconds for a gang of 4,096 pods that says nothing of topology, on a scheduler that has placed a pod before."""
    bench = worlds.Bench(config)
    bench.feed(tree())
    for gang, size in (("first", 1), ("gang", LARGE)):
        bench.feed([worlds.group(gang, size)])
        bench.feed(worlds.pod(gang, i, cpu, "2Gi") for i in range(size))
        bench.apply()
        spent = cases.seconds(bench.decide)
    if len(bench.world.binds) != LARGE + 1:
        raise RuntimeError(f"{len(bench.world.binds)} of {LARGE + 1} pods were bound")
    return spent


def ordinary() -> list[cases.Figure]:
    """Measure gangs of 4,096 pods that say nothing of topology, small pods and pods that fill a node, beside the same without the plugin."""
    figures = []
    for what, cpu, most in (("without topology", "1", 1.5), ("that fill a node, without topology", "64", 1.2)):
        runs = [(_decide_later(cpu, WITH), _decide_later(cpu, WITHOUT)) for _ in range(5)]
        best, base = (min(column) for column in zip(*runs, strict=True))
        name = f"one gang of 4,096 pods {what}, the plugin being on"
        note = "the floor is the same gang without the plugin"
        figures.append(cases.Figure(name, best, "s", f"<= {most}x", best <= most * base, base, "s", note))
    return figures


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _evict(action: str, config: str, **topology: Any) -> float:
    """Return the seconds for each of eight gangs of 64 that make room among 20,000 pods of elastic jobs, on a full cluster."""
    bench = worlds.Bench(config.replace("allocate", f"allocate, {action}"))
    bench.feed([_priority_class("low", 1), _priority_class("high", 100), worlds.queue("other")])
    bench.feed(tree())
    theirs = "default" if action == "gangpreempt" else "other"
    for g in range(VICTIMS // 50):
        bench.feed([worlds.group(f"low-{g}", 1, theirs, phase="Running", priorityClassName="low")])
        pods = range(g * 50, (g + 1) * 50)
        bench.feed(worlds.pod(f"low-{g}", i, "16", "16Gi", f"node-{i % NODES:05d}") for i in pods)
    spec: dict[str, Any] = {"networkTopology": topology} if topology else {}
    for g in range(STARVING):
        bench.feed([worlds.group(f"high-{g}", SIZE, priorityClassName="high", **spec)])
        bench.feed(worlds.pod(f"high-{g}", i, "16", "16Gi") for i in range(SIZE))
    bench.apply()
    spent = cases.seconds(bench.decide)
    if len(bench.world.evictions) != SIZE * STARVING:
        raise RuntimeError(f"{len(bench.world.evictions)} pods were evicted, {SIZE * STARVING} are needed")
    return spent / STARVING


def evicting() -> list[cases.Figure]:
    """Measure what a starving gang of 64 costs that makes room in one of twenty blocks, or of 313 racks, among 20,000 victims."""
    figures = []
    for action in ("gangpreempt", "gangreclaim"):
        base = min(_evict(action, WITHOUT) for _ in range(2))
        for tier, where in ((2, "block"), (1, "rack")):
            best = min(_evict(action, WITH, mode="hard", highestTierAllowed=tier) for _ in range(2))
            name = f"{action} for a gang of 64 in one {where}, 20,000 victims on 5,000 nodes"
            note = "for each of eight gangs; the floor is the same without a limit and without the plugin"
            figures.append(cases.Figure(name, best, "s", "<= 0.15", best <= 0.15, base, "s", note))
    return figures


def refused() -> cases.Figure:
    """Measure what a gang of 64 unequal pods costs that no rack has room for, on nodes that are two thirds full."""
    bench = worlds.Bench(WITH)
    bench.feed(tree())
    bench.feed([worlds.group("old", 1, phase="Running")])
    bench.feed(worlds.pod("old", i, "40", "10Gi", f"node-{i:05d}") for i in range(NODES))
    for g in range(STARVING):
        bench.feed([worlds.group(f"gang-{g}", SIZE, networkTopology={"mode": "hard", "highestTierAllowed": 1})])
        bench.feed(worlds.pod(f"gang-{g}", i, f"{8 + i % 8}", f"{2 + i % 5}Gi") for i in range(SIZE))
    bench.apply()
    spent = cases.seconds(bench.decide) / STARVING
    if bench.world.binds:
        raise RuntimeError(f"{len(bench.world.binds)} pods were bound where no rack has room for a gang")
    return cases.Figure("a gang of 64 unequal pods that no rack has room for", spent, "s", "<= 0.05", spent <= 0.05)


def idle() -> list[cases.Figure]:
    """Measure an idle cycle, skipped and run in full, with the plugin and without it, beside 20,000 running pods of gangs with a limit."""
    benches = {name: _running(config) for name, config in (("with", WITH), ("without", WITHOUT))}
    quiet, full = dict.fromkeys(benches, 1.0), dict.fromkeys(benches, 1.0)
    for _ in range(200):
        # Turn by turn, so that whatever else the machine does hits both alike.
        for name, bench in benches.items():
            quiet[name] = min(quiet[name], cases.seconds(bench.scheduler.cycle))
            bench.cache.cluster.changed += 1
            full[name] = min(full[name], cases.seconds(bench.scheduler.cycle))
            bench.scheduler.cycle()
    figures = []
    for what, spent in (("an idle cycle", quiet), ("the same cycle run in full", full)):
        holds = spent["with"] <= 1.15 * spent["without"]
        figures.append(
            cases.Figure(
                f"{what}, 5,000 nodes in three tiers",
                spent["with"] * 1000,
                "ms",
                "<= without",
                holds,
                spent["without"] * 1000,
                "ms",
                "the floor is the same cycle without the plugin; hundredths of a millisecond are noise",
            )
        )
    return figures


def _running(config: str) -> worlds.Bench:
    bench = worlds.Bench(config)
    bench.feed(tree())
    for g in range(312):
        spec: dict[str, Any] = {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}}
        bench.feed([worlds.group(f"gang-{g}", SIZE, phase="Running", **spec)])
        bench.feed(worlds.pod(f"gang-{g}", i, "1", "1Gi", f"node-{g * 16 + i % 16:05d}") for i in range(SIZE))
    bench.apply()
    bench.scheduler.cycle()
    bench.scheduler.cycle()
    return bench


def everything() -> list[Callable[[], cases.Figure | list[cases.Figure]]]:
    """Return all measurements, in the order in which they are shown."""
    return [blocks, large, ordinary, refused, evicting, idle]
