"""Objects made from the columns that `graph` wrote: first what can be filled later, then what cannot change once it is made, then the fillings."""

from __future__ import annotations

import bisect
import functools
from collections import OrderedDict, deque
from fractions import Fraction
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pumice.api import kinds
from pumice.recording.classes import StateError, find_class
from pumice.recording.graph import PAIRS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.recording.graph import Column, Group, Table

_SHELLS: Final[dict[str, Callable[[], Any]]] = {"l": list, "s": set, "q": deque, "d": dict, "m": OrderedDict}
_ABSENT: Final = object()


class Reader:
    """Makes the objects of a table."""

    def __init__(self, table: Table) -> None:
        self._groups = table.groups
        self._classes = [(find_class(each.module, each.name), each.fields) for each in table.layouts]
        self._ends = list(accumulate(group.count for group in table.groups))
        self._made: list[Any] = [_ABSENT] * (self._ends[-1] if self._ends else 0)
        self._offsets: dict[int, list[int]] = {}

    def root(self) -> Any:
        """Return the root with everything below it."""
        later = [place for place, group in enumerate(self._groups) if self._begin(place, group)]
        for number in range(len(self._made) - 1, -1, -1):
            self._at(number)
        for code in "olqsdmD":  # what is hashed by its fields has them before it becomes a key
            for place in later:
                if self._groups[place].code == code:
                    self._fill(place, self._groups[place])
        return self._made[0]

    def _first(self, place: int) -> int:
        return self._ends[place] - self._groups[place].count

    def _begin(self, place: int, group: Group) -> bool:
        """Make what is filled later, and what refers to nothing; tell whether something is to be filled."""
        first = self._first(place)
        if group.code in _SHELLS or group.code == "D" or (group.code == "o" and _is_fillable(self._class(group))):
            make = _SHELLS.get(group.code) or functools.partial(_shell, self._class(group))
            self._made[first : first + group.count] = [make() for _ in range(group.count)]
            return True
        if group.code not in "otz":
            self._made[first : first + group.count] = self._leaves(group)
        return False

    def _leaves(self, group: Group) -> list[Any]:
        values = group.columns[0].values or []
        match group.code:
            case "v":
                return values
            case "w":
                kind = self._class(group)
                return [each if isinstance(each, kind) else msgspec.convert(each, kind) for each in values]
            case "e":
                kind = self._class(group)
                return [kind(each) for each in values]
        make = _LEAVES.get(group.code)
        if make is None:
            raise StateError(f"the state holds a group {group.code!r} that nobody knows")
        return [make(each) for each in values]

    def _class(self, group: Group) -> Any:
        return self._classes[group.layout][0] if group.layout >= 0 else object

    def _at(self, number: int) -> Any:
        """Return an object, which is made now if it cannot change."""
        made = self._made[number]
        if made is _ABSENT:
            place = bisect.bisect_right(self._ends, number)
            made = self._made[number] = self._make(self._groups[place], place, number - self._first(place))
        return made

    def _make(self, group: Group, place: int, index: int) -> Any:
        if group.code == "o":
            kind, fields = self._classes[group.layout]
            return kind(**{f: self._cell(c, index) for f, c in zip(fields, group.columns, strict=True)})
        if place not in self._offsets:
            self._offsets[place] = [0, *accumulate(group.sizes or [])]
        start, end = self._offsets[place][index : index + 2]
        items = (self._cell(group.columns[0], each) for each in range(start, end))
        return tuple(items) if group.code == "t" else frozenset(items)

    def _cell(self, column: Column, index: int) -> Any:
        return column.values[index] if column.values is not None else self._at((column.objects or [])[index])

    def _column(self, column: Column) -> list[Any]:
        if column.values is not None:
            return column.values
        return list(map(self._made.__getitem__, column.objects or []))

    def _fill(self, place: int, group: Group) -> None:
        first = self._first(place)
        made = self._made[first : first + group.count]
        columns = list(map(self._column, group.columns))
        if group.code == "o":
            for field, values in zip(self._classes[group.layout][1], columns, strict=True):
                for each, value in zip(made, values, strict=True):
                    setattr(each, field, value)
            return
        items = zip(*columns, strict=True) if group.code in PAIRS else iter(columns[0])
        for each, size in zip(made, group.sizes or [], strict=True):
            (each.extend if group.code in "lq" else each.update)(islice(items, size))


def _is_fillable(kind: type) -> bool:
    return not issubclass(kind, msgspec.Struct) or not kind.__struct_config__.frozen


def _shell(kind: type) -> Any:
    """Make an instance that is filled later."""
    if issubclass(kind, msgspec.Struct):
        return kind(**dict.fromkeys(kind.__struct_fields__))
    return kind() if issubclass(kind, dict) else object.__new__(kind)


def _array(found: list[Any]) -> np.ndarray[Any, Any]:
    kind, shape, data, writeable = found
    made = np.frombuffer(_bytes(data), dtype=np.dtype(kind)).reshape(shape).copy()
    made.flags.writeable = writeable
    return made


def _bytes(found: str | bytes) -> bytes:
    """Return bytes; JSON has them as text."""
    return found if isinstance(found, bytes) else msgspec.convert(found, bytes)


_LEAVES: Final[dict[str, Callable[[Any], Any]]] = {
    "x": float,
    "a": _array,
    "n": lambda found: np.dtype(found[0]).type(found[1]),
    "r": lambda found: range(*found),
    "f": lambda found: Fraction(*found),
    "b": _bytes,
    "k": lambda found: kinds.find(*found),
}
