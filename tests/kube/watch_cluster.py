"""Pods of one scheduler on a real API server: written by the test, followed by informers whose connection the test can cut."""

import asyncio
import contextlib
import random

from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.watches.informers import Informers
from testbed import waiting

MERGE = "application/merge-patch+json"


class Pods:
    """The pods of one scheduler in one namespace, so that whatever else is in the cluster does not matter."""

    def __init__(self, server, namespace):
        self.server = server
        self.scheduler = f"watched-{namespace}"
        self.selector = f"spec.schedulerName={self.scheduler}"
        self._path = f"/api/v1/namespaces/{namespace}/pods"

    def create(self, name, node="", scheduler=""):
        spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": scheduler or self.scheduler}
        if node:
            spec["nodeName"] = node
        return self.server.call("POST", self._path, {"metadata": {"name": name}, "spec": spec})["metadata"]["uid"]

    def modify(self, name, label):
        body = {"metadata": {"labels": {"label": label}}}
        self.server.call("PATCH", f"{self._path}/{name}", body, content_type=MERGE)

    def finish(self, name):
        self.server.call("PATCH", f"{self._path}/{name}/status", {"status": {"phase": "Succeeded"}}, content_type=MERGE)

    def delete(self, name):
        self.server.call("DELETE", f"{self._path}/{name}", {"gracePeriodSeconds": 0})

    def state(self):
        """Return what the server holds, as the checking sink holds it."""
        items = self.server.call("GET", f"{self._path}?fieldSelector={self.selector}")["items"]
        return {
            item["metadata"]["name"]: (item["metadata"]["uid"], int(item["metadata"]["resourceVersion"]))
            for item in items
        }


class Recording:
    """A client that writes down what is asked, and breaks watches when told to."""

    def __init__(self, client, cuts=()):
        self.client = client
        self._cuts = iter(cuts)
        self.asked = []
        self.away = False

    async def request(self, method, path):
        return await self.client.request(method, path)

    async def list_page(self, kind, *, query):
        self.asked.append("list")
        self._check()
        return await self.client.list_page(kind, query=query)

    async def stream(self, kind, *, query, silence):
        self.asked.append("stream" if "sendInitialEvents" in query else "watch")
        self._check()
        left = next(self._cuts, None)
        async with contextlib.aclosing(self.client.stream(kind, query=query, silence=silence)) as lines:
            async for line in lines:
                self._check()
                yield line
                left = None if left is None else left - 1
                if left == 0:
                    raise errors.BrokenConnectionError("cut by the test")

    def _check(self):
        if self.away:
            raise errors.UnreachableError("kept away by the test")


@contextlib.asynccontextmanager
async def following(server, specs, sink, *, kubeconfig="", cuts=(), **settings):
    """Run informers against a server; give them and the recording client. If they break down, so does whoever waits for them."""
    found = connection.load(str(kubeconfig or server.kubeconfig))
    async with Client(found, timeout=waiting.PATIENCE) as client, asyncio.TaskGroup() as tasks:
        recording = Recording(client, cuts)
        made = Informers(recording, specs, sink, rng=random.Random(1), **settings)  # noqa: S311  jitter
        task = tasks.create_task(made.run())
        yield made, recording
        task.cancel()


async def until_equal(pods, sink):
    """Wait until the sink holds what the server holds."""
    state = await asyncio.to_thread(pods.state)
    await waiting.soon(lambda: sink.known == state)
