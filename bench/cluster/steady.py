"""A steady stream of jobs of mixed sizes and shapes: how long each pod waits from its creation to its node, and what that costs the scheduler's process."""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import time
from typing import TYPE_CHECKING

from bench.cases import Figure
from bench.cluster import load, peers, starting, watching
from pumice.api import kinds
from pumice.kube.calls.client import Client

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pumice.kube.access.connection import Connection

RATE, SECONDS = 300, 60
SIZES = (1, 1, 4, 1, 16, 1)  # pods of a job, in turn
SHAPES = 20
PATIENCE = 60.0


def measure(
    connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None], *, peers_too: bool
) -> list[Figure]:
    """Measure our scheduler, and kube-scheduler on the same pods without groups if it is wanted."""
    figures = asyncio.run(
        _run(connection, starting.scheduler(kubeconfig, folder / "steady.log", "--v=0"), "volcano", "", tell)
    )
    if peers_too:
        run = peers.running(kubeconfig, folder / "steady-peer.log")
        figures += asyncio.run(_run(connection, run, peers.SCHEDULER, " by kube-scheduler, without groups", tell))
    return figures


async def _run(
    connection: Connection,
    process: AbstractContextManager[subprocess.Popen[bytes]],
    scheduler: str,
    whose: str,
    tell: Callable[[str], None],
) -> list[Figure]:
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        async with watching.watched(client) as bound:
            with process as running:
                await _one(client, bound, scheduler)
                before = watching.processor_seconds(running.pid)
                created, late = await _stream(client, scheduler, tell)
                await bound.reach(len(created) + 1, PATIENCE)
                spent = watching.processor_seconds(running.pid) - before
        await load.clear(client)
    taken = sorted(bound.at[name] - at for name, at in created.items())
    return _figures(whose, taken, spent / len(taken), late)


async def _one(client: Client, bound: watching.Bound, scheduler: str) -> None:
    """Have one pod bound first: the scheduler is ready from then on."""
    await client.create(kinds.POD, load.pod("first", "", scheduler=scheduler))
    await bound.reach(1, PATIENCE)


async def _stream(client: Client, scheduler: str, tell: Callable[[str], None]) -> tuple[dict[str, float], float]:
    """Create jobs at the rate; returns when each pod was asked for, and how far creation fell behind at the end."""
    created: dict[str, float] = {}
    started, running = time.perf_counter(), set[asyncio.Task[None]]()
    numbers = itertools.count()
    # Whoever has to wait for the API server waits here, not with the clock of its pods running.
    turns = asyncio.Semaphore(load.PARALLEL)

    async def job(number: int, size: int) -> None:
        name = f"steady-{number:05}"
        async with turns:
            if scheduler == "volcano":
                await client.create(kinds.POD_GROUP, load.group(name, size))
            for manifest in _pods(name, number, size, scheduler):
                created[manifest["metadata"]["name"]] = time.perf_counter()
                await client.create(kinds.POD, manifest)

    asked, told = 0, started
    while asked < RATE * SECONDS:
        size = SIZES[(number := next(numbers)) % len(SIZES)]
        if (early := started + asked / RATE - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(job(number, size))
        running.add(task)
        task.add_done_callback(running.discard)
        asked += size
        if time.perf_counter() - told > 15:
            told = time.perf_counter()
            tell(f"{asked:,} pods asked for after {told - started:.0f} s, {len(running)} jobs being created")
    await asyncio.gather(*running)
    return created, time.perf_counter() - started - SECONDS


def _pods(name: str, number: int, size: int, scheduler: str) -> Iterator[load.Manifest]:
    group = name if scheduler == "volcano" else ""
    for index in range(size):
        manifest = load.pod(f"{name}-{index:02}", group, scheduler=scheduler)
        step = (number + index) % SHAPES
        asked = {"cpu": f"{100 + 50 * step}m", "memory": f"{64 * (1 + step)}Mi"}
        manifest["spec"]["containers"][0]["resources"]["requests"] = asked
        yield manifest


def _figures(whose: str, taken: list[float], per_pod: float, late: float) -> list[Figure]:
    cuts = statistics.quantiles(taken, n=100)
    note = f"{len(taken):,} pods in jobs of {', '.join(map(str, sorted(set(SIZES))))}, {SHAPES} shapes; load {os.getloadavg()[0]:.1f}"
    if late > 1:
        note += f"; the API server kept creation back by {late:.0f} s"
    name = f"{RATE} pods/s for {SECONDS} s{whose}"
    return [
        Figure(
            name=f"{name}: creation to binding, p50",
            value=cuts[49] * 1000,
            unit="ms",
            target="-",
            holds=True,
            note=note,
        ),
        Figure(name=f"{name}: creation to binding, p99", value=cuts[98] * 1000, unit="ms", target="-", holds=True),
        Figure(name=f"{name}: processor time per pod", value=per_pod * 1000, unit="ms", target="-", holds=True),
    ]
