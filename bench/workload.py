"""The workloads that come with the program, as lines of `make bench`; `pumice bench` tells more of each."""

from __future__ import annotations

from bench.cases import Figure
from pumice.bench import finding, measuring

HUGE = ("million-pods",)
"""Left out unless it is named: `pumice bench million-pods`."""


def figures() -> list[Figure]:
    """Measure every workload but the largest."""
    return [figure(name) for name in finding.names() if name not in HUGE]


def figure(name: str) -> Figure:
    """Measure one workload, beside the plain scan."""
    workload = finding.find(name)
    found = measuring.run(workload)
    expected = workload.expect.pods_per_second
    note = f"{found.placed:,} pods placed, {found.cpu_us_per_pod:.0f} µs of processor time each; cycle {found.cycle_ms_p50:.0f} ms"
    return Figure(
        name=found.name,
        value=found.pods_per_second,
        unit="pods/s",
        target=f">= {expected:.0f}" if expected else "",
        holds=not found.missed,
        floor=found.floor_pods_per_second,
        floor_unit="pods/s",
        note="; ".join([note, *(f"missed {missed}" for missed in found.missed)]),
    )
