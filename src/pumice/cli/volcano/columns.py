"""Tables as vcctl prints them: cells padded to the left, one column directly after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.api.printable import printable
from pumice.apiserver.tables import ages
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Manifest = Mapping[str, Any]
Cell = Callable[[Manifest, int], object]
Row = tuple[str, ...]

NONE: Final = "<none>"


class Column(NamedTuple):
    """A column: its cell is a function of an object and of the time in microseconds.

    It is at least `width` wide, and wider than its longest cell, so that two never run into each other; without a width it is `gap` wider than its
    longest cell, the heading counted only if `heading_counts`.
    """

    heading: str
    cell: Cell
    width: int = 0
    gap: int = 1
    heading_counts: bool = True
    is_state: bool = False
    moves: bool = False

    def wide_enough(self, cells: Iterable[str]) -> int:
        """Return the width for some cells."""
        longest = max(map(len, cells), default=0)
        if self.heading_counts or self.width:
            longest = max(longest, len(self.heading))
        return max(self.width, longest + (1 if self.width else self.gap))


def row(columns: Sequence[Column], item: Manifest, now: int) -> Row:
    """Give the cells of an object; what a terminal would obey instead of showing is written out."""
    return tuple(printable(str(column.cell(item, now))) for column in columns)


def widths(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[int, ...]:
    """Give the width of every column for some rows."""
    wide = [column.wide_enough(each[index] for each in rows) for index, column in enumerate(columns)]
    if columns and columns[-1].width:
        wide[-1] = columns[-1].width  # nothing follows that it could run into
    return tuple(wide)


def line(cells: Row, wide: Sequence[int]) -> str:
    """Write a row."""
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, wide, strict=True))


def headings(columns: Sequence[Column]) -> Row:
    """Give the first row."""
    return tuple(column.heading for column in columns)


def text(columns: Sequence[Column], items: Iterable[Manifest], now: int) -> list[str]:
    """Write a table."""
    rows = [row(columns, item, now) for item in items]
    wide = widths(columns, rows)
    return [line(headings(columns), wide), *(line(each, wide) for each in rows)]


def name(item: Manifest, _: int = 0) -> str:
    """Give the name of an object."""
    return str(structure.mapping(item, "metadata").get("name") or "")


def namespace(item: Manifest, _: int = 0) -> str:
    """Give the namespace of an object."""
    return str(structure.mapping(item, "metadata").get("namespace") or "")


def age(item: Manifest, now: int) -> str:
    """Say how old an object is."""
    return ages.since(structure.mapping(item, "metadata").get("creationTimestamp"), now)


def field(*path: str, otherwise: object = "") -> Cell:
    """Give the cell that is what stands at a path."""

    def cell(item: Manifest, _: int) -> object:
        found = structure.mapping(item, *path[:-1]).get(path[-1])
        return otherwise if found is None or found == "" else found

    return cell


def count(*path: str) -> Cell:
    """Give the cell that is the number at a path, 0 where none is."""
    return field(*path, otherwise=0)


def amounts(*path: str) -> Cell:
    """Give the cell that lists the amounts at a path."""

    def cell(item: Manifest, _: int) -> str:
        return ",".join(f"{key}={value}" for key, value in structure.mapping(item, *path).items()) or NONE

    return cell
