"""The work that small versions of the workloads cost, to be compared with what is written down: `python -m bench.counters` writes it anew."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from pumice.bench import finding, measuring

FILE = Path(__file__).resolve().parents[1] / "tests" / "bench" / "counters.json"
HOW = "make counters"
PART = {"million-pods": 0.001}
"""How much smaller each is made; a hundredth if nothing is said here."""


def counted(name: str) -> dict[str, int]:
    """Run a small version of a workload once, and return what it counted."""
    workload = finding.find(name).scaled(PART.get(name, 0.01))
    found: dict[str, int] = msgspec.to_builtins(measuring.run(workload, runs=0).counters)
    return found


def main() -> None:
    """Write down what every workload costs today."""
    every = {name: counted(name) for name in finding.names()}
    FILE.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
    print(f"{len(every)} workloads are written to {FILE.name}")


if __name__ == "__main__":
    main()
