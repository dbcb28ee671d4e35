"""Runs the page: a cluster and its server, until somebody ends it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pumice.server.threads import interpreter
from pumice.web.serving import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.server.flags.addresses import Address
    from pumice.web.cluster import Cluster
    from pumice.web.guarding import Guard


async def serve(cluster: Cluster, address: Address, guard: Guard, tell: Callable[[Address], None]) -> None:
    """Serve a cluster until cancelled; `tell` hears where."""
    interpreter.tune()
    cluster.turn()
    server = Server(cluster, guard)
    bound = await server.start(address)
    running = asyncio.create_task(cluster.run(server.stream.tell, lambda: server.stream.viewers > 0))
    try:
        tell(bound)
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.stop()
        await cluster.close()
