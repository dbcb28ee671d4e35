"""Durations as Go writes them, in whole microseconds.

What is finer than a microsecond is dropped; what Go's 64-bit nanoseconds cannot hold (about 292 years) is an error, as it is there.
"""

import re
from typing import Final

MICROSECOND: Final = 1
MILLISECOND: Final = 1000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

_LONGEST_TEXT: Final = 64
_LARGEST_NANOSECONDS: Final = 2**63 - 1
_SHOWN: Final = 40
_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1000,
    "\N{MICRO SIGN}s": 1000,
    "\N{GREEK SMALL LETTER MU}s": 1000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_TERM: Final = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")


class DurationError(ValueError):
    """A text that is no duration."""


def parse(text: str) -> int:
    """Return the microseconds of a Go duration such as "1h30m", "500ms", "-1.5s" or "0"."""
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise _refusal(text)
    negative = text.startswith("-")
    body = text[1:] if text.startswith(("+", "-")) else text
    if body == "0":
        return 0
    nanoseconds = position = 0
    while position < len(body):
        term = _TERM.match(body, position)
        if term is None:
            raise _refusal(text)
        nanoseconds += _term_nanoseconds(*term.groups(default=""))
        position = term.end()
    if not body or nanoseconds > _LARGEST_NANOSECONDS:
        raise _refusal(text)
    return -(nanoseconds // 1000) if negative else nanoseconds // 1000


def format_duration(microseconds: int) -> str:
    """Write microseconds as Go does: "1h30m0s", "1.5s", "500ms", "0s"."""
    if microseconds == 0:
        return "0s"
    sign, amount = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    if amount < MILLISECOND:
        return f"{sign}{amount}\N{MICRO SIGN}s"
    if amount < SECOND:
        return f"{sign}{_decimal(amount, MILLISECOND)}ms"
    hours, rest = divmod(amount, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds = f"{_decimal(rest, SECOND)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else f"{sign}{seconds}"


def _term_nanoseconds(whole: str, part: str, bare: str, unit: str) -> int:
    fraction = part or bare
    scale = _NANOSECONDS[unit]
    parts: int = 10 ** len(fraction)
    return int(whole or "0") * scale + int(fraction or "0") * scale // parts


def _decimal(amount: int, unit: int) -> str:
    whole, part = divmod(amount, unit)
    digits = str(part).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _refusal(text: object) -> DurationError:
    shown = str(text)
    if len(shown) > _SHOWN:
        shown = shown[: _SHOWN - 1] + "…"
    return DurationError(
        f"{shown!r} is no duration below 292 years: write numbers with units, such as 30s, 5m, 1h30m or 500ms"
    )
