"""Expectations about maps of quantities: only the resources named are compared, by value, and an absent one reads as 0."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import quantity
from pumice.scenario import requests

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor

_BYTES = ("memory", "ephemeral-storage", "hugepages-")


class AmountRule(msgspec.Struct, frozen=True):
    """One resource and the quantity it must have, as written."""

    resource: str
    amount: str | int | float


def read(cursor: Cursor) -> tuple[AmountRule, ...]:
    """Read a map of resources to quantities."""
    rules: list[AmountRule] = []
    for resource, entry in cursor.entries("a map of quantities"):
        try:
            quantity.parse(entry.value)
        except (quantity.QuantityError, TypeError) as error:
            entry.refuse(f"not a quantity: {error}")
        else:
            rules.append(AmountRule(resource, entry.value))
    return tuple(rules)


def listed(resources: Any) -> requests.Amounts:
    """Read stored quantities; one that cannot be read counts as absent."""
    return requests.amounts(resources)


def misses(key: str, rules: tuple[AmountRule, ...], actual: requests.Amounts) -> list[tuple[str, str]]:
    """Give (expected, found) for each resource with another value."""
    return [
        (
            f"{key}: {rule.resource} {rule.amount}",
            f"{key}: {rule.resource} {shown(rule.resource, actual.get(rule.resource, Fraction(0)))}",
        )
        for rule in rules
        if quantity.parse(rule.amount) != actual.get(rule.resource, Fraction(0))
    ]


def shown(resource: str, amount: Fraction) -> str:
    """Write an exact amount as a quantity."""
    if amount.denominator == 1:
        return quantity.format_bytes(int(amount)) if resource.startswith(_BYTES) else quantity.format_whole(int(amount))
    thousandths = amount * 1000
    return quantity.format_milli(int(thousandths)) if thousandths.denominator == 1 else str(float(amount))
