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

    def __init__(self, log: Log, noun: str = "pod") -> None:
        self._log = log
        self._noun = noun
        self._found: dict[tuple[str, str], dict[str, Failure]] = {}  # by verb and code: object, failure
        self._any = asyncio.Event()

    def add(self, verb: str, name: str, failure: Failure) -> None:
        """Take note of a write that failed."""
        if failure.code in _PASSING:
            self._found.setdefault((verb, failure.code), {})[name] = failure
            self._any.set()
        else:
            self._log.warning(f"{verb} failed", **{self._noun: name}, code=failure.code, reason=failure.message)

    def tell(self) -> None:
        """Tell what has come together, with one example."""
        found, self._found = self._found, {}
        for (verb, code), objects in found.items():
            example, failure = next(iter(objects.items()))
            count = {f"{self._noun}s": len(objects)}
            self._log.warning(f"{verb} failed", **count, code=code, example=example, reason=failure.message)

    async def run(self) -> None:
        """Tell at most every second, until cancelled, and then of the rest."""
        try:
            while True:
                await self._any.wait()
                await asyncio.sleep(PAUSE)
                self._any.clear()
                self.tell()
        finally:
            self.tell()
