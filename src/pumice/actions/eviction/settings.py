"""Arguments that all evicting actions share."""

from __future__ import annotations

from pumice.framework.configuration import Argument

KEEP_GANGS = Argument(
    name="keepGangsWhole",
    kind="bool",
    default=True,
    help="whether a job that would fall below its minimum is evicted whole or not at all; false, as under `compatibility: volcano`, takes single pods",
)
HOLD_FOR = Argument(
    name="holdFor",
    kind="duration",
    default=60_000_000,
    minimum=1_000_000,
    replacement=60_000_000,
    help="how long room is held for a claimant once its victims are gone, or should be",
)
