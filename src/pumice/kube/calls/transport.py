"""One request and its answer over HTTP, with every way it can end told apart."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from pumice.kube import errors
from pumice.kube.calls import answers, direct
from pumice.kube.calls.http_answers import Answer
from pumice.kube.calls.requests import Head, Request

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Mapping
    from types import TracebackType

    from pumice.kube.access.endpoint import Connection
    from pumice.kube.calls.channels import Channel

__all__ = ["LARGEST_ANSWER", "Request", "Transport"]

LARGEST_ANSWER: Final = 256 << 20
_LARGEST_REFUSAL: Final = 1 << 20  # of a stream


class Transport:
    """A pool of connections to one API server, used inside `async with`.

    Nothing is sent twice here, except after a 401 with newer credentials: then nothing has happened yet. Redirects are not followed, so
    credentials reach no other server. Answers are not compressed: that costs the server more than a nearby network.
    """

    def __init__(
        self, connection: Connection, *, user_agent: str, largest: int, way: Callable[[int], Channel] | None = None
    ) -> None:
        self.connection = connection
        self._way = way
        self._host = urlsplit(connection.server).netloc
        self._common = {"User-Agent": user_agent, "Accept": "application/json", "Accept-Encoding": "identity"}
        self._largest = largest
        self._channel: Channel | None = None
        self._heads: tuple[Mapping[str, str], dict[str, Head]] = ({}, {})

    async def __aenter__(self) -> Self:
        connection, largest = self.connection, self._largest
        if self._way is not None:
            self._channel = self._way(largest)
        elif connection.proxy_url or not watches_sockets(asyncio.get_running_loop()):
            from pumice.kube.calls import aiohttp_channel  # noqa: PLC0415  most do not need it, and all would load it

            self._channel = aiohttp_channel.AiohttpChannel(
                connection.server, connection.tls_server_name, connection.proxy_url, largest
            )
        else:
            self._channel = direct.Direct(connection.server, connection.tls_server_name, largest)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def exchange(self, request: Request, limit: Callable[[], float]) -> bytes:
        """Send a request once and return the body of a good answer; `limit` is asked how many seconds it may take whenever it leaves, and may raise."""
        result = await self._result(request, limit)
        # Raised out here, so that no error which knows our headers hangs on to it.
        if isinstance(result, errors.KubeError):
            raise result
        return result

    async def _result(self, request: Request, limit: Callable[[], float]) -> bytes | errors.KubeError:
        channel, timeout = self._opened(), 0.0
        try:
            secret, context = await self._credentials()
            timeout = limit()
            answer = await channel.exchange(request, self._head(secret, request), context, timeout)
            if answer.status == 401 and self.connection.refused(secret):
                secret, context = await self._credentials()
                timeout = limit()
                answer = await channel.exchange(request, self._head(secret, request), context, timeout)
        except channel.failures as error:
            return channel.explain(error, request, timeout)
        if 200 <= answer.status < 300:
            return answer.body
        return answers.refusal(answer, request, self.connection)

    async def stream(self, request: Request, silence: float) -> AsyncGenerator[bytes, None]:
        """Send a request once and yield the body of a good answer as it arrives; raise `SilenceError` after so many seconds without a byte."""
        channel = self._opened()
        failure: errors.KubeError | None = None
        try:
            async with contextlib.aclosing(self._parts(channel, request, silence)) as parts:
                async for part in parts:
                    yield part
        except channel.failures as error:
            failure = channel.explain(error, request, silence, silence=True)
        except errors.KubeError as error:
            failure = error
        # Raised out here, as above.
        if failure is not None:
            raise failure.with_traceback(None)

    async def _parts(self, channel: Channel, request: Request, silence: float) -> AsyncGenerator[bytes, None]:
        tried = False
        while True:
            secret, context = await self._credentials()
            answer = Answer(None)
            stream = channel.stream(request, self._head(secret, request), context, answer, silence)
            async with contextlib.aclosing(stream) as parts:
                await anext(parts)
                if answer.status == 401 and not tried and self.connection.refused(secret):
                    tried = True
                    continue
                if answer.status != 200:
                    answer.parts.append(await _whole(parts))
                    raise answers.refusal(answer, request, self.connection)
                async for part in parts:
                    yield part
                return

    def _opened(self) -> Channel:
        if self._channel is None:
            raise RuntimeError("the client is used outside its `async with` block")
        return self._channel

    async def _credentials(self) -> tuple[Mapping[str, str], ssl.SSLContext | None]:
        """Return the headers that authorise a request, and what to open connections with."""
        connection = self.connection
        secret = await connection.credentials.headers()
        if not connection.encrypted:
            return secret, None
        return secret, connection.tls.context(await connection.credentials.key_pair())

    def _head(self, secret: Mapping[str, str], request: Request) -> Head:
        """Return all headers of a request; they are put together once for each set of credentials."""
        if self._heads[0] is not secret:
            self._heads = (secret, {})
        content_type = request.content_type
        made = self._heads[1].get(content_type)
        if made is None:
            headers = {**self._common, **secret, **({"Content-Type": content_type} if content_type else {})}
            made = self._heads[1][content_type] = Head(self._host, headers)
        return made


def watches_sockets(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether a loop calls back when a socket can be read; that of Windows does not."""
    return type(loop).add_reader is not asyncio.AbstractEventLoop.add_reader


async def _whole(parts: AsyncGenerator[bytes, None]) -> bytes:
    """Read the refusal of a stream, as far as it is of interest."""
    read, size = [], 0
    async for part in parts:
        read.append(part)
        size += len(part)
        if size > _LARGEST_REFUSAL:
            break
    return b"".join(read)
