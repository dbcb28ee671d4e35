"""Figures of queues in trees: what it costs to keep branches in order while every job takes its turn."""

from __future__ import annotations

import gc
import time
from typing import Any

from bench import cases, worlds

QUEUES = 1000
BRANCHES = 10
JOBS = 10_000
NODES = 400

_TIERS = """
actions: "allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [%s{name: predicates}, {name: binpack}]
"""
PLAIN = _TIERS % ""
HIERARCHICAL_DRF = _TIERS % "{name: drf, enableHierarchy: true}, "
TREE = _TIERS % "{name: capacity, enableHierarchy: true}, "


def _queue(number: int) -> dict[str, Any]:
    """Describe a queue that both plugins find in one of ten branches."""
    branch = f"branch-{number % BRANCHES}"
    made = worlds.queue(f"queue-{number:04d}", parent=branch, deserved={"cpu": str(5 + number % 7)})
    made["metadata"]["annotations"] = {
        "volcano.sh/hierarchy": f"root/{branch}/queue-{number:04d}",
        "volcano.sh/hierarchy-weights": f"1/{1 + number % BRANCHES}/1",
    }
    return made


def forest(config: str) -> worlds.Bench:
    """Build 1,000 queues in ten branches with 10,000 jobs of one pod, all of which find room."""
    bench = worlds.Bench(config)
    bench.feed(worlds.node(i) for i in range(NODES))
    bench.feed(worlds.queue(f"branch-{b}", deserved={"cpu": "1000"}) for b in range(BRANCHES))
    bench.feed(_queue(number) for number in range(QUEUES))
    for number in range(JOBS):
        bench.feed([worlds.group(f"job-{number}", 1, f"queue-{number % QUEUES:04d}", "Inqueue")])
        bench.feed([worlds.pod(f"job-{number}", 0, str(1 + number % 3), "1Gi")])
    bench.apply()
    return bench


def figures() -> list[cases.Figure]:
    """Measure a cycle in which 10,000 jobs take turns, beside the same cycle without an order of queues, in processor time."""
    base = _decided(PLAIN)
    return [
        cases.Figure(name, spent, "s", "<= 3 times the cycle without", spent <= 3 * base, base, "s")
        for name, spent in (
            ("hierarchical drf: 1,000 queues in 10 branches, 10,000 jobs placed in turn", _decided(HIERARCHICAL_DRF)),
            ("capacity tree: 1,000 queues in 10 branches, 10,000 jobs placed in turn", _decided(TREE)),
        )
    ]


def _decided(config: str) -> float:
    bench = forest(config)
    gc.collect()  # the forests before it are not its rubbish
    start = time.process_time()
    bench.decide()
    spent = time.process_time() - start
    if len(bench.world.binds) != JOBS:
        raise RuntimeError(f"{len(bench.world.binds)} of {JOBS} pods were bound")
    return spent
