"""A list that a command shows: what is read for it, which objects of that are shown, and in which columns."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.api.kinds import Kind
    from pumice.cli.volcano import calls
    from pumice.cli.volcano.columns import Column

Manifest = dict[str, Any]


def _first(found: Sequence[list[Manifest]]) -> list[Manifest]:
    return found[0]


class Read(NamedTuple):
    """A kind that a list is made from, and which of its objects: `wanted` judges by their metadata what nobody can select by."""

    kind: Kind
    namespace: str = ""
    labels: str = ""
    wanted: calls.Wanted | None = None
    optional: bool = False  # what it adds is told as unknown to whoever may not read it


class Listing(NamedTuple):
    """A list that a command shows.

    `chosen` takes the objects of every kind that is read, in that order, and gives those that are shown; `table` takes the same and gives the columns.
    """

    reads: tuple[Read, ...]
    table: Callable[[Sequence[list[Manifest]]], Sequence[Column]]
    chosen: Callable[[Sequence[list[Manifest]]], Iterable[Manifest]] = _first

    @property
    def kind(self) -> Kind:
        """The kind that is shown."""
        return self.reads[0].kind


def now() -> int:
    """Give the time in microseconds."""
    return time.time_ns() // 1000
