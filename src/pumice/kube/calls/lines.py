"""The lines of a watch, however the network cuts them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pumice.kube.calls.limiter import Limiter
    from pumice.kube.calls.transport import Request, Transport

LARGEST_LINE: Final = 32 << 20


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
    async with contextlib.aclosing(transport.stream(request, silence)) as chunks:
        async for chunk in chunks:
            for line in splitter.feed(chunk):
                yield line
    if splitter.pending:
        raise errors.BrokenConnectionError(f"{request.title}: the stream ended within a line")
