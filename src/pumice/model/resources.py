"""Resources as exact integers over a growing vocabulary of names.

cpu is counted in millicores, memory and other byte-like resources in bytes, pods and volume attachments in whole numbers, everything else in
thousandths. An amount that is negative, beyond 2**53 or unreadable is an error of the object that states it, so sums can neither overflow nor
lose precision, and every sum can be undone.

Only names that some node offers have a column. A request keeps its other names aside: nothing offers them, so nothing fits them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from pumice.api import quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

CPU, MEMORY, PODS = 0, 1, 2
BASE_NAMES = ("cpu", "memory", "pods")
LIMIT = 2**53
MAX_NAMES = 64
LONGEST_SHARED = 1000
"""Characters of a resource list that is remembered: what somebody writes once does not stay for good."""

Vector: TypeAlias = npt.NDArray[np.int64]
Matrix: TypeAlias = npt.NDArray[np.int64]
Amounts: TypeAlias = dict[str, int]

_WHOLE_PREFIXES = ("hugepages-", "attachable-volumes-")
_BYTES = frozenset({"memory", "ephemeral-storage"})


class BadValueError(ValueError):
    """A value that disables the object stating it: the field, and what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def is_counted(name: str) -> bool:
    """Tell whether a name of a resource list takes part in scheduling."""
    if name in BASE_NAMES or name == "ephemeral-storage":
        return True
    if name.startswith(_WHOLE_PREFIXES):
        return True
    return "/" in name and not name.startswith(("count/", "requests."))


def factor(name: str) -> int:
    """Return how many stored units one written unit is."""
    if name in _BYTES or name == "pods" or name.startswith(_WHOLE_PREFIXES):
        return 1
    return 1000


def amount(name: str, text: quantity.QuantityText, field: str) -> int:
    """Convert one written quantity to stored units, rounded up."""
    try:
        units = quantity.scaled(text, factor(name))
    except quantity.QuantityError as error:
        raise BadValueError(field, str(error)) from None
    if units < 0:
        raise BadValueError(field, f"{text!s:.40} is negative; quantities of {name} must be 0 or more")
    if units > LIMIT:
        raise BadValueError(
            field, f"{text!s:.40} is beyond the largest amount of {name} that is counted ({shown(name, LIMIT)})"
        )
    return units


def parse(listed: Mapping[str, quantity.QuantityText] | None, field: str) -> Amounts:
    """Convert a resource list, leaving out names that take no part in scheduling."""
    if not listed:
        return {}
    if len(listed) > MAX_NAMES:
        raise BadValueError(field, f"names {len(listed)} resources; at most {MAX_NAMES} are accepted in one object")
    return {name: amount(name, text, f"{field}.{name}") for name, text in listed.items() if is_counted(name)}


def parse_shared(listed: Mapping[str, quantity.QuantityText], field: str) -> Amounts:
    """Convert a resource list that many objects repeat: whoever lists the same gets the same object, which nobody changes; long lists are not remembered."""
    if sum(len(name) + len(str(text)) for name, text in listed.items()) > LONGEST_SHARED:
        return parse(listed, field)
    return _remembered(tuple(listed.items()), field)


@functools.lru_cache(maxsize=4096)
def _remembered(listed: tuple[tuple[str, quantity.QuantityText], ...], field: str) -> Amounts:
    return parse(dict(listed), field)


def shown(name: str, units: int) -> str:
    """Write stored units as a Kubernetes quantity."""
    if name in _BYTES or name.startswith("hugepages-"):
        return quantity.format_bytes(units)
    if factor(name) == 1:
        return quantity.format_whole(units)
    return quantity.format_milli(units)


def add(left: Amounts, right: Mapping[str, int]) -> Amounts:
    """Return the sum of two amounts."""
    total = dict(left)
    for name, units in right.items():
        total[name] = total.get(name, 0) + units
    return total


def highest(left: Amounts, right: Mapping[str, int]) -> Amounts:
    """Return the larger amount of each name."""
    peak = dict(left)
    for name, units in right.items():
        peak[name] = max(peak.get(name, 0), units)
    return peak


class Vocabulary:
    """The resource names that nodes offer, each with its column; it only grows."""

    __slots__ = ("columns", "names")

    def __init__(self) -> None:
        self.names: list[str] = list(BASE_NAMES)
        self.columns: dict[str, int] = {name: column for column, name in enumerate(BASE_NAMES)}

    def __len__(self) -> int:
        return len(self.names)

    def offer(self, names: Iterable[str]) -> bool:
        """Give every name a column and tell whether any was new."""
        before = len(self.names)
        for name in sorted(names):
            if name not in self.columns:
                self.columns[name] = len(self.names)
                self.names.append(name)
        return len(self.names) > before

    def vector(self, amounts: Mapping[str, int]) -> Vector:
        """Lay amounts out over the columns, dropping names that no node offers."""
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, units in amounts.items():
            column = self.columns.get(name)
            if column is not None:
                row[column] = units
        return row

    def matrix(self, listed: Collection[Mapping[str, int]]) -> Matrix:
        """Lay many amounts out likewise, a row for each; what is listed many times, being shared, is laid out once."""
        columns, width = self.columns, len(self.names)
        known: dict[int, list[int]] = {}
        rows = []
        for amounts in listed:
            row = known.get(id(amounts))
            if row is None:
                row = known[id(amounts)] = [0] * width
                for name, units in amounts.items():
                    if (column := columns.get(name)) is not None:
                        row[column] = units
            rows.append(row)
        return np.array(rows, dtype=np.int64).reshape(len(rows), width)

    def amounts(self, vector: Vector) -> Amounts:
        """Name the non-zero entries of a vector."""
        return {name: int(units) for name, units in zip(self.names, vector.tolist(), strict=False) if units}


class Request:
    """What one pod asks for, with its layout over a vocabulary kept until the vocabulary grows."""

    __slots__ = ("amounts", "asked", "best_effort", "key", "listed", "needed", "unoffered", "vector", "width")

    def __init__(self, amounts: Amounts) -> None:
        self.amounts = amounts
        self.key = tuple(sorted(amounts.items()))
        self.best_effort = all(not units for name, units in amounts.items() if name != "pods")
        self.width = 0

    def lay(self, vocabulary: Vocabulary) -> None:
        """Bring the layout up to date with the vocabulary."""
        if self.width == len(vocabulary):
            return
        self.width = len(vocabulary)
        self.vector: Vector = vocabulary.vector(self.amounts)
        self.unoffered: tuple[str, ...] = tuple(
            name for name, units in sorted(self.amounts.items()) if units and name not in vocabulary.columns
        )
        # cpu and memory are always compared, so that a node short of either takes nothing; other names only if asked.
        named = {
            vocabulary.columns[name] for name, units in self.amounts.items() if units and name in vocabulary.columns
        }
        self.asked: Vector = np.array(sorted(named | {CPU, MEMORY}), dtype=np.int64)
        self.needed: Vector = self.vector[self.asked]
        self.listed: list[tuple[int, int]] = list(zip(self.asked.tolist(), self.needed.tolist(), strict=True))
