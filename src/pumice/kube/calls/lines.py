"""The lines of a watch, however the network cuts them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import aiohttp

from pumice.kube import errors
from pumice.kube.calls import answers
from pumice.kube.calls.transport import CONNECT_LIMIT, Request, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pumice.kube.calls.limiter import Limiter

LARGEST_LINE: Final = 32 << 20
_LARGEST_REFUSAL: Final = 1 << 20


class LineSplitter:
    """Puts lines together from chunks cut anywhere; a line without an end is bounded."""

    def __init__(self, largest: int = LARGEST_LINE) -> None:
        self._largest = largest
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished line are held."""
        return self._size

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a chunk and return the lines that it completes, without their ends and without empty ones."""
        head, *rest = chunk.split(b"\n")
        self._parts.append(head)
        self._size += len(head)
        if self._size > self._largest:
            raise errors.OversizeError(
                f"a line of a watch has more than {self._largest} bytes, which is all that is read"
            )
        if not rest:
            return []
        rest.insert(0, b"".join(self._parts))
        last = rest.pop()
        self._parts = [last]
        self._size = len(last)
        return [line for line in rest if line]


async def stream(
    transport: Transport, limiter: Limiter, request: Request, silence: float
) -> AsyncGenerator[bytes, None]:
    """Yield the lines of one watch until its end; it is not opened again here."""
    await limiter.acquire()
    splitter = LineSplitter()
    failure: errors.KubeError | None = None
    try:
        async with contextlib.aclosing(_chunks(transport, request, silence)) as chunks:
            async for chunk in chunks:
                for line in splitter.feed(chunk):
                    yield line
        if splitter.pending:
            failure = errors.BrokenConnectionError(f"{request.title}: the stream ended within a line")
    except aiohttp.SocketTimeoutError:
        failure = errors.SilenceError(f"{request.title}: no byte arrived for {silence:g} s")
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        failure = answers.translate(error, request, transport.connection.server, silence)
    # Raised out here, so that aiohttp's error, which knows our headers, does not hang on to it.
    if failure is not None:
        raise failure


async def _chunks(transport: Transport, request: Request, silence: float) -> AsyncGenerator[bytes, None]:
    limits = aiohttp.ClientTimeout(total=None, connect=CONNECT_LIMIT, sock_read=silence)
    response = await transport.open(request, lambda: limits)
    try:
        if response.status != 200:
            body = await answers.read(response, _LARGEST_REFUSAL, request)
            raise answers.refusal(response, body, request, transport.connection)
        async for chunk in response.content.iter_any():
            yield chunk
    finally:
        response.close()
        del response
