"""One request and its answer over HTTP, with every way it can end told apart."""

from __future__ import annotations

import asyncio
import functools
import math
from typing import TYPE_CHECKING, Final, Self

import aiohttp
import msgspec
import yarl

from pumice.kube import errors
from pumice.kube.calls import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pumice.kube.access.endpoint import Connection

LARGEST_ANSWER: Final = 256 << 20
READ_BUFFER: Final = 1 << 18
CONNECT_LIMIT: Final = 10.0
FAREWELL: Final = 0.05
_READS: Final = frozenset(("GET", "HEAD"))


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent: a path with its query, and a body that is bytes already."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = ""

    @property
    def write(self) -> bool:
        """Whether it may change something."""
        return self.method not in _READS

    @property
    def title(self) -> str:
        """What messages call it: the method and the path without its query."""
        return f"{self.method} {self.path.partition('?')[0]}"


class Transport:
    """A pool of connections to one API server.

    Nothing is sent twice here, except after a 401 with newer credentials: then nothing has happened yet. Redirects are not followed, so
    credentials reach no other server. Answers are not compressed: that costs the server more than a nearby network.
    """

    def __init__(self, connection: Connection, *, user_agent: str, largest: int) -> None:
        self.connection = connection
        self._prefix = connection.server
        self._common = {"User-Agent": user_agent, "Accept": "application/json", "Accept-Encoding": "identity"}
        self._largest = largest
        self._session: aiohttp.ClientSession | None = None
        self._headers: tuple[Mapping[str, str], dict[str, dict[str, str]]] = ({}, {})

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=30, keepalive_timeout=60),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            middlewares=(_send_once,),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(FAREWELL)  # connections that were given up before are still saying goodbye
            self._session = None

    async def exchange(self, request: Request, limit: Callable[[], float]) -> bytes:
        """Send a request once and return the body of a good answer; `limit` is asked how many seconds it may take whenever it leaves, and may raise."""
        result = await self._result(request, limit)
        # Raised out here, so that neither aiohttp's error nor its response, which know our headers, hang on to it.
        if isinstance(result, errors.KubeError):
            raise result
        return result

    async def _result(self, request: Request, limit: Callable[[], float]) -> bytes | errors.KubeError:
        timeout = 0.0

        def limits() -> aiohttp.ClientTimeout:
            nonlocal timeout
            timeout = limit()
            return _limits(timeout)

        try:
            response = await self.open(request, limits)
            try:
                body = await answers.read(response, self._largest, request)
            finally:
                response.release()
        except (aiohttp.ClientError, OSError, TimeoutError, errors.OversizeError) as error:
            return answers.translate(error, request, self.connection.server, timeout)
        if 200 <= response.status < 300:
            return body
        return answers.refusal(response, body, request, self.connection)

    async def open(self, request: Request, limits: Callable[[], aiohttp.ClientTimeout]) -> aiohttp.ClientResponse:
        """Send a request and return the response as its headers arrive; with newer credentials once more after a 401."""
        response, headers = await self._send(request, limits)
        if response.status == 401 and self.connection.refused(headers):
            response.close()
            response, _ = await self._send(request, limits)
        return response

    async def _send(
        self, request: Request, limits: Callable[[], aiohttp.ClientTimeout]
    ) -> tuple[aiohttp.ClientResponse, Mapping[str, str]]:
        if self._session is None:
            raise RuntimeError("the client is used outside its `async with` block")
        connection = self.connection
        secret = await connection.credentials.headers()
        key_pair = await connection.credentials.key_pair() if connection.encrypted else None
        try:
            response = await self._session.request(
                request.method,
                yarl.URL(self._prefix + request.path, encoded=True),
                data=request.body,
                headers=self._assembled(secret, request.content_type),
                allow_redirects=False,
                timeout=limits(),
                ssl=connection.tls.context(key_pair) if connection.encrypted else True,
                server_hostname=connection.tls_server_name or None,
                proxy=connection.proxy_url or None,
                read_bufsize=READ_BUFFER,
            )
        except _BrokenError as broken:
            raise broken.error from None
        return response, secret

    def _assembled(self, secret: Mapping[str, str], content_type: str) -> dict[str, str]:
        """Return all headers of a request; they are put together once for each set of credentials."""
        if self._headers[0] is not secret:
            self._headers = (secret, {})
        made = self._headers[1].get(content_type)
        if made is None:
            made = {**self._common, **secret, **({"Content-Type": content_type} if content_type else {})}
            self._headers[1][content_type] = made
        return made


class _BrokenError(Exception):
    """A connection that broke, under a name that aiohttp does not know."""

    def __init__(self, error: aiohttp.ClientError) -> None:
        super().__init__(str(error))
        self.error = error


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating a PUT or DELETE whose connection broke: it would do so silently, and report what the second one met."""
    try:
        return await send(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _BrokenError(error) from None


@functools.lru_cache(maxsize=16)
def _limits(timeout: float) -> aiohttp.ClientTimeout:
    """Bound a whole exchange; connecting has its own, smaller limit, so that we know what a time-out means."""
    # aiohttp would round limits of more than a few seconds up to a whole second of its clock.
    return aiohttp.ClientTimeout(total=timeout, connect=min(CONNECT_LIMIT, timeout / 2), ceil_threshold=math.inf)
