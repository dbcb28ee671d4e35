"""What the scheduler says about the start of a job, read from the condition of its group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.simulate.results import Forecast

if TYPE_CHECKING:
    from collections.abc import Mapping

CONDITION: Final = "StartForecast"


def note(known: list[Forecast], condition: Mapping[str, str], told: int, zero: int) -> None:
    """Keep a forecast that is not the one told last."""
    del zero
    found = Forecast(told, None, condition["reason"])
    if not known or (known[-1].expected, known[-1].reason) != (found.expected, found.reason):
        known.append(found)
