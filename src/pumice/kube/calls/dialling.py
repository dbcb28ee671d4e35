"""Opens connections to a server: its addresses one after the other, then TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from typing import TYPE_CHECKING, Any, Final

from pumice.kube.calls.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAMES_KEPT: Final = 30.0  # seconds for which the addresses of a name are remembered

_Address = tuple[int, int, int, str, Any]


class DiallingError(Exception):
    """No connection could be opened, so nothing was sent; `cause` says why, a `TimeoutError` that it took too long."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Dialler:
    """Knows where a server is."""

    def __init__(self, host: str, port: int, *, server_name: str = "") -> None:
        self._host = host
        self._port = port
        self._server_name = server_name or host
        self._addresses: Sequence[_Address] = ()
        self._found_at = float("-inf")
        self._agreed: tuple[ssl.SSLContext | None, ssl.SSLSession | None] = (None, None)

    async def open(self, context: ssl.SSLContext | None, limit: float) -> Wire:
        """Open a connection within so many seconds, or raise `DiallingError`."""
        failed: Exception
        try:
            async with asyncio.timeout(limit):
                return await self._open(context, limit)
        except (OSError, TimeoutError, ssl.SSLError) as error:
            failed = error
        except UnicodeError as error:  # of a name that is none
            failed = socket.gaierror(socket.EAI_NONAME, str(error))
        raise DiallingError(failed)

    def remember(self, wire: Wire) -> None:
        """Let connections that are opened from now on go on from what was agreed on this one, which has an answer: nobody has to check certificates again."""
        self._agreed = wire.context, wire.session

    async def _open(self, context: ssl.SSLContext | None, limit: float) -> Wire:
        loop = asyncio.get_running_loop()
        sock = await self._connect(loop, limit)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                # An answer that ends with the connection must end with a goodbye of TLS, too.
                sock = context.wrap_socket(
                    sock,
                    server_hostname=self._server_name,
                    do_handshake_on_connect=False,
                    suppress_ragged_eofs=False,
                    session=self._agreed[1] if self._agreed[0] is context else None,
                )
                await _shake_hands(loop, sock)
            return Wire(loop, sock, context)
        except BaseException:
            self._agreed = (None, None)  # a server, or whoever stands before it, may refuse just that
            sock.close()
            raise

    async def _connect(self, loop: asyncio.AbstractEventLoop, limit: float) -> socket.socket:
        """Connect to the first address that answers; none of several may use up all of the time."""
        addresses = await self._known_addresses(loop)
        failed: OSError = socket.gaierror(socket.EAI_NONAME, "no address")
        for family, kind, protocol, _, address in addresses:
            sock = socket.socket(family, kind, protocol)
            sock.setblocking(False)
            try:
                async with asyncio.timeout(limit / len(addresses) if len(addresses) > 1 else None):
                    await loop.sock_connect(sock, address)
            except OSError as error:  # as time-outs are
                sock.close()
                failed = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        self._found_at = float("-inf")
        raise failed

    async def _known_addresses(self, loop: asyncio.AbstractEventLoop) -> Sequence[_Address]:
        if loop.time() - self._found_at >= NAMES_KEPT:
            with contextlib.suppress(ValueError):
                ipaddress.ip_address(self._host)
                self._addresses = socket.getaddrinfo(
                    self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
                )
                self._found_at = float("inf")
                return self._addresses
            self._addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            self._found_at = loop.time()
        return self._addresses


async def _shake_hands(loop: asyncio.AbstractEventLoop, sock: ssl.SSLSocket) -> None:
    """Agree on TLS."""
    while True:
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            await _ready(loop.add_reader, loop.remove_reader, sock.fileno())
        except ssl.SSLWantWriteError:
            await _ready(loop.add_writer, loop.remove_writer, sock.fileno())
        else:
            return


async def _ready(watch: Callable[..., None], end: Callable[[int], object], number: int) -> None:
    """Wait until a descriptor can be read or written."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def note() -> None:
        if not ready.done():
            ready.set_result(None)

    watch(number, note)
    try:
        await ready
    finally:
        end(number)
