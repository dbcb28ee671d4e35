"""A server that answers each request with the next step of a script, down to the bytes, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client
from pumice.kube.calls.retrying import RetryPolicy

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

QUICK = RetryPolicy(attempts=3, first=0.001, longest=0.002)


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Step:
    """Send these bytes in these chunks; then keep the connection, close or reset it, or say nothing more.

    `cut` resets it when only the head of the request was read.
    """

    chunks: tuple[bytes, ...] = ()
    then: str = "keep"


CLOSE = Step(then="close")
HANG = Step(then="hang")
RESET = Step(then="reset")
CUT = Step(then="cut")


def reply(status: int, body: Any = None, **headers: str) -> Step:
    data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    lines = [f"HTTP/1.1 {status} Text", f"Content-Length: {len(data)}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return Step(("\r\n".join(lines).encode() + b"\r\n\r\n" + data,))


def refuse(status: int, reason: str, message: str = "no", **headers: str) -> Step:
    return reply(status, {"kind": "Status", "status": "Failure", "reason": reason, "message": message}, **headers)


def chunked(*chunks: bytes, then: str = "end") -> Step:
    """A stream in chunked encoding, each chunk a write of its own."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    if then == "end":
        return Step((head, *parts, b"0\r\n\r\n"))
    return Step((head, *parts), then)


@dataclass
class ScriptedServer:
    steps: list[Step]
    asked: list[Asked] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    port: int = 0
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @contextlib.asynccontextmanager
    async def running(self, context: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
        tasks: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            self.connections += 1
            try:
                await self._serve(reader, writer)
            except (ConnectionError, asyncio.CancelledError):
                pass
            finally:
                tasks.discard(task)
                writer.transport.abort()
                self.finished.set()

        server = await asyncio.start_server(serve, "127.0.0.1", self.port, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        self.scheme = "https" if context else "http"
        try:
            yield self
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except asyncio.IncompleteReadError:
                self.left.set()
                return
            first, *rest = head.strip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
            step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
            length = 0 if step.then == "cut" else int(headers.get("content-length", "0"))
            body = await reader.readexactly(length)
            method, path, _ = first.split(" ")
            self.asked.append(Asked(method, path, headers, body))
            self.arrived.set()
            for chunk in step.chunks:
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(0)
            if step.then in ("reset", "cut"):
                # Closing without lingering says so to the other side at once, in the middle of whatever it is writing.
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return
            if step.then == "close":
                return
            if step.then == "hang":
                await reader.read()
                self.left.set()
                return


def client(server: ScriptedServer, **options: Any) -> Client:
    options.setdefault("retry", QUICK)
    return Client(Connection(server.url), **options)
