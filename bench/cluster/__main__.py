"""Run the measurements on a real API server: `python -m bench.cluster [--json FILE] [--peers] [-k TEXT]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import pumice
from bench.__main__ import line
from bench.cluster import (
    controller_load,
    jobs,
    latency,
    load,
    outside,
    peer_waiting,
    peers,
    rates,
    recording,
    starting,
    steady,
    waiting,
)
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from testbed import provide
from testbed.server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.cases import Figure

NODES = 1000
CRDS = Path(__file__).resolve().parents[2] / "deploy" / "crds"


def main() -> int:
    """Measure, print, and write the report if asked to."""
    parser = argparse.ArgumentParser(prog="make bench-cluster")
    parser.add_argument("--json", type=Path, help="write the figures to a file too")
    parser.add_argument("--peers", action="store_true", help="run kube-scheduler on the same pods")
    parser.add_argument("-k", dest="text", default="", help="only measurements whose name holds this text")
    options = parser.parse_args()
    if provide.binaries() is None:
        print(f"there is no real API server: {provide.HOW}", file=sys.stderr)
        return 1
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, pumice {pumice.__version__}"
    )
    print(f"machine: {machine}; etcd, kube-apiserver and the scheduler share it\n", flush=True)
    figures: list[Figure] = []
    with ApiServer() as server, tempfile.TemporaryDirectory() as folder:
        server.crds(CRDS)
        for name, measure in _measurements(server, Path(folder), peers_too=options.peers).items():
            if options.text in name:
                for figure in measure():
                    figures.append(figure)
                    print(line(figure), flush=True)
    if options.json:
        options.json.write_bytes(msgspec.json.encode({"machine": machine, "figures": figures}))
    return 0


def _measurements(server: ApiServer, folder: Path, *, peers_too: bool) -> dict[str, Callable[[], list[Figure]]]:
    connected = connection.load(str(server.kubeconfig))
    kubeconfig = Path(server.kubeconfig)
    starting.environment()  # made here, so that it costs no measured start anything
    _tell(f"{NODES:,} nodes are registered")
    asyncio.run(_prepare(connected))
    made: dict[str, Callable[[], list[Figure]]] = {
        "start": lambda: [starting.first_bind(connected, kubeconfig, folder)],
        "latency": lambda: latency.measure(connected, kubeconfig, folder, peers_too=peers_too),
        "steady": lambda: steady.measure(connected, kubeconfig, folder, server.pids, _tell, peers_too=peers_too),
        "rates": lambda: rates.measure(connected, _tell),
        "outside": lambda: outside.measure(connected, kubeconfig, folder, server.pids, _tell),
        "waiting": lambda: waiting.measure(connected, _tell),
        "jobs": lambda: jobs.measure(connected, kubeconfig, folder, _tell, server.pids),
        "controllers": lambda: controller_load.measure(connected, kubeconfig, folder, _tell),
        "recording": lambda: recording.measure(connected, kubeconfig, folder, _tell),
    }
    if peers_too:
        made["waiting peers"] = lambda: peer_waiting.measure(connected, kubeconfig, folder, _tell)
        made["first bind"] = lambda: outside.first_binds(connected, kubeconfig, folder, _tell)
        made["peers"] = lambda: [peers.measure(connected, kubeconfig, folder, _tell)]
    made["many pods"] = lambda: starting.many_pods(connected, kubeconfig, folder, _tell)
    return made


async def _prepare(connected: connection.Connection) -> None:
    async with Client(connected) as client:
        await load.prepare(client, NODES)


def _tell(text: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
