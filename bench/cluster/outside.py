"""The real process with many pods waiting when it starts, measured from outside: when the first is bound, how fast all are, and at what cost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import time
from typing import TYPE_CHECKING

from bench.cases import Figure
from bench.cluster import load, rig, starting, watching
from pumice.cache.effects import Bind
from pumice.cache.options import Options
from pumice.kube import errors
from pumice.kube.calls.client import Client
from pumice.kube.watches import informers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pumice.kube.access.connection import Connection

GANGS, SIZE, ROUNDS = 300, 20, 6
PODS = GANGS * SIZE
PATIENCE = 60.0


def measure(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> list[Figure]:
    """Alternate rounds of the process with rounds of bare binds."""
    firsts, rates, bare, costs = [], [], [], []
    asyncio.run(_warm(connection))
    for number in range(ROUNDS):
        first, rate, cost = asyncio.run(_round(connection, kubeconfig, folder / f"outside-{number}.log"))
        firsts.append(first)
        rates.append(rate)
        costs.append(cost)
        bare.append(_bare(connection))
        tell(f"round {number + 1} of {ROUNDS}: first after {first:.2f} s, {rate:,.0f} pods/s, {bare[-1]:,.0f} bare")
    # Neighbours come and go: each round is held against the bare one beside it.
    shares = [rate / floor for rate, floor in zip(rates, bare, strict=True)]
    share, cost = statistics.median(shares), statistics.median(costs)
    note = f"{statistics.median(rates):,.0f} pods/s from the first to the last seen, beside {statistics.median(bare):,.0f} bare, shares {', '.join(f'{each:.2f}' for each in sorted(shares))}; load {os.getloadavg()[0]:.1f}"
    return [
        Figure(
            name=f"from start to first bind, {PODS:,} pods waiting",
            value=max(firsts),
            unit="s",
            target="<= 1.5",
            holds=max(firsts) <= 1.5,
            note=f"the slowest of {ROUNDS} starts; the API server has been asked for every kind before",
        ),
        Figure(
            name=f"{PODS:,} pods by the real process, share of the bare rate",
            value=share,
            unit="x",
            target=">= 0.9",
            holds=share >= 0.9,
            note=note,
        ),
        Figure(
            name="processor time of the process per bound pod, its start aside",
            value=cost * 1000,
            unit="ms",
            target="<= 0.5",
            holds=cost * 1000 <= 0.5,
        ),
    ]


async def _warm(connection: Connection) -> None:
    """Ask once for every kind that is followed: an API server takes a second for the first request about a kind of somebody's own after its start, which is told of by `start`."""
    async with Client(connection) as client:
        for spec in informers.standard(Options()):
            with contextlib.suppress(errors.ApiError):
                await client.list_page(spec.kind, query={"limit": 1})


async def _round(connection: Connection, kubeconfig: Path, log: Path) -> tuple[float, float, float]:
    """Return seconds to the first bind, binds per second from there on, and processor seconds of each."""
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        await load.gangs(client, GANGS, SIZE)
        async with watching.watched(client) as bound:
            started = time.perf_counter()
            with starting.scheduler(kubeconfig, log, "--v=0") as process:
                await bound.reach(1, PATIENCE)
                before = watching.processor_seconds(process.pid)
                await bound.reach(PODS, PATIENCE)
                spent = watching.processor_seconds(process.pid) - before
        await load.clear(client)
    times = sorted(bound.at.values())
    return times[0] - started, (PODS - 1) / (times[-1] - times[0]), spent / PODS


def _bare(connection: Connection) -> float:
    """Bind equal pods to the nodes in turn, without scheduling, with the same watches open; seen from outside, too."""
    with rig.Rig(connection) as made:
        made.run(load.clear(made.client))
        stored = made.run(load.gangs(made.client, GANGS, SIZE))
        made.catch_up(PODS)
        nodes = [record.name for record in made.cache.cluster.nodes.records]
        watch = contextlib.AsyncExitStack()
        made.run(watch.enter_async_context(watching.watched(made.client)))
        rate = made.bind_only(
            [
                Bind(
                    namespace=load.NAMESPACE,
                    name=pod["metadata"]["name"],
                    uid=pod["metadata"]["uid"],
                    node=nodes[number % len(nodes)],
                )
                for number, pod in enumerate(stored)
            ]
        )
        made.run(watch.aclose())
        made.run(load.clear(made.client))
    return rate
