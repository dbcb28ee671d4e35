"""The second look at a manifest that did not decode: nulls are taken out, and the first wrong field is named.

Kubernetes reads null as absent: a field gets its default, an entry of a map or list its zero value. Decoding expects clean input, because it
is the hot path and nulls are rare; only a manifest that fails there comes here.
"""

import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

_SHOWN: Final = 40
_LEAVES: Final[tuple[tuple[type[inspect.Type], tuple[type, ...], str], ...]] = (
    (inspect.StrType, (str,), "a string"),
    (inspect.IntType, (int,), "an integer"),
    (inspect.FloatType, (int, float), "a number"),
    (inspect.BoolType, (bool,), "true or false"),
    (inspect.DictType, (Mapping,), "an object"),
    (inspect.StructType, (Mapping,), "an object"),
    (inspect.VarTupleType, (list, tuple), "a list"),
)


class Mismatch(Exception):  # noqa: N818  it says that a value does not match, which is no failure of the machinery
    """A field whose value has the wrong JSON type."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message


def mend(value: Any, struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the known fields of a manifest without nulls, or raise `Mismatch` for the first field of the wrong type."""
    mended: dict[str, Any] = _mend(value, _type_info(struct), "")
    return mended


def describe(value: object) -> str:
    """Say what a value is, briefly."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f'the string "{value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"}"'
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return f"an object of {len(value)} fields"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)} items"
    return f"a {type(value).__name__}"


@functools.cache
def _type_info(struct: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(struct)


def _mend(value: Any, expected: inspect.Type, path: str) -> Any:
    chosen = _choose(value, expected)
    if chosen is None:
        raise Mismatch(path, f"must be {_phrase(expected)}, but is {describe(value)}")
    if isinstance(chosen, inspect.StructType):
        return {
            field.encode_name: _mend(value[field.encode_name], field.type, f"{path}.{field.encode_name}".lstrip("."))
            for field in chosen.fields
            if value.get(field.encode_name) is not None
        }
    if isinstance(chosen, inspect.DictType):
        return {_key(key, path): _entry(entry, chosen.value_type, f"{path}[{key}]") for key, entry in value.items()}
    if isinstance(chosen, inspect.VarTupleType):
        return [_entry(entry, chosen.item_type, f"{path}[{index}]") for index, entry in enumerate(value)]
    return value


def _entry(value: Any, expected: inspect.Type, path: str) -> Any:
    return _zero(expected) if value is None else _mend(value, expected, path)


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise Mismatch(f"{path}[{key}]", f"must have a string as its key, but the key is {describe(key)}")
    return key


def _choose(value: Any, expected: inspect.Type) -> inspect.Type | None:
    """Return the alternative that the value's type belongs to, if any."""
    for alternative in _alternatives(expected):
        for form, accepted, _ in _LEAVES:
            if isinstance(alternative, form) and isinstance(value, accepted):
                if isinstance(value, bool) and form is not inspect.BoolType:
                    continue
                return alternative
    return None


def _alternatives(expected: inspect.Type) -> tuple[inspect.Type, ...]:
    return tuple(expected.types) if isinstance(expected, inspect.UnionType) else (expected,)


def _phrase(expected: inspect.Type) -> str:
    forms = {type(alternative) for alternative in _alternatives(expected)}
    if {inspect.StrType, inspect.FloatType} <= forms:
        return "a quantity (a string such as 500m or 4Gi, or a number)"
    return " or ".join(phrase for form, _, phrase in _LEAVES if form in forms)


def _zero(expected: inspect.Type) -> Any:
    """Return what Kubernetes reads a null inside a map or list as."""
    forms = {type(alternative) for alternative in _alternatives(expected)}
    if inspect.IntType in forms or inspect.FloatType in forms:
        return 0
    if inspect.StrType in forms:
        return ""
    if inspect.BoolType in forms:
        return False
    return [] if inspect.VarTupleType in forms else {}
