"""What evicting actions may be told, and what of it their rules go by."""

from __future__ import annotations

import msgspec

from pumice.framework.configuration import Settings, settings

HOLD_FOR = settings.period(
    "holdFor",
    60_000_000,
    minimum=1_000_000,
    replacement=60_000_000,
    help="how long room is held for a claimant once its victims are gone, or should be",
)


SPARE_FOR = settings.period(
    "spareRefusedFor",
    300_000_000,
    minimum=0,
    replacement=300_000_000,
    help="how long a pod is no candidate after the API server refused its eviction and the claimant stopped waiting",
)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """How victims are looked for."""

    keeps_gangs: bool = True
    hold_for: int = HOLD_FOR.argument.default
    spare_for: int = SPARE_FOR.argument.default
    most_domains: int = 8
    allows_whole: bool = True
    simulates: bool = False
    protects_important: bool = True


class EvictingSettings(Settings):
    """What preempt and reclaim share."""

    keep_gangs = settings.truth(
        "keepGangsWhole",
        default=True,
        help="whether a job that would fall below its minimum is evicted whole or not at all; false, as under `compatibility: volcano`, takes single pods",
    )
    hold_for = HOLD_FOR
    spare_for = SPARE_FOR

    @property
    def asked(self) -> Asked:
        """How victims are looked for."""
        return Asked(keeps_gangs=self.keep_gangs, hold_for=self.hold_for, spare_for=self.spare_for)


class GangSettings(Settings):
    """What both gang forms may be told."""

    hold_for = HOLD_FOR
    spare_for = SPARE_FOR
    most_domains = settings.whole("maxDomains", 8, minimum=1, replacement=8, help="how many topology domains are tried")
    allow_whole = settings.truth("allowWholeBundle", default=True, help="whether jobs may be evicted as a whole")

    @property
    def asked(self) -> Asked:
        """How victims are looked for."""
        return Asked(
            hold_for=self.hold_for,
            spare_for=self.spare_for,
            most_domains=self.most_domains,
            allows_whole=self.allow_whole,
        )
