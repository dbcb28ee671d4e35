"""What is said of starts to come."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pumice.api import duration, timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.plugins.timeline.starts import Delay

TIMES = "\N{MULTIPLICATION SIGN}"
NODES = 4
_EXPECTED = re.compile(r"expected at (?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d)(:\d\d)? on ")


def moment(time: int, now: int) -> str:
    """Write a time: `14:32`, with seconds where there are any, with the date where it is another day's; the next second, so that nobody starts later than it says."""
    day, _, clock = timestamp.format_timestamp(-(-time // duration.SECOND) * duration.SECOND).rstrip("Z").partition("T")
    clock = clock.removesuffix(":00") if clock.count(":") == 2 else clock
    today = timestamp.format_timestamp(now).partition("T")[0]
    return clock if day == today else f"{day} {clock}"


def length(microseconds: int) -> str:
    """Write a duration in whole seconds: `1h30m`, `61s`, `2h`."""
    seconds = -(-microseconds // duration.SECOND)
    if seconds < 120:
        return f"{seconds}s"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def would_delay(delay: Delay, holder: str, now: int) -> str:
    """Say whom a job would delay."""
    by = "for ever, as it has no estimate" if delay.by is None else f"by {length(delay.by)}"
    return f"would delay {holder}, planned for {moment(delay.planned, now)}, {by}"


def nodes(counts: Mapping[str, int]) -> str:
    """Write how many pods go to which node, four on each of two: `n1 \u00d74, n2 \u00d74`."""
    listed = [f"{name} {TIMES}{count}" for name, count in list(counts.items())[:NODES]]
    more = f" and {len(counts) - NODES} more" if len(counts) > NODES else ""
    return ", ".join(listed) + more


def expected(message: str, written: str) -> int | None:
    """Read the time back that a forecast gives; one without a date is of the day on which it was written, or the next."""
    found = _EXPECTED.match(message)
    if found is None:
        return None
    day = found[1] or written.partition("T")[0]
    try:
        time = timestamp.parse(f"{day}T{found[2]}{found[3] or ':00'}Z")
    except timestamp.TimestampError:
        return None
    return time
