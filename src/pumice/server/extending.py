"""How a running scheduler asks an extender: requests over connections that are kept, within bounds of size and time."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import urllib.parse
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.plugins.extender import Extender, exchange

if TYPE_CHECKING:
    from pumice.framework.registry import Registry

_PLAIN_PORT: Final = 80


class HttpAsker:
    """Keeps one connection to each server; used by the deciding thread alone."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], http.client.HTTPConnection] = {}

    def post(self, url: str, body: bytes, timeout: float) -> bytes:
        """Send a question; a connection that was kept and is gone is made anew once."""
        parts = urllib.parse.urlsplit(url)
        key = (parts.scheme, parts.netloc)
        try:
            if key in self._kept:
                with contextlib.suppress(http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                    return self._exchanged(self._kept[key], parts.path, body, timeout)
                self._drop(key)
            self._kept[key] = _connected(parts, timeout)
            return self._exchanged(self._kept[key], parts.path, body, timeout)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._drop(key)
            why = f"took longer than {timeout:g} s" if isinstance(error, TimeoutError) else type(error).__name__
            raise exchange.ExchangeError(f"POST {parts.path} of {parts.hostname} failed: {why}") from None
        except exchange.ExchangeError:
            self._drop(key)
            raise

    def _exchanged(self, connection: http.client.HTTPConnection, path: str, body: bytes, timeout: float) -> bytes:
        """Ask over a connection, which is cut when the time is over: a server that sends a byte now and then takes no longer than one that sends none."""
        if connection.sock is None:
            connection.connect()
        cut = threading.Event()
        timer = threading.Timer(timeout, _cut, (connection.sock, cut))
        timer.daemon = True
        timer.start()
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read(exchange.LARGEST + 1)
        except (OSError, http.client.HTTPException):
            if cut.is_set():
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()
        if cut.is_set():
            raise TimeoutError
        if answer.status != 200:
            raise exchange.ExchangeError(f"POST {path} is answered with status {answer.status}, not 200")
        if len(text) > exchange.LARGEST:
            raise exchange.ExchangeError(f"the answer to POST {path} is larger than {exchange.LARGEST} bytes")
        if answer.length:
            raise exchange.ExchangeError(f"the answer to POST {path} ends {answer.length} bytes too soon")
        return text

    def close(self) -> None:
        """Let all connections go."""
        for key in list(self._kept):
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        connection = self._kept.pop(key, None)
        if connection is not None:
            connection.close()


def _cut(kept: socket.socket, cut: threading.Event) -> None:
    cut.set()
    with contextlib.suppress(OSError):
        kept.shutdown(socket.SHUT_RDWR)


def _connected(parts: urllib.parse.SplitResult, timeout: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, parts.port or _PLAIN_PORT, timeout=timeout)


def asking(known: Registry) -> Registry:
    """Let the extender among the plugins ask its server."""

    class Asking(Extender):
        asker = HttpAsker()

    return msgspec.structs.replace(known, plugins={**known.plugins, Extender.name: Asking})
