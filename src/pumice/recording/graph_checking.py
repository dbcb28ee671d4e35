"""What must hold of a table before anything is made of it: every number in it is backed by as much text, so that reading is bounded by the size of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.recording.classes import StateError
from pumice.recording.graph import CONTAINERS, LEAVES, PAIRS, SCALARS

if TYPE_CHECKING:
    from pumice.recording.graph import Column, Group, Table

_CONTAINERS: Final = frozenset({*CONTAINERS.values(), "D"})
_NAMED: Final = frozenset("oweD")
_MOST_NUMBER: Final = 1 << 40


def check(table: Table) -> None:
    """Refuse a table that contradicts itself; the error names the group."""
    total = sum(group.count for group in table.groups if 0 <= group.count < _MOST_NUMBER)
    cells = sum(len(column.objects or ()) for group in table.groups for column in group.columns)
    for number, group in enumerate(table.groups):
        problem = _problem(group, table, total)
        if problem:
            raise StateError(f"group {number}: {problem}")
    if not 0 < total <= cells + 1:
        raise StateError(f"there are {total} objects, and {cells} references to any: nobody knows of the others")


def _problem(group: Group, table: Table, total: int) -> str:
    """Say what is wrong with a group; nothing if nothing is."""
    code = group.code
    if code not in _CONTAINERS and code not in _NAMED and code not in LEAVES:
        return f"nobody knows what {code[:20]!r} is"
    if not 0 <= group.count < _MOST_NUMBER:
        return f"it has {group.count} objects"
    if code in _NAMED and not 0 <= group.layout < len(table.layouts):
        return f"there is no class {group.layout}"
    if code not in _CONTAINERS and group.sizes is not None:
        return "it has sizes, and holds no containers"
    wanted = len(table.layouts[group.layout].fields) if code == "o" else 2 if code in PAIRS else 1
    if len(group.columns) != wanted:
        return f"it has {len(group.columns)} columns in the place of {wanted}"
    length = group.count
    if code in _CONTAINERS:
        sizes = group.sizes or []
        if len(sizes) != group.count or any(size < 0 for size in sizes):
            return f"it has {len(sizes)} sizes for {group.count} containers, or such below 0"
        length = sum(sizes)
    is_leaf = code in LEAVES or code == "w"
    said = (_column(column, length, total, is_leaf=is_leaf) for column in group.columns)
    return next((f"column {place}: {text}" for place, text in enumerate(said) if text), "")


def _column(column: Column, length: int, total: int, *, is_leaf: bool) -> str:
    values, objects = column.values, column.objects
    if (values is None) == (objects is None) or (is_leaf and values is None):
        return "it has neither values nor objects, or both, or not what its group needs"
    if len(values if values is not None else objects or ()) != length:
        return f"it has {len(values if values is not None else objects or ())} entries in the place of {length}"
    if objects and not (min(objects) >= 0 and max(objects) < total):
        return f"it names objects outside of 0 to {total - 1}"
    if values and not is_leaf and not set(map(type, values)) <= SCALARS:
        return "it holds something else than text and numbers"
    return ""


class Weights:
    """How much it takes to hash what cannot change, so that nobody can make a key whose parts are counted over and over again."""

    HIGHEST: Final = 64
    """How deep tuples, frozen sets and frozen objects may be nested."""

    def __init__(self, total: int) -> None:
        self._weights = [1] * total
        self._heights = [0] * total
        self._left = 1_000_000 + 100 * total

    def add(self, number: int, parts: list[int], plain: int) -> None:
        """Note that an object was made of others, and of so many plain values."""
        weights, heights = self._weights, self._heights
        weights[number] = 1 + plain + sum(weights[part] for part in parts)
        height = heights[number] = 1 + max((heights[part] for part in parts), default=0)
        if height > self.HIGHEST:
            raise StateError(f"object {number} is nested deeper than {self.HIGHEST}")

    def hash(self, numbers: list[int]) -> None:
        """Take the work of hashing objects from what may be done."""
        self._left -= sum(map(self._weights.__getitem__, numbers))
        if self._left < 0:
            raise StateError("its keys have more parts than a state of its size has")
