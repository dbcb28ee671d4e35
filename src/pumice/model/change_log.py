"""A log of what has changed, for whoever derives something from it and wants to derive only that again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMIT = 1 << 18


class ChangeLog:
    """Numbers of rows, in the order in which they changed; the older half is forgotten when there are too many."""

    __slots__ = ("_forgotten", "_rows")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._forgotten = 0

    @property
    def position(self) -> int:
        """The end of the log; what is read now is up to date with it."""
        return self._forgotten + len(self._rows)

    def append(self, row: int) -> None:
        """Note that a row has changed."""
        self._rows.append(row)
        if len(self._rows) > LIMIT:
            self._forgotten += LIMIT // 2
            del self._rows[: LIMIT // 2]

    def extend(self, rows: Iterable[int]) -> None:
        """Note that many rows have changed."""
        self._rows += rows
        while len(self._rows) > LIMIT:
            self._forgotten += LIMIT // 2
            del self._rows[: LIMIT // 2]

    def forget(self) -> None:
        """Let everybody derive anew what is derived from it."""
        self._forgotten = self.position + 1
        self._rows.clear()

    def since(self, position: int) -> Iterable[int] | None:
        """Return the rows that changed after a position, each once; None if the log does not reach back so far."""
        if position < self._forgotten:
            return None
        return dict.fromkeys(self._rows[position - self._forgotten :])

    def latest(self, position: int) -> Iterable[int] | None:
        """Return the same rows in the order in which they changed last."""
        if position < self._forgotten:
            return None
        return reversed(dict.fromkeys(reversed(self._rows[position - self._forgotten :])))
