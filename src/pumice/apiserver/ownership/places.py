"""Where in a list the item is that a key or a value of a field set names; each list is looked through once, however many items are asked for."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_DEFAULTED: Final = "protocol"  # an item that does not state it has whichever is asked for
_MOST_ALIKE: Final = 1_000

Index = dict[Any, list[int]]


class Places:
    """Remembers lists as long as it lives; nobody may change them meanwhile."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[str, ...] | None], tuple[list[Any], Index]] = {}

    def find(self, items: Any, element: str) -> int | None:
        """Find the item that a key (`k:`) or a value (`v:`) names."""
        if not isinstance(items, list):
            return None
        wanted = msgspec.json.decode(element[2:])
        if element[0] == "v" or not isinstance(wanted, dict):
            return next(iter(self._index(items, None).get(_hashable(wanted), ())), None)
        names = tuple(name for name in wanted if name != _DEFAULTED)
        alike = self._index(items, names).get(tuple(_hashable(wanted[name]) for name in names), ())
        if _DEFAULTED not in wanted:
            return next(iter(alike), None)
        stated = wanted[_DEFAULTED]
        return next((place for place in alike if items[place].get(_DEFAULTED, stated) == stated), None)

    def with_fields(self, items: list[Any], wanted: dict[str, Any]) -> int | None:
        """Find the first item that has these values in its fields."""
        names = tuple(wanted)
        found = self._index(items, names).get(tuple(_hashable(wanted[name]) for name in names), ())
        return next(iter(found), None)

    def _index(self, items: list[Any], names: tuple[str, ...] | None) -> Index:
        """Give places by the values of some fields, or by the items themselves."""
        known = self._known.get((id(items), names))
        if known is None:
            index: Index = {}
            for place, item in enumerate(items):
                if names is not None and not isinstance(item, dict):
                    continue
                key = _hashable(item) if names is None else tuple(_hashable(item.get(name)) for name in names)
                alike = index.setdefault(key, [])
                if len(alike) < _MOST_ALIKE:
                    alike.append(place)
            known = self._known[id(items), names] = (items, index)
        return known[1]


def _hashable(value: Any) -> Any:
    """Give a value, or what stands for it if it cannot be a key."""
    return value if not isinstance(value, dict | list) else msgspec.json.encode(value, order="deterministic")
