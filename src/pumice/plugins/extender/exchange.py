"""Asking the server: one question after the other, and none any more in a cycle in which it has failed too often.

Who sends a request is handed in from outside; the plugin by itself asks nobody, so that tests, explanations and replays of files that others wrote reach no host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST: Final = 10 << 20  # of an answer
PATIENCE: Final = 3  # failures after which a server is not asked again in a cycle


class ExchangeError(Exception):
    """A question that got no usable answer."""


class Asker(Protocol):
    """Whoever sends a request and reads its answer."""

    def post(self, url: str, body: bytes, timeout: float) -> bytes:
        """Return the body of an answer with status 200, of at most `LARGEST` bytes, or raise an `ExchangeError`."""


class Nobody:
    """Asks nobody."""

    def post(self, url: str, body: bytes, timeout: float) -> bytes:
        """Say that nothing is asked here."""
        del body, timeout
        raise ExchangeError(f"{url} is not asked here: only a running scheduler asks an extender")


class Exchange:
    """The questions of one cycle to one server."""

    def __init__(self, asker: Asker, prefix: str, timeout: float) -> None:
        self._asker = asker
        self._prefix = prefix.rstrip("/")
        self._timeout = timeout
        self._failures = 0
        self._last = ""

    def ask(self, verb: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return an answer, which is a JSON object."""
        text = self.tell(verb, question)
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            raise self._failed(ExchangeError(f"{verb}: the answer, {len(text)} bytes, is no JSON object")) from None

    def tell(self, verb: str, question: Mapping[str, Any]) -> bytes:
        """Send something whose answer does not matter."""
        if self._failures >= PATIENCE:
            raise ExchangeError(f"{verb}: not asked, after {self._failures} failures in this cycle: {self._last}")
        try:
            body = msgspec.json.encode(question)
            return self._asker.post(f"{self._prefix}/{verb.lstrip('/')}", body, self._timeout)
        except ExchangeError as error:
            raise self._failed(error) from None

    def _failed(self, error: ExchangeError) -> ExchangeError:
        self._failures += 1
        self._last = str(error)
        return error
