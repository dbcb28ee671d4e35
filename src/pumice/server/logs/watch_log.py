"""Tells the log how the watches are: what is not listed yet, which of them have lost the API server, and when they are back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from pumice.api import kinds
from pumice.server.health import api_silence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.kube.watches.informers import WatchReport
    from pumice.server.logs.logs import Log

LOOK: Final = 5.0
OPTIONAL: Final = {
    kinds.NATIVE_POD_GROUP: "pods with spec.schedulingGroup are no gangs; the API server needs --feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1alpha2=true",
    kinds.RESOURCE_CLAIM: "pods with claims for devices wait; Kubernetes serves them from 1.34 on",
}
"""What follows where a kind is not served that a user may count on."""
NAMED: Final = 3  # errors that are written out; where nothing may be listed there are two dozen, all alike


class Reporting(Protocol):
    """What is looked at."""

    def report(self) -> Sequence[WatchReport]:
        """Say how each watch is doing."""


async def keep(informers: Reporting, log: Log) -> None:
    """Look every few seconds, until cancelled. A watch that is down at two looks in a row is worth a line, a shorter gap is not."""
    before: set[str] = set()
    told = False
    unserved: set[kinds.Kind] = set()
    while True:
        await asyncio.sleep(LOOK)
        reports = informers.report()
        if missing := [report for report in reports if not report.synced]:
            log.warning(
                "waiting for lists", missing="; ".join(report.watch for report in missing), errors=_errors(missing)
            )
            continue
        unserved = _tell_unserved(reports, unserved, log)
        down, of = api_silence.down(reports), len(api_silence.followed(reports))
        lasting = [report for report in down if report.watch in before]
        if lasting and not told:
            log.warning("watches are interrupted", down=len(lasting), of=of, errors=_errors(lasting))
        elif told and not down:
            log.info("watches are back", of=of)
        told = bool(lasting) or (told and bool(down))
        before = {report.watch for report in down}


def _tell_unserved(reports: Sequence[WatchReport], before: set[kinds.Kind], log: Log) -> set[kinds.Kind]:
    """Say once of a kind that users may count on that it is not served, and once that it is."""
    unserved = set(before)
    for report in reports:
        kind, name = report.kind, f"{report.kind.plural}.{report.kind.group}"
        if kind in OPTIONAL and kind not in before and report.state == "absent":
            unserved.add(kind)
            log.info("a kind is not served", kind=name, so=OPTIONAL[kind], again="looked for every minute")
        elif kind in before and report.state == "watching":
            unserved.discard(kind)
            log.info("a kind is served now", kind=name)
    return unserved


def _errors(reports: Sequence[WatchReport]) -> str:
    errors = [report.error for report in reports if report.error]
    return "; ".join(errors[:NAMED]) + (f"; {len(errors) - NAMED} more" if len(errors) > NAMED else "")
