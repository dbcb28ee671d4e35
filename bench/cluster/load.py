"""What the measurements run on: nodes, gangs and pods on a real API server, made and removed several at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.fleet import plan, running
from pumice.kube import errors
from pumice.kube.calls.client import path

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from pumice.kube.calls.client import Client

Manifest = dict[str, Any]

NAMESPACE = "bench"
PARALLEL = 64


async def each(items: Iterable[Any], work: Callable[[Any], Awaitable[Any]]) -> None:
    """Do something for every item, several at a time."""
    waiting = iter(items)

    async def one() -> None:
        for item in waiting:
            await work(item)

    await asyncio.gather(*(one() for _ in range(PARALLEL)))


async def prepare(client: Client, nodes: int) -> None:
    """Make the namespace and the nodes; what exists is fine."""
    try:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await client.create(kinds.NAMESPACE, manifest)
    except errors.ApiError as error:
        if error.status != 409:
            raise
    await running.register(client, plan.Plan(count=nodes, cpu="64", memory="256Gi", pods="200"), lambda _: None)


def queue(name: str, cpu: int) -> Manifest:
    """Return a Queue that may hold so much."""
    spec = {"weight": 1, "reclaimable": False, "capability": {"cpu": str(cpu)}}
    return {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def group(name: str, members: int, queue: str = "default") -> Manifest:
    """Return a PodGroup that starts whole."""
    return {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": members, "queue": queue, "minResources": {"cpu": str(members), "memory": "1Gi"}},
    }


def pod(name: str, in_group: str, *, scheduler: str = "volcano", node: str = "", padding: int = 0) -> Manifest:
    """Return a pod; padding makes it larger, as environments and volumes do."""
    annotations = {"scheduling.k8s.io/group-name": in_group} if in_group else {}
    if padding:
        annotations["example.com/padding"] = "x" * padding
    spec: Manifest = {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
    }
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations, "labels": {"job": in_group or "none"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def gangs(
    client: Client, count: int, size: int, scheduler: str = "volcano", prefix: str = "gang"
) -> list[Manifest]:
    """Create gangs and give their pods as they were stored."""
    stored: list[Manifest] = []

    async def create(manifest: Manifest) -> None:
        stored.append(await client.create(kinds.POD, manifest))

    if scheduler == "volcano":
        for number in range(count):
            await client.create(kinds.POD_GROUP, group(f"{prefix}-{number:02}", size))
    named = [
        (f"{prefix}-{number:02}", f"{prefix}-{number:02}-{index:04}")
        for number in range(count)
        for index in range(size)
    ]
    await each([pod(name, gang, scheduler=scheduler) for gang, name in named], create)
    return sorted(stored, key=lambda manifest: manifest["metadata"]["name"])


async def remove_all(client: Client, kind: kinds.Kind) -> None:
    """Delete all objects of a kind: the server ends a request after a minute, which a busy one needs for some thousand pods."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    for _ in range(20):
        try:
            await client.request("DELETE", path(kind, NAMESPACE), body=options, timeout=300.0)
        except (errors.ApiError, errors.UnknownOutcomeError):
            continue
        break


async def clear(client: Client) -> None:
    """Remove every pod and group, and wait until no pod is left."""
    for kind in (kinds.POD, kinds.POD_GROUP):
        await remove_all(client, kind)
    empty = b'"items":[]'
    while empty not in await client.list_page(kinds.POD, namespace=NAMESPACE, query={"limit": 1}):  # noqa: ASYNC110  nobody here could set an event
        await asyncio.sleep(0.1)
