"""The floor of a scheduler: a client that binds each pod to the next node as soon as a watch shows it, and decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING

import msgspec

from bench.cluster import load
from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.calls.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pumice.kube.access.connection import Connection

SCHEDULER = "nobody"  # the scheduler name of the pods that are bound like this


@contextlib.asynccontextmanager
async def running(connection: Connection, nodes: int) -> AsyncIterator[None]:
    """Bind pods to so many nodes in turn, inside this block."""
    async with Client(connection, qps=100_000, burst=100_000) as client:
        watch = asyncio.create_task(_follow(client, nodes))
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)


async def _follow(client: Client, nodes: int) -> None:
    query: dict[str, str | int | bool] = {"fieldSelector": f"spec.schedulerName={SCHEDULER}", "resourceVersion": "0"}
    turns = itertools.cycle(range(nodes))
    at_work = asyncio.Semaphore(load.PARALLEL)

    async def bind(name: str, uid: str) -> None:
        async with at_work:
            await client.bind(load.NAMESPACE, name, uid, f"node-{next(turns):03}", {})

    async with asyncio.TaskGroup() as binds:
        seen = set[str]()
        while True:
            # A server with more to do than it can ends watches that are not read fast enough; the next one begins with a list.
            with contextlib.suppress(errors.KubeError):
                async for line in client.stream(kinds.POD, namespace=load.NAMESPACE, query=query, silence=300):
                    metadata = msgspec.json.decode(line)["object"]["metadata"]
                    if (name := metadata.get("name", "")) and name not in seen:
                        seen.add(name)
                        binds.create_task(bind(name, metadata["uid"]))
