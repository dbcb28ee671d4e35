"""People with rights, reviews that are simulated, and the page as it is served inside a cluster: over TLS, to who signs in."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ssl

import aiohttp
import msgspec
import web_worlds as worlds

from pumice.server.admission import certificates
from pumice.server.flags.addresses import Address
from pumice.server.logs import logs
from pumice.web import serving
from pumice.web.access import Access
from pumice.web.relaying import Begin
from pumice.web.reviewing import Reviewed
from pumice.web.reviews import Person, ReviewError
from pumice.web.showing_certificates import Shown

HOME = ("pumice-system", "pumice-scheduler-configmap")
GROUPS = ("system:authenticated",)
EVERYTHING = {"nodes", "queues", "pods", "podgroups", "configmaps"}


class People:
    """Knows tokens and rights; a right is `resource`, or `resource@namespace`. Counts what it is asked."""

    def __init__(self, rights):
        self.rights = {name: set(given) for name, given in rights.items()}
        self.tokens = 0
        self.asked = []
        self.met = []
        self.broken = False

    async def person(self, token):
        self.tokens += 1
        if token.removeprefix("token-of-") not in self.rights:
            raise ReviewError("the API server does not know this token")
        return Person(token.removeprefix("token-of-"), GROUPS)

    async def may(self, person, question):
        if self.broken:
            raise ReviewError("what you may see cannot be asked for just now: it is down")
        self.met.append((person, question))
        self.asked.append((person.name, question))
        given = self.rights.get(person.name, set())
        return question.resource in given or f"{question.resource}@{question.namespace}" in given


def shared():
    """A cluster that two teams share: b took the place of a, a waits for b, and names tell of each other."""
    cluster = worlds.small()
    told = "Pod is evicted, because of {} for pod {} of group {} in queue research by the rules of gang, plan 3"
    worlds.feed(
        cluster,
        "ADDED",
        worlds.group("secret", namespace="b", phase="Running"),
        worlds.pod("secret-0", "secret", "n-1", namespace="b"),
        worlds.group("hopes", minimum=1, message="waits for b/secret-0 of b/secret to go, or a/runs-0"),
        worlds.pod("hopes-0", "hopes"),
        worlds.eviction("runs-9", told.format("preempt", "b/secret-0", "b/secret"), 1),
        worlds.eviction("secret-8", told.format("reclaim", "a/runs-0", "a/runs"), 2, namespace="b"),
        worlds.eviction("secret-7", told.format("reclaim", "b/secret-0", "b/secret"), 3, namespace="b"),
    )
    cluster.turn()
    return cluster


class Page:
    """Somebody who looks through a browser of their own."""

    def __init__(self, address, session):
        self.address, self.session = address, session

    async def sign_in(self, name):
        return await self.post("/api/session", {"token": f"token-of-{name}"})

    async def get(self, path, **headers):
        async with self.session.get(f"{self.address}{path}", headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def post(self, path, body, **headers):
        async with self.session.post(f"{self.address}{path}", json=body, headers=headers) as response:
            return response.status, await response.json(content_type=None)


class Inside:
    """A served page, its guard, and whoever opens it."""

    def __init__(self, server, guard, access, bundle, stack):
        self.server, self.guard, self.access = server, guard, access
        self.address = ""
        self.bundle, self._stack = bundle, stack

    async def open(self, pair=None):
        trust = ssl.create_default_context(cadata=self.bundle.authorities.decode())
        if pair is not None:
            trust.load_cert_chain(*pair)
        jar, connector = aiohttp.CookieJar(), aiohttp.TCPConnector(ssl=trust)
        session = aiohttp.ClientSession(cookie_jar=jar, connector=connector)
        return Page(self.address, await self._stack.enter_async_context(session))


@contextlib.asynccontextmanager
async def inside(cluster, people, *, hosts=(), client_ca=None, now=None, runs=True):
    bundle = certificates.make(["localhost"], dt.datetime.now(dt.UTC))
    access = Access(people, cluster.objects.counted, HOME, **({"now": now} if now else {}))
    guard = Reviewed(people, access, hosts)
    server = serving.Server(cluster, guard)
    begin = Begin(address=":0", client_ca=str(client_ca or ""))
    shown = Shown(begin, logs.Log(0, "text"), server.part_with_certificates)
    trusted = client_ca.read_bytes() if client_ca is not None else b""
    shown.show(msgspec.structs.replace(bundle, authorities=trusted))
    bound = await server.start(Address("127.0.0.1", 0), shown.context)
    async with contextlib.AsyncExitStack() as stack:
        if runs:
            stack.push_async_callback(_cancelled(access))
        try:
            served = Inside(server, guard, access, bundle, stack)
            served.shown = shown
            served.address = f"https://localhost:{bound.port}"
            yield served
        finally:
            await server.stop()
            await cluster.close()


def _cancelled(access):
    task = asyncio.create_task(access.run())

    async def end():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    return end
