"""Ends the connections of a library that leaves some of them to say goodbye on their own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from typing import Any, Final

TURNS: Final = 100  # of the event loop, in which every connection that was cut has ended many times over


class OpenSockets:
    """Makes the sockets of a session, so that none outlives it.

    A TLS connection that was given up waits for the other side's goodbye. A server that is slow to say it would
    keep the socket open after the event loop has ended.
    """

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: tuple[Any, ...]) -> socket.socket:
        """Make a socket for an address as `getaddrinfo` names it."""
        family, kind, protocol = address[:3]
        made = socket.socket(family, kind, protocol)
        self._made.add(made)
        return made

    async def end(self) -> None:
        """Cut what is still open, and return when the event loop has closed it."""
        for _ in range(TURNS):
            open_still = [sock for sock in self._made if sock.fileno() >= 0]
            if not open_still:
                return
            for sock in open_still:
                with contextlib.suppress(OSError):  # of a socket that is not connected, or no longer
                    sock.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)
