"""A fleet at work: its nodes are registered, kept alive by heartbeats, and served by their kubelets."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import kinds, timestamp
from pumice.fleet import kubelets, plan
from pumice.kube import errors
from pumice.kube.watches import informers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pumice.kube.calls.client import Client

    Told = Callable[[str], None]

PARALLEL = 32
LEASES = "kube-node-lease"
LEASE_SECONDS = 40


class FleetError(Exception):
    """A fleet that cannot go on, and why."""


async def register(client: Client, wanted: plan.Plan, tell: Told) -> int:
    """Create the nodes that are missing and make those that exist healthy; returns how many were created."""
    wanted.check()
    created = 0

    async def one(index: int) -> None:
        nonlocal created
        manifest = wanted.node(index, _now())
        name = manifest["metadata"]["name"]
        try:
            await client.create(kinds.NODE, manifest)
        except errors.ApiError as error:
            if error.status != 409:
                raise
            await _adopt(client, index, wanted)
        else:
            # Admission taints every new node; where no node controller runs, nobody would take that off again.
            await client.patch(kinds.NODE, "", name, {"spec": {"taints": None}})
            created += 1

    await _each(range(wanted.count), one, tell, "registered")
    return created


async def _adopt(client: Client, index: int, wanted: plan.Plan) -> None:
    """Make a simulated node that exists healthy and as large as wanted; anybody else's node is left alone."""
    name = wanted.name(index)
    existing = await client.get(kinds.NODE, "", name)
    if (existing["metadata"].get("labels") or {}).get(plan.SIMULATED) != "true":
        raise FleetError(
            f"node {name} exists and is not simulated: it lacks the label {plan.SIMULATED}=true; choose another --prefix"
        )
    await client.patch(kinds.NODE, "", name, {"status": wanted.status(index, _now())}, subresource="status")


async def remove(client: Client, tell: Told) -> int:
    """Delete every simulated node; returns how many there were."""
    found: list[str] = []
    token = ""
    while True:
        query: dict[str, Any] = {"labelSelector": f"{plan.SIMULATED}=true", "limit": 500}
        page = msgspec.json.decode(
            await client.list_page(kinds.NODE, query=query | ({"continue": token} if token else {}))
        )
        found += [item["metadata"]["name"] for item in page.get("items") or []]
        token = (page.get("metadata") or {}).get("continue", "")
        if not token:
            break

    async def one(index: int) -> None:
        try:
            await client.delete(kinds.NODE, "", found[index])
        except errors.ApiError as error:
            if error.status != 404:
                raise

    await _each(range(len(found)), one, tell, "removed")
    return len(found)


async def serve(
    client: Client, wanted: plan.Plan, fleet: kubelets.Kubelets, tell: Told, *, heartbeat: float = 20.0
) -> None:
    """Run the kubelets of registered nodes until cancelled; a heartbeat of 0 sends none."""
    follower = informers.Informers(client, [kubelets.WATCHED], fleet)
    async with asyncio.TaskGroup() as group:
        group.create_task(follower.run())
        group.create_task(fleet.run())
        group.create_task(_report(fleet.counts, tell))
        if heartbeat > 0:
            group.create_task(_beat(client, wanted.names(), heartbeat, tell))


async def _report(counts: kubelets.Counts, tell: Told) -> None:
    shown = ""
    while True:
        text = f"{counts.started} started, {counts.finished} finished, {counts.removed} removed"
        text += f", {counts.failed} requests failed" if counts.failed else ""
        if text != shown and (shown or any((counts.started, counts.removed, counts.failed))):
            tell(f"pods: {text}")
            shown = text
        await asyncio.sleep(1)


async def _beat(client: Client, nodes: Sequence[str], every: float, tell: Told) -> None:
    """Renew the lease of every node once per period, evenly spread; a node controller takes silent nodes for dead."""
    troubled = False
    while True:
        started = time.monotonic()
        for position, name in enumerate(nodes):
            due = started + every * position / len(nodes)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            try:
                await _renew(client, name)
                troubled = False
            except errors.KubeError as error:
                if not troubled:
                    tell(f"heartbeat of {name}: {error}")
                troubled = True
        await asyncio.sleep(max(0.0, started + every - time.monotonic()))


async def _renew(client: Client, name: str) -> None:
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": LEASE_SECONDS,
        "renewTime": timestamp.format_timestamp(_now() | 1),  # never a whole second: the field has microseconds
    }
    try:
        await client.patch(kinds.LEASE, LEASES, name, {"spec": spec})
    except errors.ApiError as error:
        if error.status != 404:
            raise
        manifest = {
            "apiVersion": kinds.LEASE.api_version,
            "kind": kinds.LEASE.name,
            "metadata": {"name": name, "namespace": LEASES},
            "spec": spec,
        }
        await client.create(kinds.LEASE, manifest)


async def _each(indices: range, one: Callable[[int], Awaitable[None]], tell: Told, what: str) -> None:
    """Do one thing for every node, several at a time, with a line now and then."""
    waiting = iter(indices)
    done, told_at = 0, time.monotonic()

    async def work() -> None:
        nonlocal done, told_at
        for index in waiting:
            await one(index)
            done += 1
            if time.monotonic() - told_at > 2:
                told_at = time.monotonic()
                tell(f"nodes: {done} of {len(indices)} {what}")

    await asyncio.gather(*(work() for _ in range(min(PARALLEL, len(indices)))))


def _now() -> int:
    return time.time_ns() // 1000
