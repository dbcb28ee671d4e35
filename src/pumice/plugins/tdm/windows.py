"""Windows of the day in a time zone: whether one is open, and when that changes next."""

from __future__ import annotations

import datetime as dt
import re

import msgspec

_WINDOW = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*", re.ASCII)
_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class WindowError(ValueError):
    """A window that cannot be used, with what was expected."""


class Window(msgspec.Struct, frozen=True):
    """From one time of the day to another, both included; one that does not end later than it begins ends on the next day."""

    start: dt.time
    end: dt.time

    def around(self, now: int, zone: dt.tzinfo) -> list[tuple[int, int]]:
        """Return the windows of yesterday, today and the next two days, as microseconds from their first moment to their last."""
        today = (_EPOCH + now * _MICROSECOND).astimezone(zone).date()
        ends_later = dt.timedelta(days=0 if self.start < self.end else 1)
        days = [today + dt.timedelta(days=offset) for offset in range(-1, 3)]
        return [(_instant(day, self.start, zone), _instant(day + ends_later, self.end, zone)) for day in days]


def parse(text: str) -> Window:
    """Read `HH:MM-HH:MM`, or raise the `WindowError` that says what is wrong."""
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise WindowError(f"{text[:40]!r} is not a window; write it as HH:MM-HH:MM, such as 21:00-06:00")
    first, since, last, until = (int(each) for each in match.groups())
    try:
        return Window(dt.time(first, since), dt.time(last, until))
    except ValueError:
        raise WindowError(f"{text[:40]!r} is not a window: hours go to 23, minutes to 59") from None


def is_open(window: Window, now: int, zone: dt.tzinfo) -> bool:
    """Tell whether a window is open at a moment."""
    return any(first <= now <= last for first, last in window.around(now, zone))


def next_change(window: Window, now: int, zone: dt.tzinfo) -> int | None:
    """Return the next moment at which a window opens or has closed; None if it never closes."""
    spans = window.around(now, zone)
    moments = {moment for first, last in spans for moment in (first, last + 1) if moment > now}
    state = is_open(window, now, zone)
    return next((moment for moment in sorted(moments) if is_open(window, moment, zone) != state), None)


def _instant(day: dt.date, time: dt.time, zone: dt.tzinfo) -> int:
    return (dt.datetime.combine(day, time, zone) - _EPOCH) // _MICROSECOND
