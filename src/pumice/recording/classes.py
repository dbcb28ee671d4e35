"""Which classes a state may name."""

from __future__ import annotations

import importlib
from typing import Any, Final

import msgspec

_PACKAGES: Final = (
    "pumice.api.",
    "pumice.model.",
    "pumice.cache.",
    "pumice.framework.",
    "pumice.plugins.",
    "pumice.actions.",
)


class StateError(ValueError):
    """A state that cannot be written, or not be read by this version; the text says why."""


class Layout(msgspec.Struct, frozen=True):
    """A class and its fields, in the order of an entry."""

    module: str
    name: str
    fields: tuple[str, ...]


def find_class(module: str, name: str) -> Any:
    """Return a class of the project by name; no other may be made from a recording."""
    if not module.startswith(_PACKAGES) or "<" in name:
        raise StateError(f"{module}.{name} is no class that a state may hold")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise StateError(f"this version has no class {module}.{name}") from None
    if not isinstance(found, type):
        raise StateError(f"{module}.{name} is no class")
    return found
