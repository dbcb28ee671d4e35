"""Objects made from the columns that `graph` wrote: first what can be filled later, then what cannot change once it is made, then the fillings.

A table may come from anybody. What it names is looked up in a list, what it declares is checked before anything is made (`graph_checking`), and nothing is called
but the makers of plain data that stand here.
"""

from __future__ import annotations

import bisect
import functools
from collections import OrderedDict, deque
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.recording import graph_checking, leaves
from pumice.recording.classes import StateError, check_fields, find_class
from pumice.recording.graph import PAIRS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.recording.graph import Column, Group, Table

_SHELLS: Final[dict[str, Callable[[], Any]]] = {"l": list, "s": set, "q": deque, "d": dict, "m": OrderedDict}
_FILL: Final[dict[str, Callable[..., None]]] = {
    "l": list.extend,
    "q": deque.extend,
    "s": set.update,
    "d": dict.update,
    "m": OrderedDict.update,
    "D": dict.update,
}
_ABSENT: Final = object()
_DEEPEST: Final = graph_checking.Weights.HIGHEST


class Reader:
    """Makes the objects of a table."""

    def __init__(self, table: Table) -> None:
        graph_checking.check(table)
        self._groups = table.groups
        self._fields = [each.fields for each in table.layouts]
        self._kinds = [self._find(place, table) for place in range(len(table.groups))]
        self._ends = list(accumulate(group.count for group in table.groups))
        self._made: list[Any] = [_ABSENT] * self._ends[-1]
        self._weights = graph_checking.Weights(self._ends[-1])
        self._offsets: dict[int, list[int]] = {}

    @staticmethod
    def _find(place: int, table: Table) -> Any:
        """Return the class of a group, if it has one and may fill the fields that it names."""
        group = table.groups[place]
        if group.code not in "oweD":
            return None
        layout = table.layouts[group.layout]
        try:
            kind = find_class(layout.module, layout.name, group.code)
            if group.code == "o":
                check_fields(kind, layout.fields)
        except StateError as error:
            raise StateError(f"group {place}: {error}") from None
        return kind

    def root(self) -> Any:
        """Return the root with everything below it."""
        later = [place for place, group in enumerate(self._groups) if self._begin(place, group)]
        for number in range(len(self._made) - 1, -1, -1):
            self._at(number, 0)
        for code in "olqsdmD":  # what is hashed by its fields has them before it becomes a key
            for place in later:
                if self._groups[place].code == code:
                    self._fill(place, self._groups[place])
        return self._made[0]

    def _first(self, place: int) -> int:
        return self._ends[place] - self._groups[place].count

    def _begin(self, place: int, group: Group) -> bool:
        """Make what is filled later, and what refers to nothing; tell whether something is to be filled."""
        first, kind = self._first(place), self._kinds[place]
        if group.code in _SHELLS or group.code == "D" or (group.code == "o" and _is_fillable(kind)):
            make = _SHELLS.get(group.code) or functools.partial(_shell, kind)
            self._made[first : first + group.count] = [make() for _ in range(group.count)]
            return True
        if group.code not in "otz":
            self._made[first : first + group.count] = self._leaves(place, group)
        return False

    def _leaves(self, place: int, group: Group) -> list[Any]:
        try:
            return leaves.read(group.code, self._kinds[place], group.columns[0].values or [])
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            raise StateError(f"group {place}: {error}") from error

    def _at(self, number: int, depth: int) -> Any:
        """Return an object, which is made now if it cannot change."""
        made = self._made[number]
        if made is _ABSENT:
            if depth > _DEEPEST:
                raise StateError(f"object {number} is nested deeper than {_DEEPEST}, or in itself")
            place = bisect.bisect_right(self._ends, number)
            made = self._made[number] = self._make(place, number, depth + 1)
        return made

    def _make(self, place: int, number: int, depth: int) -> Any:
        group, index = self._groups[place], number - self._first(place)
        if group.code == "o":
            cells = [self._cell(column, index, depth) for column in group.columns]
            parts = [column.objects[index] for column in group.columns if column.objects is not None]
            self._weights.add(number, parts, len(cells) - len(parts))
            return self._kinds[place](**dict(zip(self._fields[group.layout], cells, strict=True)))
        if place not in self._offsets:
            self._offsets[place] = [0, *accumulate(group.sizes or [])]
        start, end = self._offsets[place][index : index + 2]
        column = group.columns[0]
        if column.values is not None:
            items, parts = column.values[start:end], []
        else:
            parts = (column.objects or [])[start:end]
            items = [self._at(each, depth) for each in parts]
        self._weights.add(number, parts, len(items) - len(parts))
        if group.code == "t":
            return tuple(items)
        self._weights.hash(parts)
        return frozenset(items)

    def _cell(self, column: Column, index: int, depth: int) -> Any:
        return column.values[index] if column.values is not None else self._at((column.objects or [])[index], depth)

    def _column(self, column: Column) -> list[Any]:
        if column.values is not None:
            return column.values
        return list(map(self._made.__getitem__, column.objects or []))

    def _fill(self, place: int, group: Group) -> None:
        first = self._first(place)
        made = self._made[first : first + group.count]
        columns = list(map(self._column, group.columns))
        if group.code == "o":
            for field, values in zip(self._fields[group.layout], columns, strict=True):
                for each, value in zip(made, values, strict=True):
                    setattr(each, field, value)
            return
        if group.code not in "lq":
            self._weights.hash(group.columns[0].objects or [])
        items = zip(*columns, strict=True) if group.code in PAIRS else iter(columns[0])
        fill = _FILL[group.code]
        for each, size in zip(made, group.sizes or [], strict=True):
            fill(each, islice(items, size))


def _is_fillable(kind: type) -> bool:
    return not issubclass(kind, msgspec.Struct) or not kind.__struct_config__.frozen


def _shell(kind: type) -> Any:
    """Make an instance that is filled later, without a call of anything of its own."""
    if issubclass(kind, msgspec.Struct):
        return kind(**dict.fromkeys(kind.__struct_fields__))
    return dict.__new__(kind) if issubclass(kind, dict) else object.__new__(kind)
