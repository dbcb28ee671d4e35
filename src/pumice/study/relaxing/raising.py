"""By how much a limit is raised: from the least that a job may need to all that waits beside it, in whole units, by ones at first and by sixteenths of what it has come to later on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Amounts = dict[str, int]

_PART: Final = 16


class Raise:
    """A raise that can go less far: from the least of some amounts over those between to the most, each at least those before; `unit` says what is a whole unit of a resource."""

    def __init__(self, amounts: Sequence[Mapping[str, int]], unit: Callable[[str], int]) -> None:
        self._unit = unit
        self._first: Amounts = dict(amounts[0])
        low, self._steps = self._first, [self._first]
        for each in amounts[1:]:
            high = {name: max(low.get(name, 0), each.get(name, 0)) for name in {**low, **each}}
            self._steps += self._between(low, high)
            low = high

    def __len__(self) -> int:
        return len(self._steps)

    def at(self, number: int) -> Amounts:
        """Return the amounts of a step, from 1 to as many as there are."""
        return self._steps[number - 1]

    def _between(self, low: Mapping[str, int], high: Mapping[str, int]) -> list[Amounts]:
        """Return the amounts after the lower ones up to the higher ones."""
        gaps = {name: units - low.get(name, 0) for name, units in high.items()}
        most = max((-(-gap // self._unit(name)) for name, gap in gaps.items()), default=0)
        return [
            {
                name: min(units, low.get(name, 0) + self._share(name, gaps[name], part, most))
                for name, units in high.items()
            }
            for part in parts(most)
        ]

    def _share(self, name: str, gap: int, part: int, most: int) -> int:
        unit = self._unit(name)
        return -(-gap * part // most // unit) * unit


def parts(most: int) -> list[int]:
    """Return numbers up to the most: all the small ones, later ones that are apart by a sixteenth."""
    found = [0]
    while found[-1] < most:
        found.append(min(most, found[-1] + max(1, found[-1] // _PART)))
    return found[1:]


def rounded(units: int, limit: int, wholes: Sequence[int]) -> int:
    """Round an amount up to the largest whole unit in which a limit is written."""
    whole = next((each for each in wholes if limit % each == 0), 1)
    return -(-units // whole) * whole
