"""Requests by aiohttp: through a proxy, with which it knows how to speak, or on an event loop that cannot watch sockets, as that of Windows."""

from __future__ import annotations

import functools
import math
import ssl
from typing import TYPE_CHECKING, Final

import aiohttp
import yarl

from pumice.kube import errors
from pumice.kube.calls import answers
from pumice.kube.calls.http_answers import Answer
from pumice.kube.calls.open_sockets import OpenSockets
from pumice.kube.calls.pool import CONNECT_LIMIT, KEPT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pumice.kube.calls.requests import Head, Request

READ_BUFFER: Final = 1 << 18


class AiohttpChannel:
    """A session with one server, behind a proxy unless its address is empty. Nothing is sent twice here, and redirects are not followed."""

    failures: tuple[type[Exception], ...] = (aiohttp.ClientError, OSError, errors.OversizeError)

    def __init__(self, server: str, server_name: str, proxy: str, largest: int) -> None:
        self._server = server
        self._server_name = server_name
        self._proxy = proxy
        self._largest = largest
        self._sockets = OpenSockets()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=30, keepalive_timeout=KEPT, socket_factory=self._sockets.make
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            middlewares=(_send_once,),
        )

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()
        await self._sockets.end()

    async def exchange(self, request: Request, head: Head, context: ssl.SSLContext | None, limit: float) -> Answer:
        """Send a request and return the whole answer, within so many seconds."""
        response = await self._send(request, head, context, _limits(limit))
        try:
            answer = _begun(response)
            answer.parts.append(await self._read(response))
        finally:
            response.release()
        return answer

    async def stream(
        self, request: Request, head: Head, context: ssl.SSLContext | None, answer: Answer, silence: float
    ) -> AsyncGenerator[bytes, None]:
        """Send a request and yield its answer as it arrives, first nothing when its head is there."""
        limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_LIMIT, sock_read=silence)
        response = await self._send(request, head, context, limits)
        try:
            begun = _begun(response)
            answer.status, answer.headers = begun.status, begun.headers
            yield b""
            async for part in response.content.iter_any():
                yield part
        finally:
            response.close()
            del response

    async def _send(
        self, request: Request, head: Head, context: ssl.SSLContext | None, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        try:
            return await self._session.request(
                request.method,
                yarl.URL(self._server + request.path, encoded=True),
                data=request.body,
                headers=head.headers,
                allow_redirects=False,
                timeout=limits,
                ssl=context if context is not None else True,
                server_hostname=self._server_name or None,
                proxy=self._proxy or None,
                read_bufsize=READ_BUFFER,
            )
        except _BrokenError as broken:
            raise broken.error from None

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """Read a body up to a limit."""
        announced = response.content_length
        if announced is not None and announced > self._largest:
            response.close()
            raise errors.OversizeError(f"the answer has {announced} bytes; at most {self._largest} are read")
        parts, size = [], 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > self._largest:
                response.close()
                raise errors.OversizeError(f"the answer has more than {self._largest} bytes, which is all that is read")
            parts.append(part)
        return b"".join(parts)

    def explain(self, error: Exception, request: Request, limit: float, *, silence: bool = False) -> errors.KubeError:
        """Return what an exception of aiohttp means for a request."""
        if isinstance(error, errors.OversizeError):
            return answers.oversized(error, request, self._server)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return answers.unreachable(TimeoutError(), request, self._server)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            text = f"{request.title}: {self._server}: the proxy refused with {error.status}; check the proxy's settings"
            return errors.UnreachableError(text)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return answers.unreachable(error.certificate_error, request, self._server)
        if isinstance(error, aiohttp.ClientConnectorError):
            proxy = error.host if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
            return answers.unreachable(error.os_error, request, self._server, proxy=str(proxy))
        if isinstance(error, aiohttp.InvalidURL):
            text = f"{request.title}: {self._server}: not a valid address"
            return errors.UnreachableError(text, transient=False)
        if silence and isinstance(error, aiohttp.SocketTimeoutError):
            return errors.SilenceError(f"{request.title}: no byte arrived for {limit:g} s")
        if isinstance(error, TimeoutError):
            return answers.unanswered(request, self._server, f"no whole answer within {limit:g} s")
        cause = error.__cause__ if isinstance(error.__cause__, ssl.SSLError) else error
        return answers.broken(cause, request, self._server)


def _begun(response: aiohttp.ClientResponse) -> Answer:
    answer = Answer(None)
    answer.status = response.status
    answer.headers = {name.lower(): value for name, value in response.headers.items()}
    return answer


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
