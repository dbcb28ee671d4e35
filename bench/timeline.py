"""Figures of planned starts: what plugin timeline adds to a cycle where many jobs wait for full nodes."""

from __future__ import annotations

import statistics
import time
from typing import Any

from bench import worlds
from bench.cases import Figure
from pumice.api import timestamp

NODES, JOBS, MORE, SIZE = 1000, 497, 3, 4  # no more wait than timeline.maxJobs
PLAIN = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
PLANNED = PLAIN.replace("{name: gang}", '{name: gang}, {name: timeline, arguments: {timeline.policy: "POLICY"}}')


def _world(config: str) -> worlds.Bench:
    """Return nodes full of pods that end one after the other, and gangs of four nodes each that wait."""
    bench = worlds.Bench(config)
    bench.feed(worlds.node(i, cpu=8, memory=32) for i in range(NODES))
    for i in range(NODES):
        bench.feed([_estimated(worlds.group(f"run-{i}", 1, phase="Running"), 600 + 7 * i)])
        pod = worlds.pod(f"run-{i}", 0, "8", "8Gi", f"node-{i:05d}")
        pod["status"]["startTime"] = timestamp.format_timestamp(worlds.START)
        bench.feed([pod])
    for i in range(JOBS):
        bench.feed([_estimated(worlds.group(f"wait-{i}", SIZE), 600 + i)])
        bench.feed(worlds.pod(f"wait-{i}", member, "6", "8Gi") for member in range(SIZE))
    bench.apply()
    return bench


def _estimated(group: dict[str, Any], seconds: int) -> dict[str, Any]:
    group["metadata"].setdefault("annotations", {})["pumice.dev/estimate"] = f"{seconds}s"
    return group


def _changed(bench: worlds.Bench, number: int) -> float:
    """Let one more job come, and return what the cycle takes, in milliseconds of the processor."""
    bench.time += 1_000_000
    bench.feed([_estimated(worlds.group(f"more-{number}", SIZE), 900)])
    bench.feed(worlds.pod(f"more-{number}", member, "6", "8Gi") for member in range(SIZE))
    return _cycle(bench)


def _cycle(bench: worlds.Bench) -> float:
    """Return what a cycle takes, in milliseconds of the processor."""
    start = time.process_time()
    bench.scheduler.cycle()
    return (time.process_time() - start) * 1000


def _measure(config: str) -> tuple[float, float, float]:
    """Return what the first cycle takes, one in which a job came, and one in which nothing did."""
    bench = _world(config)
    first = _cycle(bench)
    bench.scheduler.cycle()
    changed = statistics.median(_changed(bench, number) for number in range(MORE))
    bench.scheduler.cycle()
    return first, changed, statistics.median(_cycle(bench) for _ in range(3))


def figures() -> list[Figure]:
    """Measure what both policies add to a cycle with 500 blocked gangs at 1,000 nodes."""
    _, plain, idle = _measure(PLAIN)
    found = []
    for policy in ("easy", "conservative"):
        first, changed, unchanged = _measure(PLANNED.replace("POLICY", policy))
        added = changed - plain
        note = f"{changed:.0f} ms with, {plain:.0f} ms without; all at once: {first:.0f} ms; nothing changed: {unchanged:.2f} ms with, {idle:.2f} ms without; processor time"
        name = f"timeline, {policy}: added to a cycle, 500 blocked gangs, 1,000 nodes"
        found.append(Figure(name, added, "ms", "<= 100", added <= 100, note=note))
    return found
