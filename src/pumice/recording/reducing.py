"""Delta debugging: fewer and fewer things, as long as something still holds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def minimal(items: Sequence[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """Return some of the items, in their order, with which it still holds and of which none can be left out; it must hold with all of them."""
    kept, parts = list(items), 2
    while kept:
        parts = min(parts, len(kept))
        smaller = next((fewer for fewer in _without_a_part(kept, parts) if holds(fewer)), None)
        if smaller is not None:
            kept, parts = smaller, max(parts - 1, 2)
        elif parts == len(kept):
            break
        else:
            parts *= 2
    return kept


def _without_a_part(items: list[T], parts: int) -> list[list[T]]:
    edges = [round(index * len(items) / parts) for index in range(parts + 1)]
    return [[*items[:start], *items[end:]] for start, end in itertools.pairwise(edges)]
