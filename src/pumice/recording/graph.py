"""Objects that refer to each other as one table of plain data, and back.

Only data is written, and only classes of this project are made from it: no text can make a reader run anything. Objects as they travel (`api`) are left to the JSON
encoder; whoever encodes the table later, in another thread, finds them unchanged because they are frozen. Orders of dictionaries, shared references and
cycles come back as they were.
"""

from __future__ import annotations

import math
import operator
from collections import OrderedDict, deque
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pumice.api import decoding, kinds, meta
from pumice.recording.classes import Layout, StateError, find_class

if TYPE_CHECKING:
    from collections.abc import Callable

    Entry = list[Any]

_SCALARS: Final = frozenset({int, str, bool, type(None)})
_ONE_FIELD: Final = 1


class Table(msgspec.Struct):
    """The graph: layouts of classes, entries, and the place of the root."""

    layouts: list[Layout]
    entries: list[Any]
    root: Any = None


class Encoder:
    """Writes one graph: `swap` puts something else in the place of an object, by its class, and `left_out` names fields that are not written."""

    def __init__(
        self,
        swap: dict[type, Callable[[Any], Any]],
        left_out: dict[type, frozenset[str]],
        clean: Callable[[Any], Any] = lambda found: found,
    ) -> None:
        self._swap = swap
        self._left_out = left_out
        self._clean = clean
        self._index: dict[int, int] = {}
        self._entries: list[Any] = []
        self._todo: list[tuple[int, Any]] = []
        self._kept: list[Any] = []  # what was made on the way, lest its identity is given to something else
        self._layouts: dict[tuple[type, tuple[str, ...]], int] = {}
        self._getters: dict[type, tuple[Entry, Callable[[Any], Any], bool]] = {}
        self._writers: dict[type, Callable[[Any], Entry]] = {
            dict: self._dict,
            OrderedDict: lambda found: ["m", *self._pairs(found)],
            list: lambda found: ["l", *map(self._value, found)],
            tuple: lambda found: ["t", *map(self._value, found)],
            set: lambda found: ["s", *map(self._value, found)],
            frozenset: lambda found: ["z", *map(self._value, found)],
            deque: lambda found: ["q", *map(self._value, found)],
            np.ndarray: _array,
            range: lambda found: ["r", found.start, found.stop, found.step],
            Fraction: lambda found: ["f", found.numerator, found.denominator],
            bytes: lambda found: ["b", found],
            kinds.Kind: lambda found: ["k", found.api_version, found.name],
        }

    def encode(self, root: Any) -> Table:
        """Write everything that can be reached from a root."""
        place = self._value(root)
        while self._todo:
            index, found = self._todo.pop()
            writer = self._writers.get(type(found)) or self._writer(type(found))
            self._entries[index] = writer(found)
        layouts = [
            Layout(module=kind.__module__, name=kind.__qualname__, fields=fields) for kind, fields in self._layouts
        ]
        return Table(layouts, self._entries, place)

    def _value(self, found: Any) -> Any:
        kind = type(found)
        if kind in _SCALARS:
            return found
        if kind is float:
            return found if math.isfinite(found) else self._immeasurable(found)
        index = self._index.get(id(found))
        return [index] if index is not None else self._place(found)

    def _immeasurable(self, found: float) -> Entry:
        """Write a float that JSON has no number for."""
        self._entries.append(["x", str(found)])
        return [len(self._entries) - 1]

    def _place(self, found: Any) -> Entry:
        swap = self._swap.get(type(found))
        index = self._index[id(found)] = len(self._entries)
        self._kept.append(found)
        self._entries.append(None)
        self._todo.append((index, found if swap is None else swap(found)))
        return [index]

    def _pairs(self, found: dict[Any, Any]) -> list[Any]:
        value = self._value
        return [value(each) for pair in found.items() for each in pair]

    def _dict(self, found: dict[Any, Any]) -> Entry:
        return ["d", *self._pairs(found)]

    def _writer(self, kind: type) -> Callable[[Any], Entry]:
        """Find how instances of a class are written."""
        if issubclass(kind, meta.Wire) and kind is not decoding.Opaque:
            self._writers[kind] = self._wire
        elif issubclass(kind, msgspec.Struct):
            self._writers[kind] = self._struct
        elif issubclass(kind, dict):
            self._writers[kind] = lambda found: ["D", self._layout(kind, ()), *self._pairs(found)]
        elif issubclass(kind, Enum):
            self._writers[kind] = lambda found: ["e", self._layout(kind, ()), found.value]
        elif issubclass(kind, np.generic):
            self._writers[kind] = lambda found: ["n", found.dtype.str, found.item()]
        else:
            find_class(kind.__module__, kind.__qualname__)
            self._writers[kind] = self._slotted if not _has_dict(kind) else self._plain
        return self._writers[kind]

    def _layout(self, kind: type, fields: tuple[str, ...]) -> int:
        number = self._layouts.get((kind, fields))
        if number is None:
            find_class(kind.__module__, kind.__qualname__)
            number = self._layouts[kind, fields] = len(self._layouts)
        return number

    def _wire(self, found: Any) -> Entry:
        return ["w", self._layout(type(found), ()), self._clean(found)]

    def _struct(self, found: msgspec.Struct) -> Entry:
        fields = found.__struct_fields__
        return ["o", self._layout(type(found), fields), *(self._value(getattr(found, field)) for field in fields)]

    def _plain(self, found: Any) -> Entry:
        slots = {name: getattr(found, name) for name in _slots(type(found)) if hasattr(found, name)}
        left_out = self._left_out.get(type(found), ())
        state = {name: value for name, value in {**vars(found), **slots}.items() if name not in left_out}
        return ["o", self._layout(type(found), tuple(state)), *map(self._value, state.values())]

    def _slotted(self, found: Any) -> Entry:
        """Write an object of which all fields are slots; nearly always all are set, and read in one go."""
        kind = type(found)
        names = tuple(name for name in _slots(kind) if name not in self._left_out.get(kind, ()))
        getter = self._getters.get(kind)
        if getter is None:
            read = operator.attrgetter(*names) if names else lambda _: ()
            getter = self._getters[kind] = (["o", self._layout(kind, names)], read, len(names) == _ONE_FIELD)
        head, read, single = getter
        try:
            values = (read(found),) if single else read(found)
        except AttributeError:
            there = tuple(name for name in names if hasattr(found, name))
            return ["o", self._layout(kind, there), *(self._value(getattr(found, name)) for name in there)]
        return [*head, *map(self._value, values)]


class Decoder:
    """Makes the objects of a table: first what can be filled later, then what cannot change once it is made, then the fillings."""

    def __init__(self, table: Table) -> None:
        self._entries = table.entries
        self._root = table.root
        self._layouts = [(find_class(each.module, each.name), each.fields) for each in table.layouts]
        self._made: dict[int, Any] = {}

    def decode(self) -> Any:
        """Return the root."""
        shells = {"d": dict, "m": OrderedDict, "l": list, "s": set, "q": deque}
        fillings: dict[str, list[int]] = {"o": [], "l": [], "q": [], "s": [], "d": [], "m": [], "D": []}
        for index, entry in enumerate(self._entries):
            code = entry[0]
            if code in shells:
                self._made[index] = shells[code]()
                fillings[code].append(index)
            elif code == "D":
                self._made[index] = self._layouts[entry[1]][0]()
                fillings[code].append(index)
            elif code == "o" and (shell := _shell(self._layouts[entry[1]][0])) is not None:
                self._made[index] = shell
                fillings[code].append(index)
        for index in range(len(self._entries)):
            self._at(index)
        for indices in fillings.values():
            for index in indices:
                self._fill(self._made[index], self._entries[index])
        return self._value(self._root)

    def _value(self, found: Any) -> Any:
        return self._at(found[0]) if type(found) is list else found

    def _at(self, index: int) -> Any:
        try:
            return self._made[index]
        except KeyError:
            made = self._made[index] = self._make(self._entries[index])
            return made

    def _make(self, entry: Entry) -> Any:  # noqa: C901, PLR0911  one line for each code
        """Make what cannot change."""
        code, *rest = entry
        match code:
            case "t":
                return tuple(map(self._value, rest))
            case "x":
                return float(rest[0])
            case "z":
                return frozenset(map(self._value, rest))
            case "w":
                kind = self._layouts[rest[0]][0]
                return rest[1] if isinstance(rest[1], kind) else msgspec.convert(rest[1], kind)
            case "o":
                kind, fields = self._layouts[rest[0]]
                return kind(**dict(zip(fields, map(self._value, rest[1:]), strict=True)))
            case "e":
                return self._layouts[rest[0]][0](rest[1])
            case "a":
                return _from_array(*rest)
            case "n":
                return np.dtype(rest[0]).type(rest[1])
            case "k":
                return kinds.find(rest[0], rest[1])
            case "f":
                return Fraction(*rest)
            case "r":
                return range(*rest)
            case "b":
                return _bytes(rest[0])
        raise StateError(f"the state holds an entry {code!r} that nobody knows")

    def _fill(self, made: Any, entry: Entry) -> None:
        match entry[0]:
            case "d" | "m" | "D":
                values = list(map(self._value, entry[2 if entry[0] == "D" else 1 :]))
                made.update(zip(values[::2], values[1::2], strict=True))
            case "s":
                made.update(map(self._value, entry[1:]))
            case "l" | "q":
                made.extend(map(self._value, entry[1:]))
            case "o":
                for field, value in zip(self._layouts[entry[1]][1], entry[2:], strict=True):
                    setattr(made, field, self._value(value))


def _shell(kind: type) -> Any:
    """Make an instance that is filled later; None if it cannot be filled once it is made."""
    if not issubclass(kind, msgspec.Struct):
        return object.__new__(kind)
    if kind.__struct_config__.frozen:
        return None
    return kind(**dict.fromkeys(kind.__struct_fields__))


def _slots(kind: type) -> list[str]:
    found: dict[str, None] = {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found.update(dict.fromkeys((slots,) if isinstance(slots, str) else slots))
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _has_dict(kind: type) -> bool:
    return any("__slots__" not in base.__dict__ for base in kind.__mro__[:-1])


def _array(found: np.ndarray[Any, Any]) -> Entry:
    return ["a", found.dtype.str, list(found.shape), found.tobytes(), found.flags.writeable]


def _from_array(kind: str, shape: list[int], data: str | bytes, writeable: bool) -> np.ndarray[Any, Any]:  # noqa: FBT001  as it is written
    made = np.frombuffer(_bytes(data), dtype=np.dtype(kind)).reshape(shape).copy()
    made.flags.writeable = writeable
    return made


def _bytes(found: str | bytes) -> bytes:
    """Return bytes; JSON has them as text."""
    return found if isinstance(found, bytes) else msgspec.convert(found, bytes)
