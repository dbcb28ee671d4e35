"""Measure the API server of `pumice up`: `python -m bench.up [--pods N] [--nodes N] [--large]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.up import traffic
from testbed import provide
from testbed.server import ApiServer

if TYPE_CHECKING:
    from collections.abc import Sequence

RATE = 1000.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Up:
    """`pumice up` as a process."""

    def __init__(self, *arguments: str) -> None:
        started = time.perf_counter()
        command = [
            sys.executable,
            "-c",
            "from pumice.cli import main; main()",
            "up",
            "--no-web",
            "--scheduler",
            "none",
            *arguments,
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  ourselves
        text = ""
        for line in self._process.stdout or ():
            text += line
            if "Ctrl-C" in line:
                break
        self.ready = time.perf_counter() - started
        found = re.search(r"KUBECONFIG=(\S+)", text)
        if found is None:
            raise RuntimeError(text)
        self.kubeconfig = Path(found[1])

    @property
    def pids(self) -> tuple[int, ...]:
        """Its processes."""
        return (self._process.pid,)

    def stop(self, number: int = signal.SIGINT) -> None:
        """End it."""
        self._process.send_signal(number)
        self._process.wait(30)


def cpu(pids: Sequence[int]) -> float:
    """Give the seconds of processor time that processes have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


def memory(pids: Sequence[int]) -> float:
    """Give the megabytes that processes hold."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(name: str, kubeconfig: Path, pids: Sequence[int], count: int) -> None:
    """Measure one server and print a line for each figure."""
    session, url = traffic.session(kubeconfig)
    async with session:
        clients = traffic.Traffic(session, url)
        watching = asyncio.create_task(clients.watch())
        await asyncio.sleep(0.5)
        names = [f"pod-{number}" for number in range(count)]
        for what, action in (("creates", clients.create), ("binds", clients.bind)):
            before, own = cpu(pids), time.process_time()
            rate = await clients.all(action, names)
            spent, own = (cpu(pids) - before) / count * 1000, (time.process_time() - own) / count * 1000
            costs = f"{spent:.2f} ms of processor time each, {own:.2f} ms of the clients'"
            print(f"{name:<24} {what:<28} {rate:>10,.0f} /s   {costs}", flush=True)
        spans = await clients.paced([f"paced-{number}" for number in range(2000)], RATE)
        middle, late = spans[len(spans) // 2] * 1000, spans[int(len(spans) * 0.99)] * 1000
        print(
            f"{name:<24} {f'watch at {RATE:,.0f} events/s':<28} p50 {middle:>6.1f} ms   p99 {late:>6.1f} ms", flush=True
        )
        print(f"{name:<24} {'memory':<28} {memory(pids):>10,.0f} MB", flush=True)
        watching.cancel()


async def fill(kubeconfig: Path, count: int) -> float:
    """Create many pods; gives how many a second."""
    session, url = traffic.session(kubeconfig)
    async with session:
        clients = traffic.Traffic(session, url)
        return await clients.all(clients.create, [f"many-{number}" for number in range(count)], 32)


def main() -> int:
    """Measure both servers, then what lasts longer if asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench.up")
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--alone", action="store_true", help="leave kube-apiserver out")
    parser.add_argument("--large", action="store_true", help="10,000 nodes and 100,000 pods, and a restart with them")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.pods} pods, {traffic.WORKERS} clients, one watcher"
    )
    if provide.binaries() is not None and not options.alone:
        with ApiServer() as server:
            asyncio.run(measure("kube-apiserver and etcd", server.kubeconfig, server.pids, options.pods))
    up = Up("--nodes", "16")
    print(f"{'pumice up':<24} {'ready after':<28} {up.ready:>10.2f} s")
    asyncio.run(measure("pumice up", up.kubeconfig, up.pids, options.pods))
    up.stop()
    with tempfile.TemporaryDirectory() as folder:
        up = Up("--nodes", "16", "--data", folder)
        asyncio.run(measure("pumice up --data", up.kubeconfig, up.pids, options.pods))
        up.stop()
    if options.large:
        large()
    return 0


def large() -> None:
    """Fill a cluster, kill it, and start it again."""
    with tempfile.TemporaryDirectory() as folder:
        up = Up("--nodes", "10000", "--data", folder)
        print(f"{'10,000 nodes':<24} {'ready after':<28} {up.ready:>10.2f} s")
        rate = asyncio.run(fill(up.kubeconfig, 100_000))
        print(f"{'100,000 pods':<24} {'creates':<28} {rate:>10,.0f} /s, then {memory(up.pids):,.0f} MB", flush=True)
        up.stop(signal.SIGKILL)
        up = Up("--nodes", "10000", "--data", folder)
        print(f"{'100,000 pods':<24} {'ready again after a kill':<28} {up.ready:>10.2f} s, {memory(up.pids):,.0f} MB")
        up.stop()


if __name__ == "__main__":
    raise SystemExit(main())
