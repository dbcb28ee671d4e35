"""How a value of an object is compared with one that a scenario states.

Of a map only the named keys are compared, a list whole and in order. Numbers compare by value, and so do quantities where a field that holds such is
above them and both sides can be read as one; all else compares as text. What is absent equals null, an empty list or map, and 0 where quantities stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pumice.api import quantity
from pumice.scenario.expectations import paths

_HOLD_QUANTITIES: Final = frozenset(
    {
        "allocatable",
        "allocated",
        "allocatedResources",
        "capability",
        "capacity",
        "deserved",
        "guarantee",
        "hard",
        "limits",
        "minResources",
        "overhead",
        "requests",
        "reservation",
        "resource",
        "resources",
        "used",
    }
)

Miss = tuple[str, str]


def misses(path: str, wanted: Any, found: Any, *, amount: bool = False) -> list[Miss]:
    """Give (expected, found), each with its path, for everything that differs; `amount` says that quantities stand here."""
    if isinstance(wanted, Mapping) and wanted and (found is None or isinstance(found, Mapping)):
        return _map_misses(path, wanted, found or {}, amount=amount)
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [miss for place, pair in pairs for miss in misses(f"{path}[{place}]", *pair, amount=amount)]
    return [] if _equal(wanted, found, amount=amount) else [(f"{path}: {shown(wanted)}", f"{path}: {shown(found)}")]


def holds_quantities(parts: tuple[paths.Part, ...]) -> bool:
    """Tell whether a field on a path is one that holds quantities."""
    return any(isinstance(part, paths.Word | paths.Key) and part.text in _HOLD_QUANTITIES for part in parts)


def shown(value: Any) -> str:
    """Write a value for people."""
    return "null" if value is None else paths.text(value)


def _map_misses(path: str, wanted: Mapping[str, Any], found: Mapping[str, Any], *, amount: bool) -> list[Miss]:
    return [
        miss
        for key, each in wanted.items()
        for miss in misses(_joined(path, key), each, found.get(key), amount=amount or key in _HOLD_QUANTITIES)
    ]


def _joined(path: str, key: str) -> str:
    return f'{path}["{key}"]' if "." in key else f"{path}.{key}"


def _equal(wanted: Any, found: Any, *, amount: bool) -> bool:
    if isinstance(wanted, dict | list) or isinstance(found, dict | list):
        return not wanted and wanted is not None and (found is None or (isinstance(found, dict) and wanted == {}))
    if wanted is None or found is None:
        present = found if wanted is None else wanted
        return present is None or (amount and wanted is not None and _amount(present) == 0)
    if amount and (asked := _amount(wanted)) is not None and (held := _amount(found)) is not None:
        return bool(asked == held)
    if _is_number(wanted) and _is_number(found):
        return bool(wanted == found)
    return _word(wanted) == _word(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _amount(value: Any) -> Any:
    """Read a quantity; None if it is none."""
    if isinstance(value, bool):
        return None
    try:
        return quantity.parse(value)
    except (quantity.QuantityError, TypeError):
        return None


def _word(value: Any) -> str:
    """Write a scalar as text; YAML makes a boolean of the word True, which conditions have as their status."""
    written = paths.text(value)
    return written.lower() if written in ("True", "False") else written
