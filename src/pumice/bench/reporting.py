"""The figures of workloads as text."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import msgspec
import numpy as np

import pumice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.bench.measuring import Result

WIDE = (
    ("pods/s", 10),
    ("µs/pod", 8),
    ("floor/s", 9),
    ("ratio", 7),
    ("cycle p50", 10),
    ("p99 ms", 8),
    ("ingest", 8),
    ("idle", 7),
    ("1 pod", 7),
    ("B/pod", 7),
    ("B/node", 7),
    ("GB", 6),
)


def machine() -> dict[str, str | int | float]:
    """Say where figures were taken, and what else the machine had to do."""
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count() or 0,
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pumice": pumice.__version__,
    }


def heading(width: int) -> list[str]:
    """Return the lines above the table: where, and the names of the columns."""
    where = machine()
    told = f"{where['machine']}, {where['cores']} cores, load {where['load']:.1f}, Python {where['python']}, numpy {where['numpy']}, pumice {where['pumice']}"
    return [f"machine: {told}", "", f"{'workload':<{width}}" + "".join(f"{name:>{size}}" for name, size in WIDE)]


def line(result: Result, width: int) -> str:
    """Return the line of a workload, and what it missed below."""
    ratio = result.pods_per_second / result.floor_pods_per_second if result.floor_pods_per_second else 0.0
    memory = result.memory
    cells = (
        f"{result.pods_per_second:,.0f}",
        f"{result.cpu_us_per_pod:,.0f}",
        f"{result.floor_pods_per_second:,.0f}",
        f"{ratio:.2f}x",
        f"{result.cycle_ms_p50:,.1f}",
        f"{result.cycle_ms_p99:,.1f}",
        f"{result.ingest_ms_p50:,.1f}",
        f"{result.idle_ms:.2f}",
        f"{result.one_pod_ms:.2f}",
        f"{memory.per_pod:,.0f}" if memory.per_pod else "-",
        f"{memory.per_node:,.0f}",
        f"{memory.peak / 1e9:.2f}",
    )
    told = f"{result.name:<{width}}" + "".join(f"{cell:>{size}}" for cell, (_, size) in zip(cells, WIDE, strict=True))
    return "\n".join([told, *(f"  missed: {missed}" for missed in result.missed)])


def details(result: Result) -> str:
    """Return what was counted, and how long the start took."""
    counted = ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in _counted(result) if value)
    start = f"{result.listed:,} objects listed and taken in within {result.start_seconds:.1f} s, {result.decode_us_per_object:.0f} µs each to decode"
    return f"  placed {result.placed:,}; {start}\n  work done: {counted}"


def _counted(result: Result) -> list[tuple[str, int]]:
    return list(msgspec.structs.asdict(result.counters).items())


def as_json(results: Sequence[Result]) -> bytes:
    """Return everything as JSON."""
    return msgspec.json.format(msgspec.json.encode({"machine": machine(), "workloads": list(results)}), indent=2)
