"""Amounts as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model import resources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.explaining.explanations import Shown
    from pumice.model.resources import Vector, Vocabulary

UNLIMITED = 2**60
"""From here on an amount stands for no limit at all."""


def shown(name: str, units: int) -> str:
    """Write an amount of a resource; one without a limit is empty."""
    return "" if units >= UNLIMITED else resources.shown(name, units)


def request_shown(amounts: Mapping[str, int]) -> Shown:
    """Write what a pod asks for, the slot that every pod takes left out."""
    return {name: shown(name, units) for name, units in sorted(amounts.items()) if units and name != "pods"}


def vector_shown(vocabulary: Vocabulary, vector: Vector) -> Shown:
    """Write what is not zero of a vector, slots for pods left out."""
    return request_shown(vocabulary.amounts(vector))
