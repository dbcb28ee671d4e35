"""When something is to be started: cron lines in a time zone, descriptors such as `@hourly`, and `@every` with a duration.

A cron line means every minute whose wall clock reads so. An hour that daylight saving leaves out has no such minutes, and one that it repeats has them
twice. Times are in microseconds since the epoch.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, Protocol

from pumice.api import duration, time_zones
from pumice.controllers.cron_jobs import cron_fields
from pumice.controllers.cron_jobs.cron_fields import ScheduleError

if TYPE_CHECKING:
    from pumice.controllers.cron_jobs.cron_fields import Fields

_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_PREFIXES: Final = ("TZ=", "CRON_TZ=")
_HORIZON: Final = 5  # years, as the library of the peers has it: what does not come by then never comes
_MINUTE: Final = 60
_HOUR: Final = 3600
_WINDOWS: Final = (2 * _HOUR, 49 * _HOUR, 63 * 24 * _HOUR, 800 * 24 * _HOUR)


class Schedule(Protocol):
    """Times of starts; `anchor` is a start from which those of `@every` are counted."""

    def after(self, moment: int, anchor: int) -> int | None:
        """Give the first start after a moment, None if there is none for years."""

    def latest(self, after: int, until: int, anchor: int) -> int | None:
        """Give the last start after one moment and not after another."""


class Cron:
    """Minutes whose wall clock in a zone has certain fields."""

    def __init__(self, fields: Fields, zone: dt.tzinfo) -> None:
        self._fields = fields
        self._zone = zone

    def after(self, moment: int, anchor: int) -> int | None:
        """Give the first start after a moment."""
        del anchor
        found = self._next(moment // duration.SECOND // _MINUTE * _MINUTE + _MINUTE)
        return None if found is None else found * duration.SECOND

    def latest(self, after: int, until: int, anchor: int) -> int | None:
        """Give the last start of a span, looking further and further back."""
        for window in _WINDOWS:
            begin = max(after, until - window * duration.SECOND)
            found = self._last(begin, until, anchor)
            if found is not None or begin == after:
                return found
        return self._last(after, until, anchor)

    def _last(self, after: int, until: int, anchor: int) -> int | None:
        """Go through the starts of a span."""
        found, start = None, self.after(after, anchor)
        while start is not None and start <= until:
            found, start = start, self.after(start, anchor)
        return found

    def _next(self, second: int) -> int | None:
        """Give the first whole minute from a second on, both since the epoch, that has the fields."""
        fields, last = self._fields, self._clock(second).year + _HORIZON
        while True:
            clock = self._clock(second)
            if clock.year > last:
                return None
            if clock.month not in fields.months:
                second = self._skip(second, clock, _next_month(clock))
            elif not fields.has_day(clock.day, clock.isoweekday() % 7):
                second = self._skip(second, clock, clock.date() + dt.timedelta(days=1))
            elif clock.hour not in fields.hours:
                second = self._next_hour(second, clock)
            elif clock.minute not in fields.minutes:
                second += _MINUTE
            else:
                return second

    def _skip(self, second: int, clock: dt.datetime, day: dt.date) -> int:
        """Go to the beginning of a day, or hour by hour where the clock is changed on its edge."""
        begin = dt.datetime(day.year, day.month, day.day, tzinfo=self._zone)
        target = int(begin.timestamp()) // _MINUTE * _MINUTE
        before = self._clock(target - _MINUTE)
        if target > second and before.date() < day and self._clock(target).date() == day:
            return target
        return self._next_hour(second, clock)

    def _next_hour(self, second: int, clock: dt.datetime) -> int:
        """Go to the end of the hour, or minute by minute where the clock is changed on the way."""
        target = second + (60 - clock.minute) * _MINUTE
        same = clock.utcoffset() == self._clock(target - _MINUTE).utcoffset()
        return target if same else second + _MINUTE

    def _clock(self, second: int) -> dt.datetime:
        return dt.datetime.fromtimestamp(second, self._zone)


class Every:
    """Starts at equal distances, in whole seconds, one at the least."""

    def __init__(self, span: int) -> None:
        self._span = max(span // duration.SECOND, 1) * duration.SECOND

    @property
    def is_within_a_minute(self) -> bool:
        """Whether two starts may fall into one minute, after which Jobs are named: the second is left out then."""
        return self._span < duration.MINUTE

    def after(self, moment: int, anchor: int) -> int | None:
        """Give the first start after a moment."""
        base = anchor // duration.SECOND * duration.SECOND
        return base + max(1, (moment - base) // self._span + 1) * self._span

    def latest(self, after: int, until: int, anchor: int) -> int | None:
        """Give the last start of a span."""
        base = anchor // duration.SECOND * duration.SECOND
        found = base + (until - base) // self._span * self._span
        return found if found > max(after, base) else None


def parse(text: str, zone: dt.tzinfo | None) -> Schedule:
    """Read a schedule; one that names a zone itself must not be given another."""
    line = text.strip()
    if line.startswith(_PREFIXES):
        name, _, line = line.partition("=")[2].partition(" ")
        if zone is not None:
            raise ScheduleError(f"{text[:60]!r} names a time zone, and so does spec.timeZone; leave one out")
        try:
            zone = time_zones.zone_of(name)
        except time_zones.ZoneError as error:
            raise ScheduleError(str(error)) from None
    line = line.strip()
    if line.startswith(_EVERY):
        return Every(_span(line.removeprefix(_EVERY).strip()))
    if line.startswith("@"):
        if line not in _DESCRIPTORS:
            raise ScheduleError(f"{line[:60]!r} is none of {', '.join(_DESCRIPTORS)}, @every DURATION")
        line = _DESCRIPTORS[line]
    return Cron(cron_fields.parse(line), zone or dt.UTC)


def _span(text: str) -> int:
    try:
        return duration.parse(text)
    except duration.DurationError as error:
        raise ScheduleError(f"@every {text[:40]!r}: {error}") from None


def _next_month(clock: dt.datetime) -> dt.date:
    return dt.date(clock.year + clock.month // 12, clock.month % 12 + 1, 1)
