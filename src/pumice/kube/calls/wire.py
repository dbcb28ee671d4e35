"""One connection to a server: a request goes out, its answer comes back, then the next one.

The socket is read and written by the event loop's own watch on its descriptor. Streams and protocols of asyncio, and its TLS, which is one in Python on top of
another in C, would cost more than everything else that is done for a request.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final

from pumice.kube import errors
from pumice.kube.calls.http_answers import Answer, GarbledAnswerError

if TYPE_CHECKING:
    import asyncio
    import socket

READ: Final = 1 << 18
READS: Final = 16  # in a row, before others get a turn
BUFFER: Final = 1 << 20  # bytes of a stream that wait to be taken before no more are read

_NOT_NOW: Final = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Wire:
    """A connection that is open; used by one request at a time."""

    __slots__ = (
        "_answer",
        "_encrypted",
        "_error",
        "_loop",
        "_number",
        "_sock",
        "_unsent",
        "_waiter",
        "_whole",
        "closed",
        "context",
        "paused",
        "used_at",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, context: ssl.SSLContext | None = None
    ) -> None:
        self.context = context
        self.closed = False
        self.used_at = 0.0
        self._loop = loop
        self._sock = sock
        self._encrypted = context is not None
        self._number = sock.fileno()
        self._answer: Answer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._unsent = memoryview(b"")
        self._whole = True  # whether an answer is of use only when it is complete
        self.paused = False
        self._error: Exception = ConnectionAbortedError("the connection is closed")
        loop.add_reader(self._number, self._read)

    @property
    def session(self) -> ssl.SSLSession | None:
        """What was agreed on with TLS, for connections that are opened later."""
        return self._sock.session if isinstance(self._sock, ssl.SSLSocket) else None

    def close(self) -> None:
        """End the connection; whoever waits for an answer is told that there will be none."""
        self.cut(self._error)

    def cut(self, error: Exception) -> None:
        """End the connection for a reason."""
        if self.closed:
            return
        self.closed = True
        self._error = error
        self._answer = None
        self._unsent = memoryview(b"")
        self._loop.remove_reader(self._number)
        self._loop.remove_writer(self._number)
        self._sock.close()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    # -- requests ----------------------------------------------------------------------------------------------

    async def ask(self, request: bytes, answer: Answer) -> None:
        """Send a request and return when its answer is whole; the connection is closed unless it can be used again."""
        try:
            self._whole = True
            self._send(request, answer)
            if not answer.done:
                await self._news()
        except BaseException:
            self.close()
            raise
        self.release(answer)

    async def begin(self, request: bytes, answer: Answer) -> None:
        """Send a request and return when the head of its answer is there."""
        self._whole = False
        self._send(request, answer)
        while not answer.status:
            await self._news()

    async def more(self, answer: Answer) -> bytes:
        """Give what has arrived of an answer since the last time; nothing once it is whole."""
        while not answer.parts and not answer.done:
            if self.paused:
                self.paused = False
                self._loop.add_reader(self._number, self._read)
            await self._news()
        return answer.take()

    def release(self, answer: Answer) -> None:
        """Let the connection go after an answer."""
        self._answer = None
        if self._unsent or not answer.keeps:
            self.close()

    # -- the socket --------------------------------------------------------------------------------------------

    def _send(self, request: bytes, answer: Answer) -> None:
        if self.closed:
            raise self._error
        self._answer = answer
        try:
            sent = self._sock.send(request)
        except _NOT_NOW:
            sent = 0
        if sent < len(request):
            self._unsent = memoryview(request)[sent:]
            self._loop.add_writer(self._number, self._write)

    async def _news(self) -> None:
        """Wait until something was read."""
        if self.closed:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _write(self) -> None:
        try:
            sent = self._sock.send(self._unsent)
        except _NOT_NOW:
            return
        except OSError as error:
            self.cut(error)
            return
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._loop.remove_writer(self._number)

    def _read(self) -> None:
        answer = self._answer
        try:
            for _ in range(READS):
                data = self._sock.recv(READ)
                if answer is None:  # the server ends the connection, or says what nobody asked for
                    self.close()
                    return
                if data:
                    answer.feed(data)
                else:
                    answer.end()
                if answer.done or not data or (not self._encrypted and len(data) < READ):
                    break
        except _NOT_NOW:
            pass
        except (OSError, GarbledAnswerError, errors.OversizeError) as error:
            self.cut(error)
            return
        if answer is not None:
            self._tell(answer)

    def _tell(self, answer: Answer) -> None:
        """Wake whoever waits for an answer, unless there is no news yet, and stop reading what nobody takes."""
        waiter = self._waiter
        if answer.done or (not self._whole and answer.status):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
            elif not self.paused and not answer.done and sum(map(len, answer.parts)) > BUFFER:
                self.paused = True
                self._loop.remove_reader(self._number)
