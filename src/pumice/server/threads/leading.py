"""Taking part in an election, for whoever needs a Lease: the scheduler, the controllers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from pumice.kube import election, lease

if TYPE_CHECKING:
    from pumice.kube.election import LeaseClient
    from pumice.kube.rivals import Lookout
    from pumice.kube.watches.informers import Informers
    from pumice.server.flags.process_settings import ProcessSettings
    from pumice.server.logs.logs import Log
    from pumice.server.surroundings import Surroundings

HEAD_START: Final = 2.0  # seconds that the lists wait for the election, if the API server is slow to answer


def candidacy(
    settings: ProcessSettings, name: str, client: LeaseClient, lookout: Lookout, *, log: Log, around: Surroundings
) -> election.Election:
    """Give the election of a process for a Lease of this name."""
    timing = lease.Timing(
        lease=settings.leader_elect_lease_duration,
        renew_deadline=settings.leader_elect_renew_deadline,
        retry=settings.leader_elect_retry_period,
    )
    return election.Election(
        client,
        lease.Candidate(around.identity(), timing),
        namespace=settings.lease_namespace,
        name=name,
        monotonic=around.awake_or_not,
        wall=around.wall,
        rng=around.chance(),
        lookout=lookout,
        tell=lambda situation, text: tell(log, situation, text),
    )


def tell(log: Log, situation: election.Situation, text: str) -> None:
    """Log how it goes."""
    match situation:
        case "held":
            log.info("standing by", reason=text)
        case "untaken":
            log.warning("the lease cannot be taken", reason=text)
        case "unrenewed":
            log.warning("the lease is not renewed", reason=text)
        case "renewed":
            log.info("the lease is renewed again", lease=text)
        case "unreleased":
            log.warning("the lease is not released", reason=text)


class Term:
    """From the first attempt to get a Lease to the moment at which its holder knows what the last one may have written."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._led: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tried = asyncio.Event()

    def lead(self, version: str) -> None:
        """Take note that the Lease is ours; the version is empty where nobody is elected."""
        if version:
            self._log.info("leading", lease_version=version)
        self._led.set_result(version)
        self._tried.set()

    def stand_by(self) -> None:
        """Take note of an attempt in vain."""
        self._tried.set()

    async def head_start(self) -> None:
        """Let the first attempt come first: lists that begin after the lease was taken are new enough by themselves."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEAD_START):
                await self._tried.wait()

    async def caught_up(self, informers: Informers) -> None:
        """Return when everything is listed that decisions read, the Lease is ours, and the watches are at least as new as it."""
        await informers.wait_first()
        self._log.info("every list is complete", objects=sum(report.objects for report in informers.report()))
        version = await self._led
        if version:
            await informers.catch_up(version)
