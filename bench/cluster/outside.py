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
from bench.cluster import bare_process, load, peers, rig, starting, watching
from pumice.cache.options import Options
from pumice.kube import errors
from pumice.kube.calls.client import Client
from pumice.kube.watches import informers

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pumice.kube.access.connection import Connection

    Run = Callable[[], contextlib.AbstractContextManager[subprocess.Popen[bytes]]]

GANGS, SIZE, ROUNDS = 300, 20, 4
PODS = GANGS * SIZE
STARTS = 3  # beside a peer
PATIENCE = 60.0


class Burst(msgspec.Struct, frozen=True):
    """Pods that wait and are bound: seconds to the first, pods per second from there on, and processor seconds of each: of the process that binds, of the API server, and of all together."""

    first: float
    rate: float
    cost: float
    server_cost: float
    total_cost: float

    @property
    def served(self) -> float:
        """Which part of the processor time the API server had."""
        return self.server_cost / self.total_cost


class Round(msgspec.Struct, frozen=True):
    """The process, one that decides nothing, and binds sent by the process that measures: over connections that it has, and with a process less beside the API server."""

    own: Burst
    bare: Burst
    inside: Burst


def measure(
    connection: Connection, kubeconfig: Path, folder: Path, pids: Sequence[int], tell: Callable[[str], None]
) -> list[Figure]:
    """Alternate the process with those that decide nothing, since neighbours come and go."""
    rounds: list[Round] = []
    asyncio.run(_warm(connection))
    for number in range(ROUNDS):
        log = folder / f"outside-{number}.log"
        own = functools.partial(starting.scheduler, kubeconfig, log, "--v=0")
        bare = functools.partial(bare_process.running, kubeconfig, PODS)
        turns = {
            "own": functools.partial(_outside, connection, pids, own),
            "inside": functools.partial(_inside, connection, pids),
            "bare": functools.partial(_outside, connection, pids, bare),
        }
        names = list(turns)[::-1] if number % 2 else list(turns)
        rounds.append(Round(**{name: turns[name]() for name in names}))
        tell(f"round {number + 1} of {ROUNDS}: {_told(rounds[-1])}")
    return _figures(rounds)


def _told(found: Round) -> str:
    own, bare, inside = found.own, found.bare, found.inside
    return (
        f"first after {own.first:.2f} s, {own.rate:,.0f} pods/s, {bare.rate:,.0f} bare, {inside.rate:,.0f} from inside; "
        f"of the processor time {own.served:.3f} for the API server, {bare.served:.3f} bare, {inside.served:.3f} from inside"
    )


def _figures(rounds: Sequence[Round]) -> list[Figure]:
    first, cost = max(each.own.first for each in rounds), statistics.median(each.own.cost for each in rounds)
    return [
        Figure(
            name=f"from start to first bind, {PODS:,} pods waiting",
            value=first,
            unit="s",
            target="<= 1.5",
            holds=first <= 1.5,
            note=f"the slowest of {ROUNDS} starts; the API server has been asked for every kind before",
        ),
        *_shares(rounds, "the bare rate", lambda each: each.bare),
        *_shares(rounds, "the rate from inside the measuring one", lambda each: each.inside),
        Figure(
            name="processor time of the process per bound pod, its start aside",
            value=cost * 1000,
            unit="ms",
            target="<= 0.5",
            holds=cost * 1000 <= 0.5,
            note=f"{statistics.median(each.bare.cost for each in rounds) * 1000:.3f} ms of the one that decides nothing",
        ),
    ]


def _shares(rounds: Sequence[Round], name: str, floor: Callable[[Round], Burst]) -> list[Figure]:
    """Hold the process against a floor: by the clock, and by what of the processor time is left to the API server, which neither its garbage nor other guests of the machine change."""
    # Whether the API server collects its garbage in a round or beside it is chance: all rounds count together.
    own = statistics.harmonic_mean([each.own.rate for each in rounds])
    bare = statistics.harmonic_mean([floor(each).rate for each in rounds])
    parts = [each.own.served / floor(each).served for each in rounds]
    costs = [statistics.median(each.own.server_cost for each in rounds) * 1000]
    costs.append(statistics.median(floor(each).server_cost for each in rounds) * 1000)
    share, part = own / bare, statistics.median(parts)
    return [
        Figure(
            name=f"{PODS:,} pods by the process, share of {name}",
            value=share,
            unit="x",
            target=">= 0.9",
            holds=share >= 0.9,
            note=f"{own:,.0f} pods/s from the first to the last seen, beside {bare:,.0f}, in all rounds together; shares of the rounds {_listed([each.own.rate / floor(each).rate for each in rounds])}; load {os.getloadavg()[0]:.1f}",
        ),
        Figure(
            name="  by the part of all processor time that the API server has",
            value=part,
            unit="x",
            target=">= 0.9",
            holds=part >= 0.9,
            note=f"shares {_listed(parts)}; a bind cost it {costs[0]:.2f} ms, {costs[1]:.2f} with the other",
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


def _outside(connection: Connection, pids: Sequence[int], run: Run) -> Burst:
    """Start a process with pods waiting, and follow it from the first bind to the last."""
    return asyncio.run(_followed(connection, pids, run))


async def _followed(connection: Connection, pids: Sequence[int], run: Run) -> Burst:
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        await load.gangs(client, GANGS, SIZE)
        async with watching.watched(client) as bound:
            started = time.perf_counter()
            with run() as process:
                await bound.reach(1, PATIENCE)
                before = _spent([process.pid], pids)
                await bound.reach(PODS, PATIENCE)
                own, served, total = (now - then for now, then in zip(_spent([process.pid], pids), before, strict=True))
        await load.clear(client)
    times = sorted(bound.at.values())
    rate = (PODS - 1) / (times[-1] - times[0])
    return Burst(times[0] - started, rate, own / PODS, served / PODS, total / PODS)


def first_binds(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> list[Figure]:
    """Take turns with kube-scheduler in starting beside the same pods, which have no groups there, until one of them is bound."""
    asyncio.run(_warm(connection))
    own, other = list[tuple[float, float]](), list[tuple[float, float]]()
    for number in range(STARTS):
        run: Run = functools.partial(starting.scheduler, kubeconfig, folder / f"first-{number}.log", "--v=0")
        own.append(asyncio.run(_first(connection, run, "volcano")))
        run = functools.partial(peers.running, kubeconfig, folder / f"first-peer-{number}.log")
        other.append(asyncio.run(_first(connection, run, peers.SCHEDULER)))
        tell(f"start {number + 1} of {STARTS}: {_started(own[-1:])}, kube-scheduler {_started(other[-1:])}")
    name, fastest = f"from start to first bind beside a peer, {PODS:,} pods waiting", min(other)[0]
    most, taken = max(fastest + 0.5, 1.5 * fastest), min(own)[0]
    note = f"the fastest of {STARTS} starts each; {_started(own)}, kube-scheduler {_started(other)}; load {os.getloadavg()[0]:.1f}"
    return [
        Figure(name=name, value=taken, unit="s", target=f"<= {most:.2f}", holds=taken <= most, note=note),
        Figure(name=f"{name}, by kube-scheduler", value=fastest, unit="s", target="-", holds=True),
    ]


def _started(starts: Sequence[tuple[float, float]]) -> str:
    seconds, spent = (_listed([each[part] for each in starts]) for part in (0, 1))
    return f"{seconds} s, of processor time {spent}"


async def _first(connection: Connection, run: Run, scheduler: str) -> tuple[float, float]:
    """Return after how many seconds of a process the first of many pods is seen bound, and how much processor time it had used by then."""
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        await load.gangs(client, GANGS, SIZE, scheduler)
        async with watching.watched(client) as bound:
            started = time.perf_counter()
            with run() as process:
                await bound.reach(1, PATIENCE)
                spent = watching.processor_seconds(process.pid)
        await load.clear(client)
    return min(bound.at.values()) - started, spent


def _inside(connection: Connection, pids: Sequence[int]) -> Burst:
    """Bind pods to the nodes in turn from this process, with the same watches open."""
    with rig.Rig(connection) as made:
        made.run(load.clear(made.client))
        made.run(load.gangs(made.client, GANGS, SIZE))
        made.catch_up(PODS)
        watch = contextlib.AsyncExitStack()
        made.run(watch.enter_async_context(watching.watched(made.client)))
        before = _spent([], pids)
        rate = made.bind_only(bare_process.binds(made))
        _, served, total = (now - then for now, then in zip(_spent([], pids), before, strict=True))
        made.run(watch.aclose())
        made.run(load.clear(made.client))
    return Burst(0.0, rate, (total - served) / PODS, served / PODS, total / PODS)


def _spent(own: Sequence[int], servers: Sequence[int]) -> tuple[float, float, float]:
    """Return the processor seconds of processes, of the API server's, and of these and this one together."""
    processes, served = (sum(map(watching.processor_seconds, pids)) for pids in (own, servers))
    return processes, served, processes + served + time.process_time()
