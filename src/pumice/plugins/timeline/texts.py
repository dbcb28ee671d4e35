"""What is said of starts to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import duration, timestamp

if TYPE_CHECKING:
    from pumice.plugins.timeline.starts import Delay


def moment(time: int, now: int) -> str:
    """Write a time: `14:32`, with seconds where there are any, with the date where it is another day's."""
    day, _, clock = timestamp.format_timestamp(time // duration.SECOND * duration.SECOND).rstrip("Z").partition("T")
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


def would_delay(delay: Delay, now: int) -> str:
    """Say whom a job would delay."""
    by = "for ever, as it has no estimate" if delay.by is None else f"by {length(delay.by)}"
    return f"would delay {delay.holder}, planned for {moment(delay.planned, now)}, {by}"
