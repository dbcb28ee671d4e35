"""The figures that must hold, each with the floor it stands beside."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench import floor, worlds

if TYPE_CHECKING:
    from collections.abc import Callable

GI = 2**30

# The built-in default before there were sharing plugins; their cost is measured against it.
FOUNDATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
SHIPPED = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf, enablePreemptable: false}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""


ROUNDS = 5


class Figure(msgspec.Struct):
    """One measured figure: the value, what it should be, and the floor of the same run."""

    name: str
    value: float
    unit: str
    target: str
    holds: bool
    floor: float | None = None
    floor_unit: str = ""
    note: str = ""


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def decide_one_gang(config: str) -> float:
    """Time deciding one gang of 10,000 equal pods on 1,000 nodes."""
    bench = worlds.Bench(config)
    bench.feed(worlds.node(i) for i in range(1000))
    bench.feed([worlds.group("gang", 10_000)])
    bench.feed(worlds.pod("gang", i, "1", "2Gi") for i in range(10_000))
    return _decide(bench, 10_000)


def decide_many_gangs(config: str) -> float:
    """Time deciding 500 gangs of 20 pods in 20 shapes on 5,000 nodes."""
    shapes = [(f"{500 + 250 * (k % 10)}m", f"{1 + k % 4}Gi") for k in range(20)]
    bench = worlds.Bench(config)
    bench.feed(worlds.node(i) for i in range(5000))
    for g in range(500):
        cpu, memory = shapes[g % 20]
        bench.feed([worlds.group(f"gang-{g}", 20)])
        bench.feed(worlds.pod(f"gang-{g}", i, cpu, memory) for i in range(20))
    return _decide(bench, 10_000)


def _decide(bench: worlds.Bench, expected: int) -> float:
    bench.apply()
    spent = seconds(bench.decide)
    if len(bench.world.binds) != expected:
        raise RuntimeError(f"{len(bench.world.binds)} of {expected} pods were bound")
    return spent


def one_gang() -> list[Figure]:
    """Measure one gang of 10,000 equal pods on 1,000 nodes, with the foundation and with the shipped configuration."""
    times = [(decide_one_gang(FOUNDATION), decide_one_gang(SHIPPED)) for _ in range(ROUNDS)]
    best = min(plain for plain, _ in times)
    base, _ = floor.scan_per_pod(1000, (64_000, 256 * GI, 110), [(1000, 2 * GI, 1)] * 10_000)
    name = "one gang of 10,000 equal pods, 1,000 nodes"
    return [Figure(name, best, "s", "<= 0.5", best <= 0.5, base, "s"), _kept(name, times)]


def many_gangs() -> list[Figure]:
    """Measure 500 gangs of 20 pods, 20 shapes, 5,000 nodes, with the foundation and with the shipped configuration."""
    times = [(decide_many_gangs(FOUNDATION), decide_many_gangs(SHIPPED)) for _ in range(ROUNDS)]
    best = min(plain for plain, _ in times)
    requests = [(500 + 250 * (g % 20 % 10), (1 + g % 20 % 4) * GI, 1) for g in range(500) for _ in range(20)]
    base, placed = floor.scan_per_pod(5000, (64_000, 256 * GI, 110), requests)
    name = "500 gangs of 20 pods, 20 shapes, 5,000 nodes"
    rate = 10_000 / best
    return [
        Figure(name, rate, "pods/s", ">= 10000", rate >= 10_000, placed / base, "pods/s"),
        _kept(name, times),
    ]


def _kept(name: str, times: list[tuple[float, float]]) -> Figure:
    """Say how much of its speed a figure keeps with all plugins of the shipped configuration; the machine may change its speed, so what was measured one after the other is compared."""
    part = statistics.median(plain / shipped for plain, shipped in times)
    best, shipped = (min(column) for column in zip(*times, strict=True))
    note = f"{name}: {best:.3f} s with the foundation's plugins, {shipped:.3f} s with the shipped ones, the median of {len(times)} rounds"
    return Figure("  speed kept with the shipped configuration", part, "x", ">= 0.667", part >= 2 / 3, note=note)


def idle_cycles() -> list[Figure]:
    """Measure an idle cycle, and the same cycle run in full, at 5,000 nodes and 100,000 running pods."""
    bench = worlds.Bench(FOUNDATION)
    bench.feed(worlds.node(i) for i in range(5000))
    for g in range(5000):
        bench.feed([worlds.group(f"job-{g}", 20, phase="Running")])
        bench.feed(worlds.pod(f"job-{g}", i, "1", "1Gi", f"node-{(g * 20 + i) % 5000:05d}") for i in range(20))
    start = seconds(bench.apply)
    first = seconds(bench.scheduler.cycle)
    bench.scheduler.cycle()
    quiet = min(seconds(bench.scheduler.cycle) for _ in range(20))

    def touched() -> float:
        bench.cache.cluster.changed += 1
        return seconds(bench.scheduler.cycle)

    forced = min(touched() for _ in range(20))
    note = f"applying all events took {start:.1f} s, the first cycle {first:.2f} s"
    return [
        Figure(
            "idle cycle, 5,000 nodes, 100,000 running pods",
            quiet * 1000,
            "ms",
            "<= 50",
            quiet <= 0.05,
            note="nothing changed, so the cycle is skipped",
        ),
        Figure("the same cycle run in full", forced * 1000, "ms", "<= 50", forced <= 0.05, note=note),
    ]


def undo() -> Figure:
    """Undo 10,000 operations that were made one by one."""
    bench = worlds.Bench(FOUNDATION)
    bench.feed(worlds.node(i) for i in range(1000))
    bench.feed([worlds.group("gang", 10_000)])
    bench.feed(worlds.pod("gang", i, "1", "2Gi") for i in range(10_000))
    bench.apply()
    engine = bench.scheduler.engine
    session = engine.open(bench.cache.record, bench.cache, number=1, now=bench.time)
    statement = session.statement()
    tasks = list(bench.cache.cluster.jobs["bench/gang"].tasks.values())
    records = bench.cache.cluster.nodes.records
    best = 1.0
    for _ in range(3):
        for i, task in enumerate(tasks):
            statement.allocate([task], [records[i % 1000]])
        best = min(best, seconds(statement.discard))
    return Figure("undo of 10,000 operations made one by one", best * 1000, "ms", "<= 50", best <= 0.05)


def start_up() -> Figure:
    """Start of the command line."""
    program = str(Path(sys.executable).with_name("pumice"))

    def run() -> None:
        subprocess.run([program, "--help"], check=True, stdout=subprocess.DEVNULL)  # noqa: S603  our own program

    bare = min(seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)) for _ in range(5))
    best = min(seconds(run) for _ in range(7))
    return Figure(
        "start of pumice --help", best, "s", "<= 0.15", best <= 0.15, bare, "s", "the floor is a bare interpreter"
    )


def everything() -> list[Callable[[], Figure | list[Figure]]]:
    """Return all measurements, in the order in which they are shown."""
    return [one_gang, many_gangs, idle_cycles, undo, start_up]
