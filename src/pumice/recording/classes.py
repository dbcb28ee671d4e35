"""Which classes a state may name, and which of their fields it may fill."""

from __future__ import annotations

import importlib
import inspect
from enum import Enum
from typing import Any, Final

import msgspec

from pumice.recording import known_classes

_OF_CODE: Final[dict[str, type]] = {"w": msgspec.Struct, "e": Enum, "D": dict}
_WITH_CODE_OF_ITS_OWN: Final = ("__post_init__", "__new__", "__setattr__", "__getattr__", "__getattribute__", "__del__")


class StateError(ValueError):
    """A state that cannot be written, or not be read by this version; the text says why."""


class Layout(msgspec.Struct, frozen=True):
    """A class and its fields, in the order of an entry."""

    module: str
    name: str
    fields: tuple[str, ...]


def find_class(module: str, name: str, code: str) -> Any:
    """Return a class that groups of this code may name: one that is listed, and defined in the module that is named."""
    if name not in known_classes.BY_CODE[code].get(module, ()):
        raise StateError(
            f"{module}.{name} is no class that a state may hold: recording/known_classes.py does not list it"
        )
    found = vars(importlib.import_module(module)).get(name)
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, name):
        raise StateError(f"this version defines no class {module}.{name}")
    if not issubclass(found, _OF_CODE.get(code, object)) or runs_code(found):
        raise StateError(f"{module}.{name} cannot be made of its fields alone")
    return found


def runs_code(kind: type) -> str:
    """Name what would run when an object is made or filled; nothing if nothing would."""
    if issubclass(kind, Enum):
        return ""  # none is made: its members are looked up
    mine = [base for base in kind.__mro__ if base.__module__.startswith("pumice.")]
    return next((name for name in _WITH_CODE_OF_ITS_OWN for base in mine if name in vars(base)), "")


def check_fields(kind: type, fields: tuple[str, ...]) -> None:
    """Refuse fields that objects of a class do not have, and such that would call or hide something of the class."""
    if len(set(fields)) != len(fields):
        raise StateError(f"{kind.__module__}.{kind.__qualname__} has a field twice")
    if issubclass(kind, msgspec.Struct):
        if set(fields) != set(kind.__struct_fields__):
            wrong = sorted(set(fields) ^ set(kind.__struct_fields__))
            raise StateError(f"{kind.__module__}.{kind.__qualname__} has other fields: {', '.join(wrong)[:200]}")
        return
    slots = slots_of(kind)
    for field in fields:
        if field not in slots and not (kind.__dictoffset__ and _is_free(kind, field)):
            raise StateError(f"{kind.__module__}.{kind.__qualname__} has no field {field[:100]!r}")


def slots_of(kind: type) -> list[str]:
    """Return the slots of a class."""
    found: dict[str, None] = {}
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        found.update(dict.fromkeys((slots,) if isinstance(slots, str) else slots))
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _is_free(kind: type, field: str) -> bool:
    """Tell whether an object may have a value of this name: it hides no method and reaches no property."""
    known = inspect.getattr_static(kind, field, None)
    return field.isidentifier() and not field.startswith("__") and not hasattr(type(known), "__get__")
