"""When the next cycle starts: at once when something has changed, or after a fixed pause if one was asked for.

At once means: as soon as a burst of changes is over, or after three milliseconds of it, so that gangs arrive whole and a lone pod waits for nobody, and after a pause as
long as the last cycle was, so that deciding takes no more than half of the time. What gives nobody room, such as the echo of a bind or a pod whose gang is not complete, waits a moment for more of its kind (see `urgency`). Whatever waits for a moment
wakes the scheduler then; in any case it looks around once a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from pumice.cache.options import Options

QUIET: Final = 0.0003  # seconds without a change after which a burst is over
GATHER: Final = 0.003  # seconds for which a burst is gathered at most
LOOK: Final = 1.0  # seconds after which a cycle starts though nobody asked for one; it is skipped if nothing is due
LONGEST: Final = 1.0  # the longest pause after a cycle
STANDS: Final = 1_000_000  # microseconds for which a reason to wait must stand before it is written, as long as others' cycles take to see it


def patient(options: Options, period: int | None) -> Options:
    """Give options for a cluster that people look at, at that pace: where cycles start at once, what is true for a moment only is not written down."""
    return msgspec.structs.replace(
        options, renews_numbers=True, reason_patience=options.reason_patience if period is not None else STANDS
    )


class Pacing:
    """The pace of one scheduler; with a period, the pause from the end of one cycle to the start of the next."""

    def __init__(self, period: float | None) -> None:
        self._period = period
        self._rested = 0.0
        self._gathered = 0.0  # when the burst that goes on has been gathered for long enough

    def next(self, started: float, ended: float, wakes_in: float | None) -> float:
        """Return when the next cycle starts if nothing changes; a cycle was run, and something waits for a moment, or nothing does."""
        if self._period is not None:
            self._rested = ended + self._period
            return self._rested
        self._rested = ended + min(ended - started, LONGEST)
        if wakes_in is None or wakes_in <= 0:
            # What was due and is still there will not be done by looking at once again.
            return ended + LOOK
        return max(self._rested, ended + min(wakes_in, LOOK))

    def after_change(self, now: float) -> float:
        """Return when the next cycle starts at the latest, now that something has changed, unless more changes follow."""
        if self._period is not None:
            return self._rested
        self._gathered = now + GATHER
        return max(self._rested, now + QUIET)

    def after_more(self, now: float) -> float:
        """Return until when a cycle that is due waits for the end of a burst that still goes on; that is over already if it was gathered for long enough."""
        return min(now + QUIET, self._gathered)

    def after_echo(self, now: float, wait: float) -> float:
        """Return when the next cycle starts at the latest, now that something has changed that can wait for so many seconds."""
        return self._rested if self._period is not None else max(self._rested, now + wait)
