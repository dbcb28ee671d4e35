"""How long a lone pod waits on an idle cluster, from the request that creates it to a watch that sees it bound; scheduler and watcher are processes of their own.

The floor is what is left of that without a scheduler: a client that binds each pod to the same node as soon as a watch shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import time
from typing import TYPE_CHECKING

import msgspec

from bench.cases import Figure
from bench.cluster import bare_binding, load, peers, starting
from pumice.api import kinds
from pumice.kube.calls.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pumice.kube.access.connection import Connection

PODS = 100
PAUSES = (
    0.15,
    0.35,
)  # seconds between a bind and the next pod, anything between: the cluster is idle by then, and nobody's own pauses fall into step


def measure(connection: Connection, kubeconfig: Path, folder: Path, *, peers_too: bool) -> list[Figure]:
    """Measure pods whose PodGroup is there, pods without one, and the same for kube-scheduler if it is wanted."""
    floor = asyncio.run(_floor(connection))
    run = starting.scheduler(kubeconfig, folder / "latency.log")
    grouped, alone = asyncio.run(_both(connection, run))
    figures = [
        *_figures("a lone pod bound without deciding anything, the floor", floor, None, None),
        *_figures("a lone pod with its PodGroup, creation to binding", grouped, 13, 60),
        *_figures("a lone pod without one, creation to binding", alone, 40, None),
    ]
    if peers_too:
        found = asyncio.run(_peer(connection, peers.running(kubeconfig, folder / "latency-peer.log")))
        figures += _figures("a lone pod by kube-scheduler, creation to binding", found, None, None)
    return figures


def _figures(name: str, taken: list[float], middle: float | None, worst: float | None) -> list[Figure]:
    cuts = statistics.quantiles(taken, n=100)
    return [
        Figure(
            name=f"{name}, {which}",
            value=value * 1000,
            unit="ms",
            target="-" if target is None else f"<= {target:g}",
            holds=target is None or value * 1000 <= target,
            note=f"{len(taken)} pods, one after the other" if which == "p50" else "",
        )
        for which, value, target in (("p50", cuts[49], middle), ("p99", cuts[98], worst))
    ]


async def _both(connection: Connection, run: AbstractContextManager[object]) -> tuple[list[float], list[float]]:
    async with Client(connection, qps=10_000, burst=10_000) as client:
        await load.clear(client)
        async with _watching(client) as bound:
            with run:
                await _one(client, bound, "warm", "")
                grouped = [await _one(client, bound, f"grouped-{i}", f"grouped-{i}") for i in range(PODS)]
                alone = [await _one(client, bound, f"alone-{i}", "") for i in range(PODS)]
        await load.clear(client)
    return grouped, alone


async def _floor(connection: Connection) -> list[float]:
    """Bind each pod where it is seen first, always to the same node."""
    async with Client(connection, qps=10_000, burst=10_000) as client:
        await load.clear(client)
        async with _watching(client) as bound, bare_binding.running(connection, nodes=1):
            await _one(client, bound, "warm", "", scheduler=bare_binding.SCHEDULER)
            names = [f"floor-{i}" for i in range(PODS)]
            return [await _one(client, bound, name, "", scheduler=bare_binding.SCHEDULER) for name in names]


async def _peer(connection: Connection, run: AbstractContextManager[object]) -> list[float]:
    async with Client(connection, qps=10_000, burst=10_000) as client:
        await load.clear(client)
        async with _watching(client) as bound:
            with run:
                await _one(client, bound, "warm", "", scheduler=peers.SCHEDULER)
                return [await _one(client, bound, f"peer-{i}", "", scheduler=peers.SCHEDULER) for i in range(PODS)]


async def _one(
    client: Client, bound: Callable[[str], asyncio.Future[float]], name: str, group: str, scheduler: str = "volcano"
) -> float:
    """Create a pod, its PodGroup before it if it has one, and return after how many seconds it was seen bound."""
    if group:
        manifest = load.group(group, 1)
        await client.create(kinds.POD_GROUP, manifest)
    await asyncio.sleep(random.Random(name).uniform(*PAUSES))  # noqa: S311  not a secret
    seen = bound(name)
    started = time.perf_counter()
    await client.create(kinds.POD, load.pod(name, group, scheduler=scheduler))
    return await asyncio.wait_for(seen, 60) - started


@contextlib.asynccontextmanager
async def _watching(client: Client) -> AsyncIterator[Callable[[str], asyncio.Future[float]]]:
    """Give what waits for a pod to be seen bound, and returns when it was."""
    waiting: dict[str, asyncio.Future[float]] = {}

    async def follow() -> None:
        query: dict[str, str | int | bool] = {"fieldSelector": "spec.nodeName!=", "resourceVersion": "0"}
        async for line in client.stream(kinds.POD, namespace=load.NAMESPACE, query=query, silence=300):
            seen = waiting.pop(msgspec.json.decode(line)["object"]["metadata"].get("name", ""), None)
            if seen is not None:
                seen.set_result(time.perf_counter())

    def bound(name: str) -> asyncio.Future[float]:
        waiting[name] = asyncio.get_running_loop().create_future()
        return waiting[name]

    watch = asyncio.create_task(follow())
    try:
        await asyncio.sleep(1)
        yield bound
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
