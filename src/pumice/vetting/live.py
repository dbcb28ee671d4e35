"""What a live cluster has of queues, namespaces and priority classes, read once with the user's own rights."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.admission import surroundings
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.watches import arrivals

if TYPE_CHECKING:
    from pumice.api.kinds import Kind

PAGE: Final = 500


class ClusterError(Exception):
    """Why the cluster cannot be asked."""


def read(kubeconfig: str, context: str = "", master: str = "") -> surroundings.KnownObjects:
    """Read what rules look at."""
    try:
        return asyncio.run(_read(kubeconfig, context, master))
    except errors.KubeError as error:
        raise ClusterError(f"the cluster cannot be read: {error}") from error


async def _read(kubeconfig: str, context: str, master: str) -> surroundings.KnownObjects:
    found = surroundings.KnownObjects(complete=True)
    async with Client(connection.load(kubeconfig, context, master)) as client:
        for kind in surroundings.FOLLOWED:
            for manifest in await _listed(client, kind):
                found.put(kind, manifest)
    return found


async def _listed(client: Client, kind: Kind) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        query: dict[str, str | int | bool] = {"limit": PAGE} | ({"continue": token} if token else {})
        try:
            page = arrivals.page(await client.list_page(kind, query=query))
        except errors.ApiError as error:
            if error.status == 404:
                return found
            raise
        found += [msgspec.json.decode(each) for each in page.items]
        token = page.token
        if not token:
            return found
