"""Clients that send what is no request, or hang up amid one."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NO_REQUESTS = (
    b"\x00\x01\x02\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nno header\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
)
_RESET = struct.pack("ii", 1, 0)


def visit(connect: Callable[[], socket.socket], begun: bytes) -> None:
    """Be rude in every way; `begun` is the head of a request with a body that is never sent whole."""
    for text in NO_REQUESTS:
        with connect() as there, contextlib.suppress(OSError):
            there.sendall(text)
            while there.recv(65536):
                pass
    for reset in (True, False):
        with connect() as there:
            there.sendall(begun + b"Content-Length: 500\r\n\r\n{")
            time.sleep(0.1)  # so that it is read; a request that is not begun is no fault
            if reset:
                there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
