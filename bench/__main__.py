"""Run the benchmarks: `python -m bench [--json FILE] [-k TEXT]`."""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import msgspec
import numpy as np

import pumice
from bench import (
    admission,
    affinity,
    cases,
    claims,
    crowd,
    decision_record,
    eviction,
    explaining,
    fragmentation,
    recording,
    refusals,
    scalars,
    sharing,
    simulate,
    timeline,
    top,
    topology,
    trees,
    unused,
    volumes,
    web,
    workload,
)
from pumice.server.threads import interpreter


def main() -> None:
    """Measure, print, and write the report if asked to."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--json", type=Path, help="write the figures to a file too")
    parser.add_argument("-k", dest="text", default="", help="only measurements whose name holds this text")
    options = parser.parse_args()
    interpreter.tune()  # as the running scheduler does
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}, pumice {pumice.__version__}"
    print(f"machine: {machine}\n")
    print(f"{'':4} {'figure':<78} {'measured':>16} {'target':>10}  {'plain numpy floor':>18} {'ratio':>8}")
    figures: list[cases.Figure] = []
    measures = [
        *cases.everything(),
        sharing.figures,
        trees.figures,
        scalars.per_node,
        *affinity.everything(),
        volumes.local_volumes,
        volumes.shared_volume,
        *eviction.everything(),
        *refusals.everything(),
        crowd.waiting,
        timeline.figures,
        *claims.everything(),
        *topology.everything(),
        *decision_record.everything(),
        *recording.everything(),
        *explaining.everything(),
        *fragmentation.everything(),
        *top.everything(),
        *web.everything(),
        *simulate.everything(),
        *admission.everything(),
        unused.figures,
        workload.figures,
    ]
    for measure in measures:
        if options.text in f"{measure.__module__}.{measure.__name__}":
            found = measure()
            for figure in found if isinstance(found, list) else [found]:
                figures.append(figure)
                print(line(figure), flush=True)
    if options.json:
        options.json.write_bytes(msgspec.json.encode({"machine": machine, "figures": figures}))


def line(figure: cases.Figure) -> str:
    """Write a figure as a line of the table."""
    measured = f"{figure.value:,.3f} {figure.unit}" if figure.value < 1000 else f"{figure.value:,.0f} {figure.unit}"
    base = ratio = ""
    if figure.floor is not None:
        base = (
            f"{figure.floor:,.3f} {figure.floor_unit}"
            if figure.floor < 1000
            else f"{figure.floor:,.0f} {figure.floor_unit}"
        )
        ratio = f"{figure.value / figure.floor:.2f}x"
    mark = "ok" if figure.holds else "MISS"
    line = f"{mark:4} {figure.name:<78} {measured:>16} {figure.target:>10}  {base:>18} {ratio:>8}"
    return f"{line}\n       {figure.note}" if figure.note else line


if __name__ == "__main__":
    main()
