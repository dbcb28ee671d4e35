"""Completion indexes as Jobs write them: "0,2-5,7". They are kept as ranges, so that they cost what is written and not what is meant."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DIGITS: Final = 10  # that an index has at most


class Indexes:
    """A set of indexes; those below another number that are missing are found range by range."""

    __slots__ = ("_starts", "_stops")

    def __init__(self, ranges: Iterable[range] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        for each in sorted((each for each in ranges if each), key=lambda each: each.start):
            if self._stops and each.start <= self._stops[-1]:
                self._stops[-1] = max(self._stops[-1], each.stop)
            else:
                self._starts.append(each.start)
                self._stops.append(each.stop)

    @property
    def ranges(self) -> list[range]:
        """The indexes, as ranges that do not touch, the lowest first."""
        return list(map(range, self._starts, self._stops))

    def __contains__(self, index: int) -> bool:
        at = bisect.bisect_right(self._starts, index) - 1
        return at >= 0 and index < self._stops[at]

    def __len__(self) -> int:
        return sum(self._stops) - sum(self._starts)

    def with_others(self, indexes: Iterable[int]) -> Indexes:
        """Return these and others."""
        return Indexes([*self.ranges, *(range(each, each + 1) for each in indexes)])

    def missing(self, most: int) -> Iterator[int]:
        """Walk over the indexes below a number that are not among these."""
        for start, stop in zip([0, *self._stops], [*self._starts, most], strict=True):
            yield from range(start, min(stop, most))


def parse(text: object, most: int) -> Indexes:
    """Read indexes below a number; what cannot be read counts as nothing."""
    found = []
    for part in str(text or "").split(","):
        first, _, last = part.partition("-")
        if _is_index(first) and _is_index(last or first):
            found.append(range(int(first), min(int(last or first), most - 1) + 1))
    return Indexes(found)


def _is_index(text: str) -> bool:
    return text.isdecimal() and len(text) <= _DIGITS


def write(indexes: Indexes) -> str:
    """Write indexes, runs of three and more as ranges."""
    parts: list[str] = []
    for each in indexes.ranges:
        parts += [f"{each[0]}-{each[-1]}"] if len(each) > 2 else map(str, each)
    return ",".join(parts)
