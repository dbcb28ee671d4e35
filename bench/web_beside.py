"""What the page costs the scheduler that serves it: processor time of the scheduler's process for a second of churn, taking changes in and a cycle, with ten viewers and without a page.

The page is a process of its own with real viewers; what is left in the scheduler's is telling it. All of that counts as if a cycle had to wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
from time import process_time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from bench import cases, worlds
from pumice.api import decoding, kinds
from pumice.cache.cache import Cache
from pumice.cache.options import Options
from pumice.framework import configuration, registry
from pumice.scheduler import Scheduler
from pumice.server.flags import settings
from pumice.server.logs.logs import Log
from pumice.study.rehearsal import Nowhere
from pumice.web import questions
from pumice.web.beside import Beside, widen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pumice.api.meta import KubeObject

NODES, JOBS, PODS, QUEUES = 1000, 2000, 10, 20
CHURN, VIEWERS, SECONDS, MOST = 20, 10, 60, 1.05
"""Jobs that end and come anew in a second, people who look, seconds that are measured, and the goal."""
VIEWING: Final = """
import asyncio, ssl, sys, aiohttp
async def view(address):
    trust = ssl.create_default_context(); trust.check_hostname = False; trust.verify_mode = ssl.CERT_NONE
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar, connector=aiohttp.TCPConnector(ssl=trust), timeout=aiohttp.ClientTimeout(None)) as session:
        async with session.post(address + "/api/session", json={"token": "x"}) as answer: assert answer.status == 200, await answer.text()
        async with session.get(address + "/api/scene") as answer: version = (await answer.json())["version"]
        async def look():
            async with session.get(address + "/api/changes?since=%d" % version) as changes:
                print("looks", flush=True)
                async for _ in changes.content.iter_any(): pass
        await asyncio.gather(*(look() for _ in range(int(sys.argv[2]))))
async def main(): await view(sys.argv[1])
asyncio.run(main())
"""


class _Objects:
    """A cluster of which some jobs end and come anew."""

    def __init__(self) -> None:
        self.all: list[tuple[kinds.Kind, KubeObject]] = []
        self._jobs: list[list[tuple[kinds.Kind, KubeObject]]] = []
        for manifest in worlds.shared(NODES, JOBS, PODS, QUEUES):
            manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
            kind = kinds.find(manifest["apiVersion"], manifest["kind"])
            made = decoding.decode_json(kind, msgspec.json.encode(manifest)) if kind is not None else None
            if kind is None or made is None or isinstance(made, decoding.Malformed):
                raise TypeError(manifest)
            self.all.append((kind, made))
            if kind is kinds.POD_GROUP:
                self._jobs.append([])
            if kind in (kinds.POD_GROUP, kinds.POD):
                self._jobs[-1].append((kind, made))

    def second(self, number: int, feed: Callable[..., None]) -> None:
        """Let some jobs end and come anew."""
        first = number * CHURN % (JOBS - CHURN)
        for job in self._jobs[first : first + CHURN]:
            for kind, each in job:
                feed(kind, "DELETED", each, b"")
        for job in self._jobs[first : first + CHURN]:
            for kind, each in job:
                feed(kind, "ADDED", each, b"")


def scheduler() -> list[cases.Figure]:
    """Measure seconds with and without a page in turn."""
    with_page, without = asyncio.run(_measured())
    ratio = statistics.median(with_page) / statistics.median(without)
    name = f"web: a scheduler's second of 1 % churn with {VIEWERS} viewers, by one without a page, {NODES:,} nodes, {JOBS * PODS:,} pods"
    return [cases.Figure(name, ratio, "times", f"<= {MOST}", ratio <= MOST, statistics.median(without), "s")]


async def _measured() -> tuple[list[float], list[float]]:
    objects, known = _Objects(), registry.installed()
    cache = Cache(Nowhere(), Options())
    clock = [worlds.START]
    decides = Scheduler(
        cache, configuration.load(cases.SHIPPED, known.catalog(), "bench"), lambda: clock[0], known=known
    )
    beside = Beside(settings.read({"web-address": "127.0.0.1:0"}), Log())
    for kind, each in objects.all:
        cache.feed(kind, "ADDED", each)
        beside.feed(kind, "ADDED", each, b"")
    decides.cycle()

    def both(kind: kinds.Kind, event_type: Any, found: Any, raw: bytes) -> None:
        cache.feed(kind, event_type, found)
        beside.feed(kind, event_type, found, raw)

    def alone(kind: kinds.Kind, event_type: Any, found: Any, _raw: bytes) -> None:
        cache.feed(kind, event_type, found)

    found: tuple[list[float], list[float]] = ([], [])
    async with _page(beside) as pipe:
        for number in range(2 * SECONDS + 4):
            clock[0] += 1_000_000
            shown = number % 2 == 0
            began = process_time()
            objects.second(number, both if shown else alone)
            decides.cycle()
            if shown:
                await beside.send_waiting(pipe)
            spent = process_time() - began
            if number >= 4:
                found[0 if shown else 1].append(spent)
            await asyncio.sleep(0.1)  # so that the page has its turn, too
    return found


@contextlib.asynccontextmanager
async def _page(beside: Beside) -> AsyncIterator[asyncio.StreamWriter]:
    """Run the page with viewers; reviews are answered here, and only while people sign in."""
    runner = web.AppRunner(_reviews(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    pipe = asyncio.subprocess.PIPE
    page = await asyncio.create_subprocess_exec(sys.executable, "-m", "pumice.web.inside", stdin=pipe, stderr=pipe)
    started = [page]
    try:
        assert page.stdin is not None  # noqa: S101  it was started with pipes
        assert page.stderr is not None  # noqa: S101  as above
        widen(page.stdin)
        begin = msgspec.structs.replace(beside.beginning(reads_first=False), master=address)
        page.stdin.write(questions.packed(begin))
        await beside.send_waiting(page.stdin)
        where = ""
        while "what=page" not in where:
            where = (await page.stderr.readline()).decode()
        where = "https://" + where.partition("address=")[2].split()[0]
        viewers = await asyncio.create_subprocess_exec(sys.executable, "-c", VIEWING, where, str(VIEWERS), stdout=pipe)
        started.append(viewers)
        assert viewers.stdout is not None  # noqa: S101  as above
        for _ in range(VIEWERS):
            await viewers.stdout.readline()
        yield page.stdin
    finally:
        for each in reversed(started):
            with contextlib.suppress(ProcessLookupError):
                each.kill()
            await each.wait()
        await runner.cleanup()


def _reviews() -> web.Application:
    async def token(_request: web.Request) -> web.Response:
        return web.json_response({"status": {"authenticated": True, "user": {"username": "viewer"}}})

    async def access(_request: web.Request) -> web.Response:
        return web.json_response({"status": {"allowed": True}})

    app = web.Application()
    app.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", token)
    app.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", access)
    return app
