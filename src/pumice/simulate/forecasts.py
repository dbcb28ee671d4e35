"""What the scheduler says about the start of a job, read from the condition of its group as anybody would read it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pumice.api import timestamp
from pumice.simulate.results import Forecast

if TYPE_CHECKING:
    from collections.abc import Mapping

CONDITION: Final = "StartForecast"
_EXPECTED: Final = re.compile(r"expected at (?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d)(:\d\d)? on ")


def note(known: list[Forecast], condition: Mapping[str, str], now: int, zero: int) -> None:
    """Keep a forecast that is not the one told last."""
    written = condition.get("lastTransitionTime") or timestamp.format_timestamp(now)
    expected = moment(condition["message"], written)
    found = Forecast(now - zero, None if expected is None else expected - zero, condition["reason"])
    if not known or (known[-1].expected, known[-1].reason) != (found.expected, found.reason):
        known.append(found)


def moment(message: str, written: str) -> int | None:
    """Return the time that a message names; one without a date is of the day on which it was written."""
    found = _EXPECTED.match(message)
    if found is None:
        return None
    try:
        return timestamp.parse(f"{found[1] or written.partition('T')[0]}T{found[2]}{found[3] or ':00'}Z")
    except timestamp.TimestampError:
        return None
