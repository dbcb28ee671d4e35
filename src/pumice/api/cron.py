"""Schedules of cron jobs: five fields, or a word such as `@hourly` or `@every 90m`, as Kubernetes' own CronJobs are written.

Only what a text means is told here: the minutes, hours, days and months it names. When that comes round next is somebody else's question.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from pumice.api import documents, duration

LONGEST: Final = 256
_ZONES: Final = ("TZ=", "CRON_TZ=")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_RANGE: Final = re.compile(r"(?P<first>\*|\?|[A-Za-z]+|[0-9]+)(?:-(?P<last>[A-Za-z]+|[0-9]+))?(?:/(?P<step>[0-9]+))?")


class CronError(ValueError):
    """A text that is no schedule; the message names the field."""


class Field(msgspec.Struct, frozen=True):
    """One of the five fields: what it is called, and what it may hold."""

    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()


FIELDS: Final = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, _MONTHS),
    Field("day of week", 0, 6, _DAYS),
)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What a text means: values of each field, or a fixed distance in microseconds. `any_day` and `any_weekday` are fields that hold a star."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    any_weekday: bool = True
    every: int = 0


def parse(text: str) -> Schedule:
    """Read a schedule, or raise a `CronError`; one that names a time zone is refused, for the field `timeZone` does that."""
    if len(text) > LONGEST:
        raise CronError(f"the schedule has {len(text)} characters; at most {LONGEST} are read")
    if text.startswith(_ZONES) or "TZ" in text.partition("=")[0]:
        raise CronError(f"{documents.quoted(text)} names a time zone; that belongs to the field timeZone")
    if text.startswith("@"):
        return _parse_word(text)
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise CronError(
            f"{documents.quoted(text)} has {len(fields)} fields, and must have 5: minute, hour, day of month, month, day of week"
        )
    values = [_parse_field(part, field) for part, field in zip(fields, FIELDS, strict=True)]
    stars = [part.startswith(("*", "?")) for part in fields]
    minutes, hours, days, months, weekdays = values
    return Schedule(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        any_day=stars[2],
        any_weekday=stars[4],
    )


def _parse_word(text: str) -> Schedule:
    word, _, rest = text.partition(" ")
    if word == "@every":
        try:
            every = duration.parse(rest.strip())
        except ValueError as error:
            raise CronError(f"@every: {error}") from None
        if every <= 0:
            raise CronError(f"@every {rest.strip()}: the distance must be above 0")
        return Schedule(every=max(every - every % duration.SECOND, duration.SECOND))
    if text not in _WORDS:
        known = ", ".join([*_WORDS, "@every DURATION"])
        raise CronError(f"{documents.quoted(text)} is no schedule; the words are {known}")
    return parse(_WORDS[text])


def _parse_field(text: str, field: Field) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        values |= _parse_range(part, field)
    return frozenset(values)


def _parse_range(text: str, field: Field) -> set[int]:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise CronError(
            f"{field.name}: {documents.quoted(text)} is neither *, a value, a range such as 1-5 nor a step such as */5"
        )
    first, last, step = found["first"], found["last"], found["step"]
    if first in ("*", "?"):
        if last is not None:
            raise CronError(f"{field.name}: {documents.quoted(text)} is no range: * is one already")
        low, high = field.least, field.most
    else:
        low = _value(first, field)
        high = _value(last, field) if last is not None else field.most if step is not None else low
    width = int(step) if step is not None and len(step) < 5 else 1 if step is None else field.most + 1
    if width == 0:
        raise CronError(f"{field.name}: {documents.quoted(text)} has the step 0, and must have at least 1")
    if low > high:
        raise CronError(f"{field.name}: {documents.quoted(text)} begins with {low}, behind its end {high}")
    return set(range(low, high + 1, width))


def _value(text: str, field: Field) -> int:
    if text.isdigit() and len(text) < 5:
        number = int(text)
        if field.least <= number <= field.most:
            return number
        raise CronError(f"{field.name}: {number} is not within {field.least} to {field.most}")
    if text.lower() in field.words:
        return field.words.index(text.lower()) + field.least
    raise CronError(f"{field.name}: {documents.quoted(text)} is not within {field.least} to {field.most}")
