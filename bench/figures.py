"""The figures of `docs/performance.md`, each taken by the command that stands beside it: `python -m bench.figures [NAME…]` takes some anew, without names all but the largest."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pumice.bench import finding

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "bench" / "figures.json"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- figures: written by make figures -->", "<!-- end of figures -->"
HUGE = ("million-pods",)

Measured = dict[str, Any]


def main() -> None:
    """Measure the workloads that are named, and write the table."""
    known: dict[str, Measured] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in sys.argv[1:] or [name for name in finding.names() if name not in HUGE]:
        known[name] = measured(name)
        FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), known), encoding="utf-8")
        print(row(name, known[name]), flush=True)


def measured(name: str) -> Measured:
    """Run the command, and keep what the table shows."""
    program = str(Path(sys.executable).with_name("pumice"))
    done = subprocess.run([program, "bench", name, "-o", "json", "-q"], check=True, capture_output=True, text=True)  # noqa: S603  our own program
    report = json.loads(done.stdout)
    (found,) = report["workloads"]
    where = report["machine"]
    return {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": f"{where['machine']}, {where['cores']} cores",
        "load": round(where["load"], 1),
        "pods_per_second": round(found["pods_per_second"]),
        "floor": round(found["floor_pods_per_second"]),
        "cpu_us_per_pod": round(found["cpu_us_per_pod"]),
        "cycle_ms": round(found["cycle_ms_p50"], 1),
        "ingest_ms": round(found["ingest_ms_p50"], 1),
        "idle_ms": round(found["idle_ms"], 2),
        "one_pod_ms": round(found["one_pod_ms"], 2),
        "bytes_per_pod": round(found["memory"]["per_pod"]),
        "bytes_per_node": round(found["memory"]["per_node"]),
        "gigabytes": round(found["memory"]["peak"] / 1e9, 2),
        "start_seconds": round(found["start_seconds"], 1),
        "listed": found["listed"],
        "missed": found["missed"],
    }


def row(name: str, found: Measured) -> str:
    """Return the line of a workload."""
    ratio = found["pods_per_second"] / found["floor"] if found["floor"] else 0
    weight = f"{found['bytes_per_pod'] / 1000:.1f}" if found["bytes_per_pod"] else "-"
    cells = (
        f"`pumice bench {name}`",
        f"{found['pods_per_second']:,}",
        f"{found['floor']:,}",
        f"{ratio:.2f}",
        f"{found['cycle_ms']:,}",
        f"{found['ingest_ms']:,}",
        f"{found['idle_ms']}",
        f"{found['one_pod_ms']}",
        weight,
        f"{found['gigabytes']}",
        f"{found['date']}, load {found['load']}",
    )
    return f"| {' | '.join(cells)} |"


def table(known: dict[str, Measured]) -> list[str]:
    """Return the lines of the table."""
    names = "command | pods/s | floor | ratio | cycle ms | ingest ms | idle ms | one pod ms | KB/pod | GB | taken on"
    machines = sorted({found["machine"] for found in known.values()})
    return [
        f"Machine: {'; '.join(machines)}.",
        "",
        f"| {names} |",
        "|---" + "|---:" * 9 + "|---|",
        *(row(name, known[name]) for name in sorted(known)),
    ]


def with_table(text: str, known: dict[str, Measured]) -> str:
    """Return the page with the table of today."""
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return "\n".join([f"{head}{BEGIN}", *table(known), f"{END}{tail}"])


if __name__ == "__main__":
    main()
