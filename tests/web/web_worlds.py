"""Clusters to be shown, and a server of the page in the event loop of a test."""

from __future__ import annotations

import contextlib

import aiohttp
import msgspec

from pumice.api import decoding, kinds
from pumice.server.flags.addresses import Address
from pumice.web import serving
from pumice.web.cluster import Cluster
from pumice.web.guarding import PrintedToken

NOW = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
CREATED = "2025-12-31T23:00:00Z"
KINDS = {kind.name: kind for kind in (kinds.POD, kinds.NODE, kinds.QUEUE, kinds.POD_GROUP, kinds.EVENT)}


def node(name, cpu="8", **labels):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "uid": f"uid-{name}", "creationTimestamp": CREATED},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def queue(name, **spec):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED},
        "spec": {"weight": 1, **spec},
        "status": {"state": "Open"},
    }


def group(name, queue_name="default", phase="Inqueue", minimum=1, *, namespace="a", message=""):
    conditions = [{"type": "Unschedulable", "status": "True", "message": message}] if message else []
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": CREATED},
        "spec": {"minMember": minimum, "queue": queue_name},
        "status": {"phase": phase, "conditions": conditions},
    }


def pod(name, group_name="", place="", cpu="1", *, phase="", namespace="a"):
    annotations = {"scheduling.k8s.io/group-name": group_name} if group_name else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
            "annotations": annotations,
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": place} if place else {}),
        },
        "status": {"phase": phase or ("Running" if place else "Pending")},
    }


def eviction(pod_name, message, number=0, namespace="a"):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"e-{number}", "namespace": namespace, "uid": f"event-{number}"},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": pod_name},
        "reason": "Evict",
        "message": message,
        "lastTimestamp": CREATED,
    }


def feed(cluster, event_type, *manifests):
    for manifest in manifests:
        kind = KINDS[manifest["kind"]]
        cluster.objects.feed(kind, event_type, decoding.decode_json(kind, msgspec.json.encode(manifest)), b"")


def small():
    """A cluster of two nodes on which one job runs and another waits."""
    cluster = Cluster("a test", lambda: NOW)
    feed(cluster, "ADDED", node("n-0"), node("n-1"), queue("default"), queue("root"), queue("research"))
    feed(cluster, "ADDED", group("runs", phase="Running"), pod("runs-0", "runs", "n-0", cpu="6"))
    feed(cluster, "ADDED", group("waits", "research", minimum=2, message="no node has 9 cpu free"))
    feed(cluster, "ADDED", *(pod(f"waits-{index}", "waits", cpu="9") for index in range(2)))
    cluster.turn()
    return cluster


class Served:
    """A server, and whoever calls it as the page does."""

    def __init__(self, server, address, session, guard):
        self.server, self.address, self.session, self.guard = server, address, session, guard

    async def sign_in(self):
        return await self.post("/api/session", {"token": self.guard.token})

    async def get(self, path, **headers):
        async with self.session.get(f"{self.address}{path}", headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def post(self, path, body, **headers):
        async with self.session.post(f"{self.address}{path}", json=body, headers=headers) as response:
            return response.status, await response.json(content_type=None)


@contextlib.asynccontextmanager
async def served(cluster):
    guard = PrintedToken()
    server = serving.Server(cluster, guard)
    bound = await server.start(Address("127.0.0.1", 0))
    # Cookies of addresses without a name are kept only by who is told to.
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        try:
            yield Served(server, f"http://{bound}", session, guard)
        finally:
            await server.stop()
            await cluster.close()
