"""Tells the log of writes that failed: of each refusal, and together of those that fail in passing, which all do while the API server is away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pumice.cache.effects import Failure
    from pumice.server.logs.logs import Log

PAUSE: Final = 1.0  # seconds between two lines about failures in passing
_PASSING: Final = ("unavailable", "unknown")


class WriteFailures:
    """Writes a line at once, or counts for the next line; both by the I/O thread."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._pods: dict[tuple[str, str], dict[str, Failure]] = {}  # by verb and code: pod, failure

    def add(self, verb: str, pod: str, failure: Failure) -> None:
        """Take note of a write that failed."""
        if failure.code in _PASSING:
            self._pods.setdefault((verb, failure.code), {})[pod] = failure
        else:
            self._log.warning(f"{verb} failed", pod=pod, code=failure.code, reason=failure.message)

    def tell(self) -> None:
        """Tell what has come together, with one example."""
        found, self._pods = self._pods, {}
        for (verb, code), pods in found.items():
            example, failure = next(iter(pods.items()))
            self._log.warning(f"{verb} failed", pods=len(pods), code=code, example=example, reason=failure.message)

    async def run(self) -> None:
        """Tell every second, until cancelled, and then of the rest."""
        try:
            while True:
                await asyncio.sleep(PAUSE)
                self.tell()
        finally:
            self.tell()
