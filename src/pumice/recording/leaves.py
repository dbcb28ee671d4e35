"""What refers to nothing else, made from plain data: numbers, texts, bytes, arrays of numbers, ranges, fractions and kinds."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pumice.api import kinds
from pumice.recording.classes import StateError
from pumice.recording.graph import SCALARS

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBERS: Final = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")  # no texts, no records, no objects of Python
_MOST_DIMENSIONS: Final = 8
_LONGEST_FLOAT: Final = 64


def read(code: str, kind: Any, values: list[Any]) -> list[Any]:
    """Make the objects of one column; of a class, those that its list allows."""
    if code == "w":
        return [each if isinstance(each, kind) else msgspec.convert(each, kind) for each in values]
    if code == "e":
        members = kind._value2member_map_  # nothing is called: a member is found or is not there
        return [members[each] if type(each) in (int, str) and each in members else _refuse(each) for each in values]
    return list(map(_MAKERS[code], values))


def _refuse(found: Any) -> Any:
    raise StateError(f"{str(found)[:100]!r} cannot be read")


def _plain(found: Any) -> Any:
    return found if type(found) in SCALARS else _refuse(found)


def _float(found: Any) -> float:
    return float(found) if type(found) is str and len(found) <= _LONGEST_FLOAT else _refuse(found)


def _kind_of_number(found: Any) -> np.dtype[Any]:
    return np.dtype(found) if type(found) is str and _NUMBERS.fullmatch(found) else _refuse(found)


def _array(found: Any) -> np.ndarray[Any, Any]:
    written, shape, data, writeable = found
    kind, content = _kind_of_number(written), _bytes(data)
    if type(shape) is not list or len(shape) > _MOST_DIMENSIONS or not _are_counts(shape):
        _refuse(shape)
    if math.prod(shape) * kind.itemsize != len(content):
        raise StateError(f"an array of {shape} numbers has {len(content)} bytes")
    made = np.frombuffer(content, dtype=kind).reshape(shape).copy()
    made.flags.writeable = writeable is True
    return made


def _are_counts(found: list[Any]) -> bool:
    return all(type(each) is int and 0 <= each < 1 << 40 for each in found)


def _number(found: Any) -> Any:
    kind, value = found
    return _kind_of_number(kind).type(value) if type(value) in (int, float, bool) else _refuse(value)


def _whole_numbers(found: Any, count: int) -> Any:
    if type(found) is list and len(found) == count and all(type(each) is int for each in found):
        return found
    return _refuse(found)


def _bytes(found: Any) -> bytes:
    """Return bytes; JSON has them as text."""
    return found if isinstance(found, bytes) else msgspec.convert(found, bytes)


def _kind(found: Any) -> kinds.Kind:
    api_version, name = found
    known = kinds.find(api_version, name) if type(api_version) is type(name) is str else None
    return known if known is not None else _refuse(found)


_MAKERS: Final[dict[str, Callable[[Any], Any]]] = {
    "v": _plain,
    "x": _float,
    "a": _array,
    "n": _number,
    "r": lambda found: range(*_whole_numbers(found, 3)),
    "f": lambda found: Fraction(*_whole_numbers(found, 2)),
    "b": _bytes,
    "k": _kind,
}
