"""The same pods scheduled by kube-scheduler, for comparison; it knows no gangs, so its pods have none."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

from bench.cases import Figure
from bench.cluster import load
from bench.cluster.rates import GANGS, PODS, SIZE
from pumice.api import kinds
from pumice.kube.calls.client import Client
from testbed import provide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pumice.kube.access.connection import Connection

ROUNDS = 3
SCHEDULER = "default-scheduler"


def measure(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> Figure:
    """Time kube-scheduler from the first to the last bound pod, several times."""
    rates = []
    for number in range(ROUNDS):
        rates.append(asyncio.run(_round(connection, kubeconfig, folder / f"kube-scheduler-{number}.log")))
        tell(f"round {number + 1} of {ROUNDS}: kube-scheduler {rates[-1]:,.0f} pods/s")
    note = "for comparison, without gangs; its client limits lifted, counted from its start being ready"
    name = f"{PODS:,} pods by kube-scheduler"
    return Figure(name=name, value=statistics.median(rates), unit="pods/s", target="-", holds=True, note=note)


async def _round(connection: Connection, kubeconfig: Path, log: Path) -> float:
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        await load.gangs(client, GANGS, SIZE, SCHEDULER)
        seen = asyncio.create_task(_all_bound(client))
        await asyncio.sleep(0.5)
        with running(kubeconfig, log):
            first, last = await asyncio.wait_for(seen, 300)
        await load.clear(client)
    return (PODS - 1) / (last - first)


async def _all_bound(client: Client) -> tuple[float, float]:
    """Watch bound pods appear; returns when the first and the last one did."""
    times: list[float] = []
    query: dict[str, str | int | bool] = {"fieldSelector": "spec.nodeName!=", "resourceVersion": "0"}
    async for line in client.stream(kinds.POD, namespace=load.NAMESPACE, query=query, silence=300):
        if b'"ADDED"' in line[:40]:
            times.append(time.perf_counter())
            if len(times) >= PODS:
                break
    return times[0], times[-1]


@contextlib.contextmanager
def running(kubeconfig: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run kube-scheduler for a while, its client limits lifted."""
    program = provide.program("kube-scheduler")
    if program is None:
        raise RuntimeError(f"there is no kube-scheduler: {provide.how('kube-scheduler')}")
    command = [str(program), "--kubeconfig", str(kubeconfig), "--authentication-kubeconfig", str(kubeconfig)]
    command += ["--authorization-kubeconfig", str(kubeconfig), "--leader-elect=false", "--secure-port=0"]
    command += ["--kube-api-qps=5000", "--kube-api-burst=5000"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)  # noqa: S603  the program we built
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)
