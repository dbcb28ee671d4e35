"""Amounts of devices: exact integers of nano-units, read once, and written back as they came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import quantity

if TYPE_CHECKING:
    from pumice.api.resource import Amount

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def nanos(text: Amount) -> int:
    """Return an amount in nano-units, or raise the `QuantityError` that says what is wrong."""
    return int(quantity.parse(text) * quantity.NANO)


def written(amount: int, like: Amount) -> str:
    """Write an amount in canonical form, with binary suffixes if the one it comes from has them."""
    if str(like).endswith("i") and amount % quantity.NANO == 0:
        return _suffixed(amount // quantity.NANO, 1024, _BINARY)
    return _suffixed(amount, 1000, _DECIMAL)


def _suffixed(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    step = 0
    while amount and step + 1 < len(suffixes) and amount % base == 0:
        amount //= base
        step += 1
    return f"{amount}{suffixes[step]}" if amount else "0"
