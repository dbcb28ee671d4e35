"""A proxy on loopback between a client and an API server: it does to requests whatever the rules say, and counts them.

The client speaks plain HTTP to it and needs no credentials; the proxy speaks TLS to the server, with the server's own token.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
import urllib.parse
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import aiohttp
from aiohttp import web

from pumice.kube.calls.open_sockets import OpenSockets
from testbed import faults

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path
    from types import TracebackType

_READS = frozenset(("GET", "HEAD"))
_PASSED = ("Content-Type", "Accept", "User-Agent")
_UNCOUNTED = re.compile(r"/(events|leases)\b")
_LARGEST = 64 << 20
_LARGEST_LINE = 4 << 20


class Call(NamedTuple):
    """A request that came in: `path` with its query, decoded; `disturbed` if a rule took it."""

    method: str
    path: str
    disturbed: bool


class Rule:
    """What happens to requests of a method whose path and query match a pattern: to the first `skip` nothing, to `times` more the fault."""

    def __init__(self, fault: faults.Fault, method: str, pattern: str, times: int | None, skip: int) -> None:
        self.fault = fault
        self.hits = 0
        self._method = method
        self._pattern = re.compile(pattern)
        self._times = times
        self._skip = skip

    def takes(self, method: str, path: str) -> bool:
        """Tell whether a request is for this rule, and count it."""
        if self._method not in ("*", method) or not self._pattern.search(path):
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        if self._times is not None and self.hits >= self._times:
            return False
        self.hits += 1
        return True


class Proxy:
    """Runs in a thread of its own, inside `with`. Rules are tried in the order they were made; what none of them takes passes."""

    def __init__(self, server: str, token: str, ca_file: Path) -> None:
        self.calls: list[Call] = []
        self.token: str | None = None
        """The token that clients have to show; without one anybody may pass."""
        self._server = server
        self._token = token
        self._context = ssl.create_default_context(cafile=ca_file)
        self._sockets = OpenSockets()
        self._rules: list[Rule] = []
        self._open: set[_Exchange] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._port = 0

    @property
    def url(self) -> str:
        """Return the address for clients."""
        return f"http://127.0.0.1:{self._port}"

    # -- rules -------------------------------------------------------------------------------------------------

    def disturb(self, fault: faults.Fault, method: str, pattern: str, *, times: int | None = 1, skip: int = 0) -> Rule:
        """Let a fault befall requests; method `*` is any, `times=None` for ever."""
        rule = Rule(fault, method, pattern, times, skip)
        self._rules.append(rule)
        return rule

    def calm(self) -> None:
        """Drop every rule; what is held is let go."""
        rules, self._rules = self._rules, []
        for rule in rules:
            if isinstance(rule.fault, faults.Hold):
                rule.fault.release()

    def cut(self, pattern: str = "") -> int:
        """Break every connection with a request that is being served and matches; returns how many there were."""
        found: int = self._do(self._cut(re.compile(pattern)))
        return found

    def serving(self, pattern: str) -> int:
        """Count the requests that are being served and match."""
        return sum(1 for exchange in tuple(self._open) if re.search(pattern, exchange.path))

    def count(self, method: str, pattern: str) -> int:
        """Count the requests that have come in."""
        return sum(1 for call in self.calls if call.method == method and re.search(pattern, call.path))

    @property
    def writes(self) -> list[Call]:
        """The writes that have come in, events and leases left out."""
        return [call for call in self.calls if call.method not in _READS and not _UNCOUNTED.search(call.path)]

    @property
    def busy(self) -> bool:
        """Whether a request other than a watch is being served, or is yet to reach the server though its client has given up."""
        return any("watch=" not in exchange.path for exchange in tuple(self._open))

    # -- its life ----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.calm()
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=self._context, keepalive_timeout=5, socket_factory=self._sockets.make
            ),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            read_bufsize=_LARGEST_LINE,
        )
        application = web.Application(client_max_size=_LARGEST)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._cut(re.compile(""))
        await self._runner.cleanup()
        await self._session.close()
        await self._sockets.end()
        await self._loop.shutdown_asyncgens()

    # -- serving -----------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path = urllib.parse.unquote(request.path_qs)
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return await faults.Answer(401).befall(_Exchange(self, request, b"", path))
        rule = next((rule for rule in self._rules if rule.takes(request.method, path)), None)
        self.calls.append(Call(request.method, path, rule is not None))
        exchange = _Exchange(self, request, await request.read(), path)
        self._open.add(exchange)
        try:
            return await (exchange.forward() if rule is None else rule.fault.befall(exchange))
        except (aiohttp.ClientError, OSError):
            return exchange.hang_up()  # the server, or the client, has hung up first
        finally:
            self._open.discard(exchange)

    async def _cut(self, pattern: re.Pattern[str]) -> int:
        chosen = [exchange for exchange in self._open if pattern.search(exchange.path)]
        for exchange in chosen:
            exchange.hang_up()
        return len(chosen)

    def ask(self, request: web.Request, body: bytes) -> aiohttp.client._RequestContextManager:
        """Send a request on."""
        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        headers |= {"Authorization": f"Bearer {self._token}", "Accept-Encoding": "identity"}
        return self._session.request(
            request.method, self._server + request.raw_path, data=body, headers=headers, allow_redirects=False
        )


class _Exchange:
    """One request that is being served."""

    def __init__(self, proxy: Proxy, request: web.Request, body: bytes, path: str) -> None:
        self.path = path
        self._proxy = proxy
        self._request = request
        self._body = body
        self._ended = asyncio.Event()

    async def forward(self) -> web.StreamResponse:
        if "watch=" in self._request.query_string:
            return await self.relay(None)
        async with self._proxy.ask(self._request, self._body) as answer:
            data = await answer.read()
            return web.Response(status=answer.status, body=data, headers=_kept(answer))

    async def forward_silently(self) -> None:
        async with self._proxy.ask(self._request, self._body) as answer:
            await answer.read()

    async def relay(self, lines: int | None) -> web.StreamResponse:
        async with self._proxy.ask(self._request, self._body) as answer:
            response = web.StreamResponse(status=answer.status, headers=_kept(answer))
            await response.prepare(self._request)
            seen = 0
            while (lines is None or seen < lines) and (line := await self._line(answer)):
                await response.write(line)
                seen += 1
        return response

    async def _line(self, answer: aiohttp.ClientResponse) -> bytes:
        """Read the next line of a watch; nothing once either side has hung up."""
        reading = asyncio.ensure_future(answer.content.readuntil(b"\n"))
        ended = asyncio.ensure_future(self._ended.wait())
        await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not reading.done():
            reading.cancel()
            return b""
        return reading.result()

    async def never(self) -> web.StreamResponse:
        await self._ended.wait()
        return self.hang_up()

    def hang_up(self) -> web.StreamResponse:
        self._ended.set()
        if self._request.transport is not None:
            self._request.transport.abort()
        return web.Response()


def _kept(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
