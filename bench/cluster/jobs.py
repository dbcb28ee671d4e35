"""Volcano's Jobs: pods created per second by the controllers beside the bare rate of creating the same pods, and what a pod costs in writes over its life."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from bench.cases import Figure
from bench.cluster import load, watching
from bench.cluster.job_stage import PATIENCE, SIZE, STEP, clear, controllers, job, staged
from pumice.api import kinds
from pumice.kube.calls.client import CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from pumice.kube.access.connection import Connection
    from pumice.kube.calls.client import Client

Manifest = dict[str, Any]

JOBS, ROUNDS = 1000, 2
LIVES = 1000  # Jobs whose pods live to their end
_UNSTORED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences", "generation")


class Case:
    """What the measurements have in common: the cluster, where logs go, whom to tell, and the processes whose time is counted."""

    def __init__(
        self,
        connection: Connection,
        kubeconfig: Path,
        folder: Path,
        tell: Callable[[str], None],
        server: Sequence[int],
    ) -> None:
        self.connection, self.kubeconfig, self.folder = connection, kubeconfig, folder
        self.tell = tell
        self._server = tuple(server)

    def processor_seconds(self, controllers: int) -> float:
        """Give the processor time of everybody: the server, the controllers and whoever plays the rest."""
        return sum(map(watching.processor_seconds, (*self._server, controllers, os.getpid())))


class Round(msgspec.Struct, frozen=True):
    """Pods created per second, processor milliseconds of everybody for each, and of the controllers alone."""

    rate: float
    processor: float
    controllers: float


async def _created(case: Case, name: str) -> tuple[Round, list[Manifest]]:
    """Create Jobs as fast as the server takes them; measures from the first Job to the last pod, and gives the pods."""
    async with staged(case.connection, case.tell) as stage:
        with controllers(case.kubeconfig, case.folder / name) as made:

            async def create() -> None:
                await load.each(range(JOBS), lambda number: stage.client.create(kinds.JOB, job(f"j-{number:04}")))
                await stage.await_pods(JOBS * SIZE)

            measured = await _measured(case, made.pid, create)
        found = [msgspec.json.decode(raw) for raw in stage.pods.values()]
        case.tell("everything is removed")
        await clear(stage.client)
    return measured, found


async def _bare(case: Case, name: str, pods: list[Manifest]) -> Round:
    """Create equal pods, which are of no Job, with as many connections and the same watches open: those of the controllers too."""
    bodies = []
    for pod in pods:
        metadata = {field: value for field, value in pod["metadata"].items() if field not in _UNSTORED}
        bodies.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]})
    async with staged(case.connection, case.tell) as stage:
        with controllers(case.kubeconfig, case.folder / name) as made:

            async def create() -> None:
                creating = asyncio.create_task(load.each(bodies, lambda body: stage.client.create(kinds.POD, body)))
                await stage.await_pods(len(bodies))
                await creating

            measured = await _measured(case, made.pid, create)
        case.tell("everything is removed")
        await clear(stage.client)
    return measured


async def _measured(case: Case, controllers: int, create: Callable[[], Awaitable[None]]) -> Round:
    whole, own, started = case.processor_seconds(controllers), watching.processor_seconds(controllers), time.monotonic()
    await create()
    pods = JOBS * SIZE
    rate = pods / (time.monotonic() - started)
    spent = case.processor_seconds(controllers) - whole, watching.processor_seconds(controllers) - own
    return Round(rate, *(each / pods * 1000 for each in spent))


async def _lives(case: Case) -> float:
    """Let Jobs live from their creation to their deletion, and give how many writes of the controllers that took for each pod."""
    async with staged(case.connection, case.tell) as stage:
        with controllers(case.kubeconfig, case.folder / "lives.log") as made:
            before = await asyncio.to_thread(made.writes)
            await load.each(range(LIVES), lambda number: stage.client.create(kinds.JOB, job(f"l-{number:04}")))
            await stage.await_pods(LIVES * SIZE)
            await stage.set_phases("Running")
            await asyncio.sleep(15)  # counts are written when they have been quiet for a while
            await stage.set_phases("Succeeded")
            await _until_all_completed(stage.client, case.tell)
            await asyncio.sleep(15)
            after = await asyncio.to_thread(made.writes)
        case.tell("everything is removed")
        await clear(stage.client)
    return (after - before) / (LIVES * SIZE)


async def _until_all_completed(client: Client, tell: Callable[[str], None]) -> None:
    done, since = -1, time.monotonic()
    while True:
        page = msgspec.json.decode(await client.list_page(kinds.JOB, namespace=load.NAMESPACE, query={}))
        phases = [each.get("status", {}).get("state", {}).get("phase") for each in page["items"]]
        if phases.count("Completed") > done:
            done, since = phases.count("Completed"), time.monotonic()
            tell(f"{done:,} of {LIVES:,} Jobs are completed")
        if done == LIVES:
            return
        if time.monotonic() - since > PATIENCE:
            raise RuntimeError(f"for {PATIENCE:g} s no Job was completed after {done:,} of {LIVES:,}")
        await asyncio.sleep(STEP)


def measure(
    connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None], server: Sequence[int]
) -> list[Figure]:
    """Alternate rounds with and without controllers, then let Jobs live; `server` are the processes of the API server."""
    case = Case(connection, kubeconfig, folder, tell, server)
    made, bare = [], []
    for number in range(ROUNDS):
        measured, pods = asyncio.run(_created(case, f"jobs-{number}.log"))
        made.append(measured)
        bare.append(asyncio.run(_bare(case, f"bare-{number}.log", pods)))
        tell(f"round {number + 1} of {ROUNDS}: {_told(made[-1])} for Jobs; {_told(bare[-1])} bare")
    return [*_rates(made, bare), _writes(asyncio.run(_lives(case)))]


def _told(found: Round) -> str:
    return f"{found.rate:,.0f} pods/s, {found.processor:.1f} ms of processor time each, {found.controllers:.2f} of them the controllers'"


def _rates(made: list[Round], bare: list[Round]) -> list[Figure]:
    rates, floors = [each.rate for each in made], [each.rate for each in bare]
    share = max(rates) / max(floors)
    spread = f"{min(rates):,.0f} to {max(rates):,.0f} beside {min(floors):,.0f} to {max(floors):,.0f} bare"
    busy, idle = min(each.processor for each in made), min(each.processor for each in bare)
    return [
        Figure(
            name=f"{JOBS:,} Jobs of {SIZE} pods, share of the bare rate of creating the pods",
            value=share,
            unit="x",
            target=">= 0.6",
            holds=share >= 0.6,
            note=f"pods/s {spread}, {CONCURRENCY} connections, best of {ROUNDS} rounds each",
        ),
        Figure(
            name="the same in processor time of all processes, which other work on the machine changes less",
            value=idle / busy,
            unit="x",
            target="-",
            holds=True,
            note=f"{busy:.1f} ms for each pod beside {idle:.1f} bare; the controllers {min(each.controllers for each in made):.2f}",
        ),
    ]


def _writes(writes: float) -> Figure:
    return Figure(
        name="API writes of the controllers per pod over its life, events not counted",
        value=writes,
        unit="",
        target="<= 1.6",
        holds=writes <= 1.6,
        note=f"{LIVES:,} Jobs of {SIZE} pods that are let in, run and succeed",
    )
