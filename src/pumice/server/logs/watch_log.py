"""Tells the log how the watches are: what is not listed yet, which of them have lost the API server, and when they are back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from pumice.server.health import api_silence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.kube.watches.informers import WatchReport
    from pumice.server.logs.logs import Log

LOOK: Final = 5.0
NAMED: Final = 3  # errors that are written out; where nothing may be listed there are two dozen, all alike


class Reporting(Protocol):
    """What is looked at."""

    def report(self) -> Sequence[WatchReport]:
        """Say how each watch is doing."""


async def keep(informers: Reporting, log: Log) -> None:
    """Look every few seconds, until cancelled. A watch that is down at two looks in a row is worth a line, a shorter gap is not."""
    before: set[str] = set()
    told = False
    while True:
        await asyncio.sleep(LOOK)
        reports = informers.report()
        if missing := [report for report in reports if not report.synced]:
            log.warning(
                "waiting for lists", missing="; ".join(report.watch for report in missing), errors=_errors(missing)
            )
            continue
        down, of = api_silence.down(reports), len(api_silence.followed(reports))
        lasting = [report for report in down if report.watch in before]
        if lasting and not told:
            log.warning("watches are interrupted", down=len(lasting), of=of, errors=_errors(lasting))
        elif told and not down:
            log.info("watches are back", of=of)
        told = bool(lasting) or (told and bool(down))
        before = {report.watch for report in down}


def _errors(reports: Sequence[WatchReport]) -> str:
    errors = [report.error for report in reports if report.error]
    return "; ".join(errors[:NAMED]) + (f"; {len(errors) - NAMED} more" if len(errors) > NAMED else "")
