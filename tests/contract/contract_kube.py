"""A real cluster, as the contract sees it: effects go through `KubeWorld`, the test looks on with its own requests and with kubectl."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import time

import aiohttp
from aiohttp import web
from contract_sim import Seen, ordered

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube.access import connection, endpoint
from pumice.kube.calls import client, paths, retrying
from pumice.kube.calls.open_sockets import OpenSockets
from pumice.kube.writes import world
from testbed import calling, waiting

LOST = {"bind": ("POST", "/pods/{}/binding"), "evict": ("DELETE", "/pods/{}"), "status": ("PATCH", "/{}")}


class KubeHarness:
    """Each `perform` is a client and a world of its own, so nothing is remembered from one to the next."""

    def __init__(self, server, namespace):
        self.server = server
        self.namespace = namespace
        self.leading = True
        self.seen = Seen()
        self._lost = []

    def now(self):
        """Give the time, in microseconds."""
        return time.time_ns() // 1000

    def apply(self, *manifests):
        """Create objects with kubectl, then write the statuses that have a door of their own."""
        items = [{**manifest, "metadata": dict(manifest["metadata"])} for manifest in manifests]
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        self.server.kubectl("create", "-f", "-", input=json.dumps(listed))
        for manifest in manifests:
            kind = kinds.find(manifest["apiVersion"], manifest["kind"])
            if "status" in manifest and kind is not kinds.POD_GROUP:
                body = {"status": manifest["status"]}
                self._call("PATCH", kind, manifest["metadata"]["name"], body, subresource="status")

    def find(self, kind, name):
        try:
            return self._call("GET", kind, name)
        except calling.CallError as error:
            if error.answer.status != 404:
                raise
            return None

    def delete(self, kind, name):
        """Delete with the grace that the object asks for."""
        self._call("DELETE", kind, name)

    def patch(self, kind, name, body, subresource=""):
        """Merge a body into an object, as others do."""
        return self._call("PATCH", kind, name, body, subresource=subresource)

    def _call(self, method, kind, name, body=None, subresource=""):
        path = paths.path(kind, self.namespace if kind.namespaced else "", name, subresource)
        content_type = client.MERGE if method == "PATCH" else client.JSON
        return self.server.call(method, path, body, content_type=content_type)

    def lose_reply(self, verb, name):
        """Let the next write of a verb to a pod or group be done and its answer be lost."""
        method, end = LOST[verb]
        self._lost.append((method, end.format(name)))

    def events(self, kind, name):
        """Give type, reason and message of the events about an object, oldest first."""
        where = paths.path(kinds.EVENT, self.namespace if kind.namespaced else "default")
        found = [
            event
            for event in self.server.call("GET", where)["items"]
            if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind.name, name)
        ]
        found.sort(key=lambda event: event["metadata"]["name"])
        return [(event["type"], event["reason"], event["message"]) for event in found for _ in range(event["count"])]

    # -- what is tested ----------------------------------------------------------------------------------------

    def perform(self, *wanted, control_volumes=()):
        """Hand effects over and give their outcomes in the order of the effects."""
        return asyncio.run(self._perform(wanted, control_volumes))

    async def _perform(self, wanted, control_volumes):
        outcomes = []
        async with self._client() as api:
            acting = world.KubeWorld(api, observer=self.seen)
            running = asyncio.create_task(acting.run(outcomes.append))
            controlling = asyncio.create_task(self._control_volumes(control_volumes))
            for effect in wanted:
                acting.send(effect)
            answers = sum(not isinstance(effect, effects.Note) for effect in wanted)
            notes = len(wanted) - answers
            await waiting.soon(lambda: len(outcomes) == answers, every=0.002)
            await waiting.soon(lambda: acting.counts.events + acting.counts.events_dropped >= notes, every=0.002)
            await acting.drain(waiting.PATIENCE)
            await asyncio.gather(running, controlling)
        return ordered(wanted, outcomes)

    @contextlib.asynccontextmanager
    async def _client(self):
        """Give a client; if an answer is to be lost, one behind a proxy that loses it."""
        retry = retrying.RetryPolicy(attempts=1)
        async with contextlib.AsyncExitStack() as stack:
            where = connection.load(kubeconfig=str(self.server.kubeconfig))
            if self._lost:
                where = endpoint.Connection(await stack.enter_async_context(lossy_proxy(self.server, self._lost)))
            yield await stack.enter_async_context(
                client.Client(where, retry=retry, allowance=lambda: math.inf if self.leading else 0.0)
            )

    async def _control_volumes(self, pairs):
        """Play the volume controller: bind each claim once it, or the volume that was chosen for it, says so."""
        for claim, volume in pairs:
            await asyncio.to_thread(self._bind_claim, claim, volume)

    def _bind_claim(self, claim, volume):
        kind, other = kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME
        for _ in range(200):
            annotations = self.find(kind, claim)["metadata"].get("annotations", {})
            reference = (self.find(other, volume) or {}).get("spec", {}).get("claimRef")
            if reference or "volume.kubernetes.io/selected-node" in annotations:
                break
        self.patch(kind, claim, {"spec": {"volumeName": volume}})
        self.patch(kind, claim, {"status": {"phase": "Bound"}}, subresource="status")


@contextlib.asynccontextmanager
async def lossy_proxy(server, lost):
    """Stand between a client and the API server: forward every request, and hang up on the answers in `lost`, once each."""

    async def forward(request):
        body = await request.read()
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": request.headers.get("Content-Type", "")}
        async with session.request(request.method, server.url + request.path_qs, data=body, headers=headers) as answer:
            data = await answer.read()
        for method, end in list(lost):
            if request.method == method and request.path.removesuffix("/status").endswith(end):
                lost.remove((method, end))
                request.transport.close()
        return web.Response(status=answer.status, body=data, content_type=answer.content_type)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(application)
    sockets = OpenSockets()
    connector = aiohttp.TCPConnector(ssl=False, socket_factory=sockets.make)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
        await sockets.end()
