"""Exact parsing and formatting of Kubernetes quantities.

Every quantity is an integer number of nano-units: what is finer is rounded away from zero, as Kubernetes does, under the idea that who asks
for a little should get a little. All arithmetic is on integers, so nothing is lost; only `scaled` saturates, at what an int64 holds.
The text is bounded and so are exponents, so no text costs more than a few hundred digits of arithmetic.
"""

import functools
import math
import re
from fractions import Fraction
from typing import Final

QuantityText = str | int | float

NANO: Final = 10**9
LARGEST: Final = 2**63 - 1

_LONGEST_TEXT: Final = 64
_LONGEST_INTEGER_BITS: Final = 212  # 10**64 has 213
_LARGEST_EXPONENT: Final = (
    400  # beyond the largest float; with 64 digits before it the value is past any saturation anyway
)
_SHOWN: Final = 40

_NUMBER: Final = re.compile(
    r"""(?P<sign>[+-]?) (?: (?P<whole>[0-9]+) (?:\.(?P<part>[0-9]*))? | \.(?P<bare>[0-9]+) )
        (?: (?P<binary>[KMGTPE]i) | (?P<decimal>[numkMGTPE]) | [eE](?P<exponent>[+-]?[0-9]+) )?""",
    re.VERBOSE | re.ASCII,
)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class QuantityError(ValueError):
    """A text that is no quantity."""


def parse(text: QuantityText) -> Fraction:
    """Return the exact value of a quantity, rounded away from zero to a whole number of nano-units."""
    return Fraction(_nanos(text), NANO)


def scaled(text: QuantityText, factor: int) -> int:
    """Return value times factor as an integer, rounded away from zero and saturated to what an int64 holds both ways."""
    return max(-LARGEST, min(LARGEST, _divide_away(_nanos(text) * factor, NANO)))


def milli(text: QuantityText) -> int:
    """Return the quantity in thousandths."""
    return scaled(text, 1000)


def whole(text: QuantityText) -> int:
    """Return the quantity in whole units."""
    return scaled(text, 1)


def format_milli(amount: int) -> str:
    """Write thousandths in canonical decimal form: 1500 is "1500m", 2000 is "2"."""
    return _canonical(amount, 1000, _DECIMAL_SUFFIXES[2:])


def format_bytes(amount: int) -> str:
    """Write an amount in canonical binary form: 1073741824 is "1Gi", 1000 is "1000"."""
    return _canonical(amount, 1024, _BINARY_SUFFIXES)


def format_whole(amount: int) -> str:
    """Write whole units in canonical decimal form: 110 is "110", 5000 is "5k"."""
    return _canonical(amount, 1000, _DECIMAL_SUFFIXES[3:])


def _canonical(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    """Use the largest suffix that leaves an integer."""
    if amount == 0:
        return "0"
    step = 0
    while step + 1 < len(suffixes) and amount % base == 0:
        amount //= base
        step += 1
    return f"{amount}{suffixes[step]}"


def _nanos(text: QuantityText) -> int:
    if isinstance(text, str):
        if len(text) > _LONGEST_TEXT:
            raise QuantityError(f"{_shown(text)} has {len(text)} characters; a quantity has at most {_LONGEST_TEXT}")
        return _nanos_of_text(text)
    if isinstance(text, bool) or not isinstance(text, int | float):
        raise QuantityError(f"{_shown(str(text))} is no quantity: write a number or a text such as 500m, 2 or 4Gi")
    if isinstance(text, float):
        if not math.isfinite(text):
            raise QuantityError(f"{_shown(str(text))} is no quantity: it must be finite")
        return _nanos_of_text(repr(text))
    if text.bit_length() > _LONGEST_INTEGER_BITS:
        raise QuantityError(
            f"an integer of {text.bit_length()} bits is no quantity; the limit is {_LONGEST_INTEGER_BITS}"
        )
    return text * NANO


@functools.lru_cache(maxsize=8192)
def _nanos_of_text(text: str) -> int:
    """Parse a text of bounded length; equal texts are so common that the answers are kept."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise QuantityError(
            f"{_shown(text)} is no quantity: write a number with an optional suffix, such as 500m, 2, 4Gi or 1e3"
        )
    sign, before, after, bare, binary, decimal, exponent = match.groups()
    part = after or bare or ""
    digits = int((before or "") + part)
    power = 9 - len(part)
    if binary is not None:
        digits <<= _BINARY[binary]
    elif decimal is not None:
        power += _DECIMAL[decimal]
    elif exponent is not None:
        power += max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, int(exponent)))
    nanos = digits * 10**power if power >= 0 else _divide_away(digits, 10**-power)
    return -nanos if sign == "-" else nanos


def _divide_away(dividend: int, divisor: int) -> int:
    """Divide by a positive number, rounding away from zero."""
    return -(-dividend // divisor) if dividend > 0 else dividend // divisor


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
