"""The real process with many pods waiting when it starts, measured from outside: when the first is bound, how fast all are, and at what cost."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import statistics
import time
from typing import TYPE_CHECKING

import msgspec

from bench.cases import Figure
from bench.cluster import bare_process, load, starting, watching
from pumice.cache.options import Options
from pumice.kube import errors
from pumice.kube.calls.client import Client
from pumice.kube.watches import informers

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pumice.kube.access.connection import Connection

GANGS, SIZE, ROUNDS = 300, 20, 6
PODS = GANGS * SIZE
PATIENCE = 60.0


class Burst(msgspec.Struct, frozen=True):
    """A process that binds pods which wait for it: seconds to the first, pods per second from there on, and processor seconds of each, its own and the API server's."""

    first: float
    rate: float
    cost: float
    server_cost: float

    @property
    def server_cores(self) -> float:
        """Cores that the API server had."""
        return self.rate * self.server_cost


def measure(
    connection: Connection, kubeconfig: Path, folder: Path, pids: Sequence[int], tell: Callable[[str], None]
) -> list[Figure]:
    """Alternate the process with one that decides nothing, since neighbours come and go."""
    pairs: list[tuple[Burst, Burst]] = []
    asyncio.run(_warm(connection))
    for number in range(ROUNDS):
        log = folder / f"outside-{number}.log"
        runs = [
            functools.partial(starting.scheduler, kubeconfig, log, "--v=0"),
            functools.partial(bare_process.running, kubeconfig, PODS),
        ]
        turns = runs[::-1] if number % 2 else runs
        bursts = [asyncio.run(_round(connection, pids, run)) for run in turns]
        own, bare = bursts[::-1] if number % 2 else bursts
        pairs.append((own, bare))
        tell(
            f"round {number + 1} of {ROUNDS}: first after {own.first:.2f} s, {own.rate:,.0f} pods/s, {bare.rate:,.0f} bare; "
            f"{own.server_cores:.2f} cores for the API server, {bare.server_cores:.2f} bare"
        )
    return _figures(pairs)


def _figures(pairs: Sequence[tuple[Burst, Burst]]) -> list[Figure]:
    first, cost = max(own.first for own, _ in pairs), statistics.median(own.cost for own, _ in pairs)
    shares, left = [o.rate / b.rate for o, b in pairs], [o.server_cores / b.server_cores for o, b in pairs]
    # Whether the API server collects its garbage in a round or beside it is chance: all rounds count together.
    rates, bare = (statistics.harmonic_mean([each.rate for each in side]) for side in zip(*pairs, strict=True))
    share, room = rates / bare, statistics.median(left)
    costs = [statistics.median(each.server_cost for each in side) * 1000 for side in zip(*pairs, strict=True)]
    return [
        Figure(
            name=f"from start to first bind, {PODS:,} pods waiting",
            value=first,
            unit="s",
            target="<= 1.5",
            holds=first <= 1.5,
            note=f"the slowest of {ROUNDS} starts; the API server has been asked for every kind before",
        ),
        Figure(
            name=f"{PODS:,} pods by the real process, share of the bare rate",
            value=share,
            unit="x",
            target=">= 0.9",
            holds=share >= 0.9,
            note=f"{rates:,.0f} pods/s from the first to the last seen, beside {bare:,.0f} bare, in all rounds together; shares of the rounds {_listed(shares)}; load {os.getloadavg()[0]:.1f}",
        ),
        Figure(
            name="  the same at equal cost of a bind to the API server: cores that it has, share of bare",
            value=room,
            unit="x",
            target=">= 0.9",
            holds=room >= 0.9,
            note=f"shares {_listed(left)}; a bind cost it {costs[0]:.2f} ms, {costs[1]:.2f} bare: whether its garbage is collected and how fast the machine is falls out",
        ),
        Figure(
            name="processor time of the process per bound pod, its start aside",
            value=cost * 1000,
            unit="ms",
            target="<= 0.5",
            holds=cost * 1000 <= 0.5,
            note=f"{statistics.median(bare.cost for _, bare in pairs) * 1000:.3f} ms of the one that decides nothing",
        ),
    ]


def _listed(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.2f}" for share in sorted(shares))


async def _warm(connection: Connection) -> None:
    """Ask once for every kind that is followed: an API server takes a second for the first request about a kind of somebody's own after its start, which is told of by `start`."""
    async with Client(connection) as client:
        for spec in informers.standard(Options()):
            with contextlib.suppress(errors.ApiError):
                await client.list_page(spec.kind, query={"limit": 1})


async def _round(
    connection: Connection,
    pids: Sequence[int],
    run: Callable[[], contextlib.AbstractContextManager[subprocess.Popen[bytes]]],
) -> Burst:
    """Start a process with pods waiting, and follow it from the first bind to the last."""
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        await load.gangs(client, GANGS, SIZE)
        async with watching.watched(client) as bound:
            started = time.perf_counter()
            with run() as process:
                await bound.reach(1, PATIENCE)
                own, served = watching.processor_seconds(process.pid), _spent(pids)
                await bound.reach(PODS, PATIENCE)
                own, served = watching.processor_seconds(process.pid) - own, _spent(pids) - served
        await load.clear(client)
    times = sorted(bound.at.values())
    return Burst(times[0] - started, (PODS - 1) / (times[-1] - times[0]), own / PODS, served / PODS)


def _spent(pids: Sequence[int]) -> float:
    return sum(watching.processor_seconds(pid) for pid in pids)
