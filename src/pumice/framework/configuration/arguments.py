"""What plugins and actions may be told: declared once as data, read strictly.

A value of the wrong type refuses the file. One of the right type but out of range is replaced, with a warning. Decimals are kept as
they were written: 1.2 is 6/5.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pumice.api import documents, duration, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["int", "float", "bool", "string", "duration", "quantity", "strings", "list", "map"]

EXPECTED: Final[dict[Kind, str]] = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "string": "a string",
    "duration": 'a duration such as "30s"',
    "quantity": 'an integer, or a quantity such as "200Mi"',
    "strings": "one string of names separated by commas",
    "list": "a list",
    "map": "a map",
}
# What plugins receive of each kind, in Python.
_RECEIVED: Final[dict[Kind, tuple[Any, str]]] = {
    "int": (int, "an int"),
    "float": (Fraction, "a Fraction"),
    "bool": (bool, "a bool"),
    "string": (str, "a str"),
    "duration": (int, "an int of microseconds"),
    "quantity": ((int, str), "an int, or a str as it was written"),
    "strings": (tuple, "a tuple of str"),
    "list": ((list, tuple), "a list"),
    "map": (dict, "a dict"),
}
_OPTIONAL: Final = ("duration", "list", "map")
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,19}")
_DECIMAL: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?(?P<power>[0-9]+))?")
_LONGEST: Final = 64
OFF: Final = "off"
_LARGEST_POWER: Final = 400
_LIMIT: Final = 2**63


class Argument(msgspec.Struct, frozen=True):
    """One argument: its name, or a pattern with one `*`, and the values it may have.

    The default, the bounds and the replacement are given as the plugin receives them: a Fraction for a float, microseconds for a duration,
    a tuple for strings. A value outside the bounds or the choices, or a text that is no duration, gives the replacement; without one, a value outside
    gives the default and such a text refuses the file. `fields` says what may stand in a map; without it a map is taken as it is.
    """

    name: str
    kind: Kind
    default: Any = None
    help: str = ""
    minimum: int | float | None = None
    maximum: int | float | None = None
    replacement: Any = msgspec.UNSET
    choices: tuple[str, ...] = ()
    fields: tuple[Argument, ...] = ()

    @property
    def is_pattern(self) -> bool:
        """Tell whether the name stands for every key with its beginning and end."""
        return "*" in self.name

    def covers(self, key: str) -> bool:
        """Tell whether a key fits the pattern, with something in the place of its `*`."""
        start, star, end = self.name.partition("*")
        return bool(star) and len(key) > len(start) + len(end) and key.startswith(start) and key.endswith(end)


class Reading(msgspec.Struct, frozen=True):
    """What became of one written value: it is refused if `refusal` says why."""

    value: Any = None
    refusal: str = ""
    warning: str = ""


class _WrongType(Exception):  # noqa: N818  a signal inside this module, not an error anyone sees
    """A value does not have the type that was declared."""


def misdeclared(declared: Iterable[Argument]) -> str:
    """Say what is wrong with what was declared: a default, or a replacement, that no file could bring; empty if nothing is."""
    seen: set[str] = set()
    for argument in declared:
        if argument.kind not in EXPECTED:
            return f"setting {argument.name} is of the kind {argument.kind!r}; there are {', '.join(EXPECTED)}"
        if argument.name in seen:
            return f"setting {argument.name} is declared twice"
        seen.add(argument.name)
        for what, value in (("default", argument.default), ("replacement", argument.replacement)):
            if problem := _unlike(argument, value):
                return f"setting {argument.name} has the {what} {value!r}, {problem}"
        for what, bound in (("minimum", argument.minimum), ("maximum", argument.maximum)):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float | Fraction)):
                return f"setting {argument.name} has the {what} {bound!r}, and must have a number"
        if problem := _outside(argument, argument.default):
            return f"setting {argument.name} has the default {_shown(argument, argument.default)}, {problem}"
        if problem := misdeclared(argument.fields):
            return f"in {argument.name} {problem}"
    return ""


def _unlike(argument: Argument, value: Any) -> str:
    """Say that a declared value is not of the type that plugins receive; none at all is fine where a file may leave it open."""
    if value is msgspec.UNSET or (value is None and (argument.kind in _OPTIONAL or argument.is_pattern)):
        return ""
    types, wanted = _RECEIVED[argument.kind]
    if isinstance(value, types) and (argument.kind == "bool" or not isinstance(value, bool)):
        stray = argument.kind == "strings" and not all(isinstance(each, str) for each in tuple(value))
        return f"and must be {wanted}" if stray else ""
    return f"a {type(value).__name__}, and must be {wanted}"


def _outside(argument: Argument, value: Any) -> str:
    """Say that a default breaks the bounds or the choices that are declared beside it."""
    if value is None:
        return ""
    if argument.minimum is not None and value < argument.minimum:
        return f"below the minimum of {_shown(argument, argument.minimum)}"
    if argument.maximum is not None and value > argument.maximum:
        return f"above the maximum of {_shown(argument, argument.maximum)}"
    return (
        f"which is none of {', '.join(argument.choices)}" if argument.choices and value not in argument.choices else ""
    )


def match(declared: Iterable[Argument], key: str) -> Argument | None:
    """Find the argument that a key sets: the exact name first, then the longest pattern."""
    best: Argument | None = None
    for argument in declared:
        if argument.name == key:
            return argument
        if argument.covers(key):
            best = argument if best is None or len(argument.name) > len(best.name) else best
    return best


def defaults(declared: Iterable[Argument]) -> dict[str, Any]:
    """Return the value of every argument that is not a pattern when nothing is written."""
    return {
        argument.name: defaults(argument.fields) if argument.fields and argument.default is None else argument.default
        for argument in declared
        if not argument.is_pattern
    }


def read(argument: Argument, document: documents.Located, path: documents.Path, *, lenient: bool) -> Reading:
    """Read the value written at a path; `lenient` takes a string that parses for what it says, as kube-batch did."""
    written = document.at(path)
    if written is False and OFF in argument.choices:
        return Reading(value=OFF)  # as YAML reads a bare off
    if written == 0 and argument.kind == "duration" and argument.minimum == 0 and written is not False:
        return Reading(value=0)  # none has no unit
    try:
        value = _converted(argument.kind, document, path, lenient=lenient)
    except duration.DurationError as error:
        if argument.replacement is msgspec.UNSET:
            return Reading(refusal=f"expected {EXPECTED['duration']}: {error}")
        return _replaced(argument, written, str(error))
    except _WrongType as error:
        return Reading(refusal=f"expected {EXPECTED[argument.kind]}, found {documents.described(written)}{error}")
    if argument.minimum is not None and value < argument.minimum:
        return _replaced(argument, written, f"the minimum is {_shown(argument, argument.minimum)}")
    if argument.maximum is not None and value > argument.maximum:
        return _replaced(argument, written, f"the maximum is {_shown(argument, argument.maximum)}")
    if argument.choices and value not in argument.choices:
        return _replaced(argument, written, f"known are {', '.join(argument.choices)}")
    return Reading(value=value)


def parse_bool(text: str) -> bool | None:
    """Read a boolean written as a string, None if it is none."""
    return True if text in _TRUE else False if text in _FALSE else None


def _replaced(argument: Argument, written: Any, why: str) -> Reading:
    value = argument.default if argument.replacement is msgspec.UNSET else argument.replacement
    used = "nothing" if value is None else _shown(argument, value)
    return Reading(value=value, warning=f"found {documents.described(written)}, but {why}; {used} is used instead")


def _shown(argument: Argument, value: Any) -> str:
    if argument.kind == "duration":
        return duration.format_duration(int(value))
    return str(float(value)) if isinstance(value, Fraction) and value.denominator != 1 else str(value)


def _converted(kind: Kind, document: documents.Located, path: documents.Path, *, lenient: bool) -> Any:
    value = document.at(path)
    match kind, value:
        case ("list", list()) | ("map", dict()) | ("float", float()):
            return _exact(document, path)
        case _, bool():
            if kind == "bool":
                return value
        case "int" | "float" | "quantity", int():
            return _whole(kind, value)
        case _, str():
            return _from_text(kind, value, lenient=lenient)
    raise _WrongType


def _whole(kind: Kind, value: int) -> int | Fraction:
    if kind == "float":
        return Fraction(value)
    if value >= _LIMIT:
        raise _WrongType(f"; integers end at {_LIMIT - 1}")
    return value


def _from_text(kind: Kind, text: str, *, lenient: bool) -> Any:
    match kind:
        case "string":
            return text
        case "strings":
            return tuple(part for piece in text.split(",") if (part := piece.strip()))
        case "duration":
            return duration.parse(text)
        case "quantity":
            return _quantity(text)
        case "bool" if (truth := parse_bool(text)) is not None:
            return truth
        case "int" | "float":
            return _number(kind, text, lenient=lenient)
    raise _WrongType


def _quantity(text: str) -> str:
    try:
        quantity.parse(text)
    except quantity.QuantityError as error:
        raise _WrongType(f": {error}") from None
    return text


def _number(kind: Literal["int", "float"], text: str, *, lenient: bool) -> int | Fraction:
    whole = int(text) if _WHOLE.fullmatch(text) else None
    value = whole if kind == "int" else _decimal(text)
    if value is None or not -_LIMIT <= value < _LIMIT:
        raise _WrongType
    if not lenient:
        raise _WrongType("; write it without quotes (quoted numbers are read only under `compatibility: kube-batch`)")
    return value


def _exact(document: documents.Located, path: documents.Path) -> Any:
    """Return a value in which every decimal is the fraction that was written."""
    value = document.at(path)
    if isinstance(value, dict):
        return {key: _exact(document, (*path, key)) for key in value}
    if isinstance(value, list):
        return [_exact(document, (*path, index)) for index in range(len(value))]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _WrongType("; it must be finite")
        text = (document.text_of(path) or "").replace("_", "")
        if len(text) > _LONGEST:
            raise _WrongType(f" of {len(text)} characters; at most {_LONGEST} are read")
        exact = _decimal(text)
        return Fraction(value) if exact is None else exact
    return value


def _decimal(text: str) -> Fraction | None:
    found = _DECIMAL.fullmatch(text)
    if found is None or len(text) > _LONGEST or int(found["power"] or "0") > _LARGEST_POWER:
        return None
    return Fraction(text)
