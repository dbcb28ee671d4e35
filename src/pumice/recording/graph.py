"""Objects that refer to each other, as columns of plain data.

Only data is written, and only classes that `known_classes` lists are made from it: no text can make a reader run anything. Orders of dictionaries, shared references and
cycles come back as they were.

Writing has two halves. `capture` copies every object that could change, class by class and field by field, which is as fast as Python can copy; `Captured.table`
numbers what was copied, and may run in another thread, later. Reading is in `graph_reading`.
"""

from __future__ import annotations

import math
import operator
from collections import OrderedDict, defaultdict, deque
from enum import Enum
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pumice.api import decoding, kinds, meta
from pumice.recording.classes import Layout, find_class, slots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SCALARS: Final = frozenset({int, str, bool, type(None), float})
CONTAINERS: Final[dict[type, str]] = {
    list: "l",
    tuple: "t",
    set: "s",
    frozenset: "z",
    deque: "q",
    dict: "d",
    OrderedDict: "m",
}
PAIRS: Final = frozenset("dmD")


class Column(msgspec.Struct, omit_defaults=True):
    """The values of one field, or of all items of containers: scalars as they are, or the numbers of objects."""

    values: list[Any] | None = None
    objects: list[int] | None = None


class Group(msgspec.Struct, omit_defaults=True):
    """Objects of one class, numbered one after the other; `sizes` are the numbers of items of containers."""

    code: str
    count: int
    layout: int = -1
    columns: list[Column] = []
    sizes: list[int] | None = None


class Table(msgspec.Struct):
    """A graph; its root is the object of number 0."""

    layouts: list[Layout]
    groups: list[Group]


class Rules(msgspec.Struct):
    """What is not written as it is: fields that are left out, fields that are worked out later, values of dictionaries, and objects as they travel."""

    left_out: dict[type, frozenset[str]]
    later: dict[tuple[type, str], Callable[[Any], str]]
    secret_key: str = ""
    conceal: Callable[[str], str] = lambda text: text
    clean: Callable[[Any], Any] = lambda found: found


class Copied:
    """Objects of one class, with a list of values for each column; `late` works a column out of the objects themselves."""

    __slots__ = ("arrays", "code", "columns", "fields", "found", "kind", "late", "sizes")

    def __init__(self, code: str, kind: type, found: list[Any]) -> None:
        self.code = code
        self.kind = kind
        self.found = found
        self.fields: tuple[str, ...] = ()
        self.columns: list[list[Any]] = []
        self.late: dict[int, Callable[[Any], str]] = {}
        self.sizes: list[int] | None = None
        self.arrays: list[Any] | None = None


class Captured:
    """A graph that was copied and is not numbered yet."""

    def __init__(self, rules: Rules, groups: list[Copied], numbers: dict[int, int]) -> None:
        self._rules = rules
        self.groups = groups
        self._numbers = numbers
        self._layouts: dict[tuple[type, tuple[str, ...]], int] = {}

    def table(self) -> Table:
        """Give every object its number."""
        groups = [self._group(each) for each in self.groups]
        layouts = [Layout(kind.__module__, kind.__qualname__, fields) for kind, fields in self._layouts]
        return Table(layouts, groups)

    def _group(self, copied: Copied) -> Group:
        code, found = copied.code, copied.found
        if code in LEAVES:
            values = list(map(LEAVES[code], found)) if copied.arrays is None else copied.arrays
            layout = self._layout(code, copied.kind, ()) if code == "e" else -1
            return Group(code, len(found), layout, [Column(values)])
        if code == "w":
            return Group(
                code, len(found), self._layout(code, copied.kind, ()), [Column(list(map(self._rules.clean, found)))]
            )
        layout = self._layout(code, copied.kind, copied.fields) if code in "oD" else -1
        columns = [
            Column(list(map(copied.late[place], found))) if place in copied.late else self._column(values)
            for place, values in enumerate(copied.columns)
        ]
        return Group(code, len(found), layout, columns, copied.sizes)

    def _column(self, values: list[Any]) -> Column:
        if is_plain(values):
            return Column(values)
        return Column(objects=list(map(self._numbers.__getitem__, map(id, values))))

    def _layout(self, code: str, kind: type, fields: tuple[str, ...]) -> int:
        find_class(kind.__module__, kind.__qualname__, code)
        return self._layouts.setdefault((kind, fields), len(self._layouts))


def is_plain(values: list[Any]) -> bool:
    """Tell whether values can stand in a column as they are."""
    there = set(map(type, values))
    return there <= SCALARS and (float not in there or all(math.isfinite(v) for v in values if type(v) is float))


def capture(root: Any, rules: Rules) -> Captured:
    """Copy everything that can be reached from a root."""
    groups: list[Copied] = []
    numbers: dict[int, int] = {}
    fresh: dict[int, Any] = {id(root): root}
    while fresh:
        by_kind: defaultdict[type, list[Any]] = defaultdict(list)
        for key, each in fresh.items():
            if key not in numbers:
                by_kind[type(each)].append(each)
        fresh = {}
        for kind, found in by_kind.items():
            first = len(numbers)
            numbers.update(zip(map(id, found), range(first, first + len(found)), strict=True))
            for copied in _copied(kind, found, rules):
                groups.append(copied)
                for place, values in enumerate(copied.columns):
                    if place not in copied.late and not is_plain(values):
                        fresh.update(zip(map(id, values), values, strict=True))
    return Captured(rules, groups, numbers)


def _copied(kind: type, found: list[Any], rules: Rules) -> Iterable[Copied]:
    """Copy objects of one class; such with different fields, which are rare, go into groups of their own."""
    if kind in SCALARS:
        return [Copied("x" if kind is float else "v", kind, found)]
    if kind in CONTAINERS or issubclass(kind, dict):
        return [_items(Copied(CONTAINERS.get(kind, "D"), kind, found), rules)]
    code = _leaf(kind)
    if code:
        copied = Copied(code, kind, found)
        if code == "a":
            copied.arrays = list(map(_array, found))  # they may change
        return [copied]
    if issubclass(kind, msgspec.Struct):
        return [_fields(kind, found, kind.__struct_fields__, rules)]
    left_out = rules.left_out.get(kind, frozenset())
    slots = [name for name in slots_of(kind) if name not in left_out]
    if not hasattr(found[0], "__dict__"):
        try:
            return [_fields(kind, found, slots, rules)]
        except AttributeError:
            pass  # some have slots that are not set
    groups: list[tuple[tuple[str, ...], list[Any]]] = []
    for each in found:  # in their order, so that the numbers stay right
        names = (*getattr(each, "__dict__", ()), *slots)
        fields = tuple(name for name in names if name not in left_out and hasattr(each, name))
        if groups and groups[-1][0] == fields:
            groups[-1][1].append(each)
        else:
            groups.append((fields, [each]))
    return [_fields(kind, members, fields, rules) for fields, members in groups]


def _fields(kind: type, found: list[Any], fields: Sequence[str], rules: Rules) -> Copied:
    copied = Copied("o", kind, found)
    copied.fields = tuple(fields)
    for place, field in enumerate(fields):
        if (kind, field) in rules.later:
            copied.late[place] = rules.later[kind, field]
        copied.columns.append([] if place in copied.late else list(map(operator.attrgetter(field), found)))
    return copied


def _items(copied: Copied, rules: Rules) -> Copied:
    found = copied.found
    copied.sizes = list(map(len, found))
    if copied.code not in PAIRS:
        copied.columns = [list(chain.from_iterable(found))]
        return copied
    keys = list(chain.from_iterable(found))
    values = list(chain.from_iterable(each.values() for each in found))
    if rules.secret_key and rules.secret_key in keys:
        shown = zip(keys, values, strict=True)
        values = [rules.conceal(v) if k == rules.secret_key and isinstance(v, str) else v for k, v in shown]
    copied.columns = [keys, values]
    return copied


def _leaf(kind: type) -> str:
    """Return the code of what refers to nothing else; empty if it may."""
    if kind in _KINDS_OF_LEAVES:
        return _KINDS_OF_LEAVES[kind]
    if issubclass(kind, meta.Wire) and kind is not decoding.Opaque:
        return "w"
    return "e" if issubclass(kind, Enum) else "n" if issubclass(kind, np.generic) else ""


def _array(found: np.ndarray[Any, Any]) -> list[Any]:
    return [found.dtype.str, list(found.shape), found.tobytes(), found.flags.writeable]


_KINDS_OF_LEAVES: Final[dict[type, str]] = {np.ndarray: "a", range: "r", Fraction: "f", bytes: "b", kinds.Kind: "k"}
LEAVES: Final[dict[str, Callable[[Any], Any]]] = {
    "v": lambda found: found,
    "x": str,
    "e": lambda found: found.value,
    "a": lambda found: found,
    "n": lambda found: [found.dtype.str, found.item()],
    "r": lambda found: [found.start, found.stop, found.step],
    "f": lambda found: [found.numerator, found.denominator],
    "b": lambda found: found,
    "k": lambda found: [found.api_version, found.name],
}
