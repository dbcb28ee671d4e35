"""Whole points from an exact difference: ⌊100 ÷ (1 + e^(-x ÷ 1000))⌋, the same on every machine.

A node is worth s points or more from x = 1000·ln(s ÷ (100 - s)) on. Apart from that of 50, which is 0, these bounds are irrational, so a fraction is never one of them, and comparing integers decides.
"""

from __future__ import annotations

import bisect
import decimal
import functools
from typing import Final

EVEN: Final = 50
"""What a node is worth on which nothing changes."""
_BEST: Final = 99
_DIGITS: Final = 60


@functools.cache
def _bounds() -> tuple[decimal.Decimal, ...]:
    """Return from where on there is one point, two points, up to the most; `decimal` rounds logarithms correctly, whatever the machine."""
    exact = decimal.Context(prec=_DIGITS)
    return tuple(
        exact.multiply(1000, exact.ln(exact.divide(points, _BEST + 1 - points))) for points in range(1, _BEST + 1)
    )


class Points:
    """Points for differences that were multiplied by a whole number."""

    def __init__(self, times: int) -> None:
        exact = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_CEILING)
        self._bounds = [int(exact.to_integral_value(exact.multiply(times, bound))) for bound in _bounds()]

    def of(self, difference: int) -> int:
        """Return the points of a difference."""
        return bisect.bisect_right(self._bounds, difference)
