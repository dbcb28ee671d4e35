"""What a column is, and those that every kind has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.apiserver.tables import ages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Column(NamedTuple):
    """A column: its cell is a function of an object and of the time; one of priority 1 is shown with `-o wide`."""

    name: str
    cell: Callable[[Mapping[str, Any], int], Any]
    type: str = "string"
    format: str = ""
    priority: int = 0
    text: str = ""


def wide(name: str, cell: Callable[[Mapping[str, Any], int], Any]) -> Column:
    """Give a column that is shown with `-o wide`."""
    return Column(name, cell, priority=1)


def number(name: str, cell: Callable[[Mapping[str, Any], int], Any]) -> Column:
    """Give a column of whole numbers."""
    return Column(name, cell, "integer")


def age(item: Mapping[str, Any], now: int) -> str:
    """Say how old an object is."""
    return ages.since(item["metadata"].get("creationTimestamp"), now)


NAME: Final = Column("Name", lambda item, _: item["metadata"]["name"], "string", "name", text="The name of the object")
AGE: Final = Column("Age", age, text="How long ago the object was created")
CREATED: Final = Column(
    "Created At", lambda item, _: item["metadata"].get("creationTimestamp"), "date", text="When the object was created"
)
