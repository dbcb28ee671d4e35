"""What kube-scheduler writes about pods that wait while others are bound, counted from outside; it knows no queues, so its pods wait for slots on nodes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import msgspec

from bench.cases import Figure
from bench.cluster import load, peers
from bench.cluster.waiting import BINDS, GROUPS, SECONDS, SIZE
from pumice.api import kinds
from pumice.fleet import plan, running
from pumice.kube.calls.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from pumice.kube.access.connection import Connection

NODES, PER_NODE = 10, 20
SLOT = "example.com/slot"
QUIET, PATIENCE = 10.0, 300.0  # seconds without a write until everything is said, and how long that may take


class _Seen:
    """What two watches have seen: where each pod is, and what was written about those that are nowhere."""

    def __init__(self) -> None:
        self.bound: dict[str, None] = {}  # in the order in which they were bound
        self.waiting: dict[str, None] = {}
        self.statuses = self.events = 0
        self.latest = time.monotonic()

    def pod(self, change: dict[str, Any]) -> None:
        """Count a pod that was changed and is still nowhere."""
        name = change["object"]["metadata"]["name"]
        if change["type"] == "DELETED":
            self.waiting.pop(name, None)
        elif "nodeName" in change["object"]["spec"]:
            self.waiting.pop(name, None)
            self.bound.setdefault(name)
        else:
            self._count_status(name)

    def _count_status(self, name: str) -> None:
        self.statuses += name in self.waiting
        self.waiting[name] = None
        self.latest = time.monotonic()

    def event(self, change: dict[str, Any]) -> None:
        """Count an event about a pod that waits, new or written again."""
        if change["type"] != "DELETED" and change["object"].get("reason") == "FailedScheduling":
            self.events += 1
            self.latest = time.monotonic()


def measure(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> list[Figure]:
    """Fill slots, let all others wait, then free slots at a steady rate and count what is written about those that wait."""
    seen, took, bound = asyncio.run(_run(connection, kubeconfig, folder / "kube-scheduler-waiting.log", tell))
    per = took * len(seen.waiting) / 1000
    note = f"for comparison: {len(seen.waiting):,} pods wait throughout for slots of {NODES} nodes, without queues or gangs; {bound} binds in {took:.0f} s"
    return [
        Figure(
            name=f"kube-scheduler: {what} per second and 1,000 waiting pods, {BINDS} binds/s",
            value=count / per,
            unit="",
            target="-",
            holds=True,
            note=note if what == "status writes" else "",
        )
        for what, count in (("status writes", seen.statuses), ("events", seen.events))
    ]


async def _run(connection: Connection, kubeconfig: Path, log: Path, tell: Callable[[str], None]) -> Any:
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await load.clear(client)
        await running.register(client, plan.Plan(count=NODES, prefix="slots", resources={SLOT: str(PER_NODE)}), tell)
        await load.each(range(GROUPS * SIZE), lambda number: client.create(kinds.POD, _pod(number)))
        tell(f"{GROUPS * SIZE:,} pods are stored")
        async with _watching(client) as seen:
            with peers.running(kubeconfig, log):
                await _quiet(seen)
                tell(f"{seen.statuses:,} status writes and {seen.events:,} events until all is said")
                before = len(seen.bound)
                seen.statuses = seen.events = 0
                started = time.monotonic()
                await _free(client, seen, started)
                took, bound = time.monotonic() - started, len(seen.bound) - before
                tell(f"{seen.statuses} status writes and {seen.events} events, {bound} binds in {took:.0f} s")
        await load.clear(client)
    return seen, took, bound


def _pod(number: int) -> load.Manifest:
    manifest = load.pod(f"waits-{number:05}", "", scheduler=peers.SCHEDULER)
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m", SLOT: "1"}, "limits": {SLOT: "1"}}
    return manifest


@contextlib.asynccontextmanager
async def _watching(client: Client) -> AsyncIterator[_Seen]:
    """Watch pods and events as they change, from what is there."""
    seen = _Seen()

    async def follow(
        kind: kinds.Kind, take: Callable[[dict[str, Any]], None], query: dict[str, str | int | bool]
    ) -> None:
        async for line in client.stream(kind, namespace=load.NAMESPACE, query=query, silence=PATIENCE):
            take(msgspec.json.decode(line))

    watches = [
        asyncio.create_task(follow(kinds.POD, seen.pod, {"resourceVersion": "0"})),
        asyncio.create_task(follow(kinds.EVENT, seen.event, {"resourceVersion": "0"})),
    ]
    try:
        await asyncio.sleep(2)
        yield seen
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


async def _quiet(seen: _Seen) -> None:
    """Wait until all slots are taken and nothing has been written for a while."""
    deadline = time.monotonic() + PATIENCE
    while len(seen.bound) < NODES * PER_NODE or time.monotonic() - seen.latest < QUIET:
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(0.2)


async def _free(client: Client, seen: _Seen, started: float) -> None:
    gone = 0
    while time.monotonic() - started < SECONDS:
        due = int((time.monotonic() - started + 1) * BINDS)
        names = list(seen.bound)[gone : min(due, len(seen.bound))]
        await load.each(names, lambda name: client.delete(kinds.POD, load.NAMESPACE, name))
        gone += len(names)
        await asyncio.sleep(1)
