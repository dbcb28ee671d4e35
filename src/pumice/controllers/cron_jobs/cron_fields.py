"""The five fields of a cron line: minute, hour, day of the month, month, day of the week, as sets of numbers.

The grammar is that of the library which Kubernetes and Volcano use: `*` and `?` are everything, `a-b` a range, `/n` every nth, `a/n` from a on, commas join; months
and days of the week have names. Sunday is 0 and never 7. A day of the month and a day of the week that are both restricted mean either of them.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_LONGEST: Final = 1000
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class ScheduleError(ValueError):
    """A text that says no time."""


class Bounds(msgspec.Struct, frozen=True):
    """The numbers that a field may have, and their names."""

    name: str
    least: int
    most: int
    words: dict[str, int] = {}


MINUTE: Final = Bounds("minute", 0, 59)
HOUR: Final = Bounds("hour", 0, 23)
DAY: Final = Bounds("day of the month", 1, 31)
MONTH: Final = Bounds("month", 1, 12, {word: place for place, word in enumerate(_MONTHS, 1)})
WEEKDAY: Final = Bounds("day of the week", 0, 6, {word: place for place, word in enumerate(_DAYS)})
_ORDER: Final = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that each field allows; a field that is open says nothing about the day."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def has_day(self, day: int, weekday: int) -> bool:
        """Tell whether a day is meant."""
        if self.any_day or self.any_weekday:
            return day in self.days and weekday in self.weekdays
        return day in self.days or weekday in self.weekdays


def parse(text: str) -> Fields:
    """Read five fields."""
    words = text.split()
    if len(words) != len(_ORDER) or len(text) > _LONGEST:
        raise ScheduleError(f"{text[:60]!r} has {len(words)} fields and must have 5: minute, hour, day, month, weekday")
    found = [_field(word, bounds) for word, bounds in zip(words, _ORDER, strict=True)]
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = found
    return Fields(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        any_day=any_day,
        any_weekday=any_weekday,
    )


def _field(text: str, bounds: Bounds) -> tuple[frozenset[int], bool]:
    """Read one field; tells also whether it is open, which a step above 1 ends."""
    numbers: set[int] = set()
    open_field = False
    for part in filter(None, text.split(",")):
        found, everything = _part(part, bounds)
        numbers.update(found)
        open_field = open_field or everything
    return frozenset(numbers), open_field


def _part(text: str, bounds: Bounds) -> tuple[range, bool]:
    span, *steps = text.split("/")
    first, *last = span.split("-")
    if len(steps) > 1 or len(last) > 1:
        raise ScheduleError(f"{text!r} is no range for the {bounds.name}: too many of '/' or '-'")
    everything = first in ("*", "?")
    start = bounds.least if everything else _number(first, bounds)
    end = bounds.most if everything else _number(last[0], bounds) if last else start
    step = _whole(steps[0], f"the step of the {bounds.name}") if steps else 1
    if steps and not last:
        end = bounds.most  # "a/n" means "a-most/n"
    if start < bounds.least or end > bounds.most:
        raise ScheduleError(f"{text!r} lies outside {bounds.least} to {bounds.most}, the range of the {bounds.name}")
    if start > end:
        raise ScheduleError(f"{text!r} begins after its end, in the {bounds.name}")
    if step == 0:
        raise ScheduleError(f"{text!r} has a step of 0, in the {bounds.name}")
    return range(start, end + 1, step), everything and step == 1


def _number(text: str, bounds: Bounds) -> int:
    word = bounds.words.get(text.lower())
    return _whole(text, f"the {bounds.name}") if word is None else word


def _whole(text: str, what: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ScheduleError(f"{text!r} is no number, in {what}")
    return int(text)
