"""How long a scheduler takes from its start to its first bind, and to hold a large cluster, each as a process of its own."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cases import Figure
from bench.cluster import load
from pumice.api import kinds
from pumice.kube.calls.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pumice.kube.access.connection import Connection

PODS, BYTES = 100_000, 2048
NODES = 5000  # on which a job is explained
STARTS = 3
_PADDING = BYTES - 1200  # what the API server stores of such a pod without any is about 1,200 bytes of JSON


@functools.cache
def environment() -> dict[str, str]:
    """Return an environment in which the process finds its bytecode, as in an installed package; on a machine that writes none, every start would compile everything."""
    folder = tempfile.mkdtemp(prefix="pumice-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    found = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found["PYTHONPYCACHEPREFIX"] = folder
    code = "import pumice.cli.scheduler, pumice.server.process; from pumice.framework import registry; registry.installed()"
    subprocess.run([sys.executable, "-c", code], env=found, check=True)  # noqa: S603  our own command line
    return found


@contextlib.contextmanager
def scheduler(kubeconfig: Path, log: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `pumice scheduler` as users do."""
    command = [
        sys.executable,
        "-c",
        "from pumice.cli import main; main()",
        "scheduler",
        "--kubeconfig",
        str(kubeconfig),
    ]
    command += ["--leader-elect=false", "--kube-api-qps=100000", "--kube-api-burst=100000", "--v=4"]
    command += ["--enable-metrics=false", "--enable-healthz=false", *flags]
    found = environment()
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file, env=found)  # noqa: S603  our own command line
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def first_bind(connection: Connection, kubeconfig: Path, folder: Path) -> Figure:
    """Time from the start of the process to the moment at which a watch sees the first bound pod; the slowest of several starts counts."""

    async def measure() -> float:
        async with Client(connection) as client:
            await load.gangs(client, 1, 10)
            seen = asyncio.create_task(_first(client, {"fieldSelector": "spec.nodeName!=", "resourceVersion": "0"}))
            await asyncio.sleep(0.5)
            started = time.perf_counter()
            with scheduler(kubeconfig, folder / "first-bind.log"):
                await asyncio.wait_for(seen, 60)
                taken = time.perf_counter() - started
            await load.clear(client)
            return taken

    taken = [asyncio.run(measure()) for _ in range(STARTS)]
    note = f"the slowest of {STARTS} starts, the first on a fresh API server: {', '.join(f'{t:.2f}' for t in taken)} s"
    name = "from start to first bind, 1,000 nodes"
    return Figure(name=name, value=max(taken), unit="s", target="<= 3", holds=max(taken) <= 3, note=note)


async def _first(client: Client, query: Mapping[str, str | int | bool]) -> None:
    async for line in client.stream(kinds.POD, namespace=load.NAMESPACE, query=query, silence=60):
        if b'"ADDED"' in line[:40]:
            return


def many_pods(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> list[Figure]:
    """Time from the start of the process until its first cycle has seen 100,000 running pods, and the memory it holds then."""
    size = asyncio.run(_fill(connection, tell))
    log = folder / "many-pods.log"
    started = time.perf_counter()
    with scheduler(kubeconfig, log) as process:
        while not re.search(rb"cycle.*number=1\b|number=1\b.*cycle", log.read_bytes()):
            if process.poll() is not None or time.perf_counter() - started > 180:
                raise RuntimeError(f"no cycle after {time.perf_counter() - started:.0f} s: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        taken = time.perf_counter() - started
        peak = _peak(process.pid)
    note = f"{PODS:,} pods of {size:,.0f} bytes on average, as JSON"
    name = f"{PODS:,} pods listed and in the model"
    return [
        Figure(name=name, value=taken, unit="s", target="<= 15", holds=taken <= 15, note=note),
        Figure(name=f"{name}, memory at its peak", value=peak, unit="GB", target="<= 1.2", holds=peak <= 1.2),
        explain(connection, kubeconfig, tell),
    ]


def explain(connection: Connection, kubeconfig: Path, tell: Callable[[str], None]) -> Figure:
    """Time `pumice explain` as users run it, for a gang that fits nowhere, on as many more nodes as make it a large cluster."""

    async def prepare() -> None:
        async with Client(connection, qps=100_000, burst=100_000) as client:
            await load.prepare(client, NODES)
            await client.create(kinds.POD_GROUP, load.group("llama", 4))
            for number in range(4):
                manifest = load.pod(f"llama-{number}", "llama")
                manifest["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100"}  # no node has so much
                await client.create(kinds.POD, manifest)

    tell(f"{NODES:,} nodes are registered")
    asyncio.run(prepare())
    command = [sys.executable, "-c", "from pumice.cli import main; main()", "explain", "job", "llama"]
    command += ["-n", load.NAMESPACE, "--kubeconfig", str(kubeconfig)]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603  our own command line
    taken = time.perf_counter() - started
    if "Smallest change that would start it" not in done.stdout:
        raise RuntimeError(f"no change was found: {done.stdout[-2000:]}")
    name = f"explain a job on a live cluster, {NODES:,} nodes, {PODS:,} pods"
    return Figure(
        name=name, value=taken, unit="s", target="<= 15", holds=taken <= 15, note="from start to end of the command"
    )


async def _fill(connection: Connection, tell: Callable[[str], None]) -> float:
    """Store pods that run already; returns the bytes of one as the API server lists it."""
    async with Client(connection, qps=100_000, burst=100_000) as client:
        done, told = 0, time.monotonic()

        async def create(number: int) -> None:
            nonlocal done, told
            gang = f"job-{number // 100}"
            manifest = load.pod(f"{gang}-{number % 100}", gang, node=f"node-{number % 1000:03}", padding=_PADDING)
            manifest["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100m", "memory": "100Mi"}
            await client.create(kinds.POD, manifest)
            done += 1
            if time.monotonic() - told > 10:
                told = time.monotonic()
                tell(f"{done:,} of {PODS:,} pods stored")

        await load.each(range(PODS // 100), lambda n: client.create(kinds.POD_GROUP, load.group(f"job-{n}", 100)))
        await load.each(range(PODS), create)
        page = await client.list_page(kinds.POD, namespace=load.NAMESPACE, query={"limit": 100})
        return len(page) / 100


def _peak(pid: int) -> float:
    """Read the largest amount of memory a process has held, in GB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 / 1e9 if found else float("nan")
