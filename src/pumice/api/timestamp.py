"""Timestamps as Kubernetes writes them (RFC 3339), in microseconds since the epoch."""

import datetime as dt
import functools
import re
from typing import Final

_FORM: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,18}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_SECOND: Final = 1_000_000
_SHOWN: Final = 40


class TimestampError(ValueError):
    """A text that is no timestamp, or a time that no timestamp can say."""


def parse(text: str) -> int:
    """Return the microseconds since the epoch of a timestamp such as "2026-01-01T00:00:00Z"; finer digits are dropped."""
    if not isinstance(text, str):
        raise _refusal(text)
    return _parsed(text)


@functools.lru_cache(maxsize=4096)  # pods that were made together were made in the same second
def _parsed(text: str) -> int:
    match = _FORM.fullmatch(text)
    if match is None:
        raise _refusal(text)
    clock, part, sign, hours, minutes = match.groups()
    try:
        moment = dt.datetime.fromisoformat(clock + "+00:00")
    except ValueError:
        raise _refusal(text) from None
    microseconds = (moment - _EPOCH) // _MICROSECOND
    if part is not None:
        microseconds += int(part[:6].ljust(6, "0"))
    if sign is None:
        return microseconds
    if int(hours) > 23 or int(minutes) > 59:
        raise _refusal(text)
    offset = (int(hours) * 60 + int(minutes)) * 60 * _SECOND
    return microseconds + offset if sign == "-" else microseconds - offset


@functools.lru_cache(maxsize=64)  # what a cycle reports, it reports at one time
def format_timestamp(microseconds: int) -> str:
    """Write a time in UTC: whole seconds as "2026-01-01T00:00:00Z", others with six digits."""
    try:
        moment = _EPOCH + microseconds * _MICROSECOND
    except OverflowError:
        raise TimestampError(f"{microseconds} microseconds since the epoch lie outside the years 1 to 9999") from None
    digits = "microseconds" if microseconds % _SECOND else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def _refusal(text: object) -> TimestampError:
    shown = str(text)
    if len(shown) > _SHOWN:
        shown = shown[: _SHOWN - 1] + "…"
    return TimestampError(f"{shown!r} is no timestamp: write it as 2026-01-01T00:00:00Z, between the years 1 and 9999")
