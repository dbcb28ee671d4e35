"""Keeps the certificate that is shown a good one: the API server is told of a new one first, and the old one shown until it has heard."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pumice.server.admission import certificate_sources

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pumice.server.admission.certificates import Bundle

SETTLE: Final = 30.0  # seconds that API servers get to hear of a new authority before its certificate is shown
RETRY: Final = 2.0
PATIENCE: Final = 24 * 3600.0  # seconds that the announcement of a new certificate may take


class Keeper:
    """Follows a source.

    `trust` lets API servers be told whom to believe, `announced` says whether they were, and `show` changes what clients see and says whether it could.
    """

    def __init__(
        self,
        source: certificate_sources.Source,
        *,
        trust: Callable[[Bundle], None],
        announced: Callable[[], bool],
        show: Callable[[Bundle], bool],
        warn: Callable[[str, str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._trust = trust
        self._announced = announced
        self._show = show
        self._warn = warn
        self._sleep = sleep
        self._told = ""
        self.shown: Bundle | None = None

    async def start(self) -> None:
        """Wait for a certificate and show it; files that cannot be read are an error at once."""
        while True:
            bundle = await self._read()
            if bundle is not None:
                break
            await self._sleep(RETRY)
        self._trust(bundle)
        self._show(bundle)
        self.shown = bundle

    async def run(self) -> None:
        """Look every so often, until cancelled."""
        while True:
            await self._sleep(self._source.pause)
            bundle = await self._read()
            if bundle is None or bundle == self.shown:
                continue
            self._trust(bundle)
            await self._wait_for_announcement()
            await self._sleep(SETTLE)
            if self._show(bundle):
                self.shown = bundle

    async def _wait_for_announcement(self) -> None:
        """Wait until the new authority is written where API servers read it; not for ever, for the old certificate ends."""
        for _ in range(round(PATIENCE / RETRY)):
            if self._announced():
                return
            await self._sleep(RETRY)
        self._warn("the API server was not told of the new certificate", "it is shown all the same")

    async def _read(self) -> Bundle | None:
        try:
            bundle = await self._source.read()
        except certificate_sources.CertificateError as error:
            if self.shown is None and not self._source.patient:
                raise
            if str(error) != self._told:
                self._warn("the certificate cannot be looked after" if self.shown else "no certificate yet", str(error))
            self._told = str(error)
            return None
        self._told = ""
        return bundle
