"""What plugins cost that are configured and have nothing to do: cards that nobody asks for, cells and measurements that no node has, hours that no node keeps."""

from __future__ import annotations

import statistics

from msgspec import structs

from bench.cases import Figure
from pumice.bench import finding, measuring

ROUNDS = 3
WORKLOADS = ("500x20", "10000x1")
_TIERS = """
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
WITHOUT = f'actions: "enqueue, allocate, backfill, shuffle"{_TIERS}'
WITH = f"""{WITHOUT}- plugins:
  - {{name: deviceshare, arguments: {{deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: 10}}}}
  - {{name: numa-aware}}
  - {{name: tdm, arguments: {{tdm.revocable-zone.rz1: "10:00-21:00"}}}}
  - {{name: usage}}
  - {{name: rescheduling}}
"""


def figures() -> list[Figure]:
    """Compare the processor time of equal worlds with these plugins and without; what was measured one after the other is compared."""
    return [_figure(name) for name in WORKLOADS]


def _figure(name: str) -> Figure:
    parts = []
    for _ in range(ROUNDS):
        without, with_them = (_seconds(name, text) for text in (WITHOUT, WITH))
        parts.append((with_them / without, with_them, without))
    ratio, with_them, without = statistics.median(each[0] for each in parts), parts[-1][1], parts[-1][2]
    note = f"{without:.3f} s without, {with_them:.3f} s with them in the last of {ROUNDS} rounds"
    title = f"{name}: deviceshare, numa-aware, tdm, usage, rescheduling configured and unused"
    return Figure(title, ratio, "x", "<= 1.1", ratio <= 1.1, note=note)


def _seconds(name: str, configuration: str) -> float:
    found = measuring.run(structs.replace(finding.find(name), configuration=configuration), runs=1)
    return found.cpu_us_per_pod * found.placed / 1e6
