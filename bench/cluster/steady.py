"""A steady stream of jobs of mixed sizes and shapes: how long each pod waits from its creation to its node, and what that costs the scheduler's process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

from bench.cases import Figure
from bench.cluster import bare_binding, load, peers, starting, watching
from pumice.api import kinds
from pumice.kube.calls.client import Client

if TYPE_CHECKING:
    import subprocess
    from collections import Counter
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pumice.kube.access.connection import Connection

# Pods a second, and for how many seconds; the last are more than the API server bears.
STREAMS = ((300, 60), (60, 20), (600, 20))
NODES = 1000  # to which the floor binds in turn
SIZES = (1, 1, 4, 1, 16, 1)  # pods of a job, in turn
SHAPES = 20
PATIENCE = 60.0


def measure(
    connection: Connection,
    kubeconfig: Path,
    folder: Path,
    server: Sequence[int],
    tell: Callable[[str], None],
    *,
    peers_too: bool,
) -> list[Figure]:
    """Measure the floor, our scheduler, and kube-scheduler on the same pods without groups if it is wanted.

    API server, scheduler and this client share the machine: the floor says whether the rate can be served there at all, and the API server's processor time why not.
    """
    figures: list[Figure] = []
    for rate, seconds in STREAMS:
        stages = [
            _Stage(bare_binding.SCHEDULER, " bound without deciding anything, the floor", rate, seconds),
            _Stage("volcano", "", rate, seconds, starting.scheduler(kubeconfig, folder / "steady.log", "--v=0")),
        ]
        if peers_too:
            run = peers.running(kubeconfig, folder / "steady-peer.log")
            stages.append(_Stage(peers.SCHEDULER, " by kube-scheduler, without groups", rate, seconds, run))
        figures += [figure for stage in stages for figure in asyncio.run(_run(connection, server, stage, tell))]
    return figures


class _Stage(NamedTuple):
    """Whose pods are created, how figures call it, how many pods come in a second and for how long, and the process that binds them, unless we do."""

    scheduler: str
    whose: str
    rate: int
    seconds: int
    process: AbstractContextManager[subprocess.Popen[bytes] | None] = contextlib.nullcontext()

    @property
    def in_groups(self) -> bool:
        return self.scheduler != peers.SCHEDULER

    @property
    def name(self) -> str:
        return f"{self.rate} pods/s for {self.seconds} s{self.whose}"


async def _run(
    connection: Connection, server: Sequence[int], stage: _Stage, tell: Callable[[str], None]
) -> list[Figure]:
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        async with contextlib.AsyncExitStack() as stack:
            bound = await stack.enter_async_context(watching.watched(client))
            if stage.scheduler == bare_binding.SCHEDULER:
                await stack.enter_async_context(bare_binding.running(connection, NODES))
            process = stack.enter_context(stage.process)
            await _one(client, bound, stage.scheduler)
            watched = [*server, *([] if process is None else [process.pid])]
            before, asked = list(map(watching.processor_seconds, watched)), await watching.writes(client)
            created, late = await _stream(client, stage, tell)
            queue, ended = len(created) + 1 - len(bound.at), time.perf_counter()
            await bound.reach(len(created) + 1, PATIENCE)
            drained = time.perf_counter() - ended
            spent = [now - then for now, then in zip(map(watching.processor_seconds, watched), before, strict=True)]
            asked = await watching.writes(client) - asked
        await load.clear(client)
    taken = sorted(bound.at[name] - at for name, at in created.items())
    figures = [*_latencies(stage.name, taken, late), *_queue(stage.name, queue, drained)]
    figures.append(
        _cost(
            stage.name,
            "the API server's processor time",
            sum(spent[: len(server)]) / len(taken),
            _counts(asked, len(taken)),
        )
    )
    if process is not None:
        figures.append(_cost(stage.name, "processor time", spent[-1] / len(taken)))
    return figures


async def _one(client: Client, bound: watching.Bound, scheduler: str) -> None:
    """Have one pod bound first: the scheduler is ready from then on."""
    await client.create(kinds.POD, load.pod("first", "", scheduler=scheduler))
    await bound.reach(1, PATIENCE)


async def _stream(client: Client, stage: _Stage, tell: Callable[[str], None]) -> tuple[dict[str, float], float]:
    """Create jobs at the rate; returns when each pod was asked for, and how far creation fell behind at the end."""
    created: dict[str, float] = {}
    started, running = time.perf_counter(), set[asyncio.Task[None]]()
    numbers = itertools.count()
    # Whoever has to wait for the API server waits here, not with the clock of its pods running.
    turns = asyncio.Semaphore(load.PARALLEL)

    async def job(number: int, size: int) -> None:
        name = f"steady-{number:05}"
        async with turns:
            if stage.in_groups:
                await client.create(kinds.POD_GROUP, load.group(name, size))
            asked: list[str] = []
            for manifest in _pods(name, number, size, stage):
                asked.append(manifest["metadata"]["name"])
                # A gang cannot start before its last pod is there, so its clock starts with that one.
                counts = asked if stage.scheduler == "volcano" else asked[-1:]
                created.update(dict.fromkeys(counts, time.perf_counter()))
                await client.create(kinds.POD, manifest)

    asked, told = 0, started
    while asked < stage.rate * stage.seconds:
        size = SIZES[(number := next(numbers)) % len(SIZES)]
        if (early := started + asked / stage.rate - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(job(number, size))
        running.add(task)
        task.add_done_callback(running.discard)
        asked += size
        if time.perf_counter() - told > 15:
            told = time.perf_counter()
            tell(f"{asked:,} pods asked for after {told - started:.0f} s, {len(running)} jobs being created")
    await asyncio.gather(*running)
    return created, time.perf_counter() - started - stage.seconds


def _pods(name: str, number: int, size: int, stage: _Stage) -> Iterator[load.Manifest]:
    group = name if stage.in_groups else ""
    for index in range(size):
        manifest = load.pod(f"{name}-{index:02}", group, scheduler=stage.scheduler)
        step = (number + index) % SHAPES
        asked = {"cpu": f"{100 + 50 * step}m", "memory": f"{64 * (1 + step)}Mi"}
        manifest["spec"]["containers"][0]["resources"]["requests"] = asked
        yield manifest


def _latencies(name: str, taken: list[float], late: float) -> list[Figure]:
    cuts = statistics.quantiles(taken, n=100)
    note = f"{len(taken):,} pods in jobs of {', '.join(map(str, sorted(set(SIZES))))}, {SHAPES} shapes, of gangs from the request for their last pod; load {os.getloadavg()[0]:.1f}"
    if late > 1:
        note += f"; the API server kept creation back by {late:.0f} s"
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
    ]


def _queue(name: str, left: int, drained: float) -> list[Figure]:
    """Tell how many pods waited for a node when the last had come, and how long until none did."""
    return [
        Figure(
            name=f"{name}: pods without a node as the last one is made", value=left, unit="", target="-", holds=True
        ),
        Figure(name=f"{name}: until all have one", value=drained, unit="s", target="-", holds=True),
    ]


def _cost(name: str, what: str, per_pod: float, note: str = "") -> Figure:
    return Figure(name=f"{name}: {what} per pod", value=per_pod * 1000, unit="ms", target="-", holds=True, note=note)


def _counts(asked: Counter[str], pods: int) -> str:
    """Say what was written for each pod, by whomever."""
    found = (f"{what} {count / pods:.2f}" for what, count in asked.most_common() if count >= pods / 200)
    return f"writes per pod: {', '.join(found)}"
