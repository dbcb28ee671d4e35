"""Trials: something is tried out in a statement, and taken back with everything that was said meanwhile unless it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

    from pumice.framework.findings import Journal


class Undoable(Protocol):
    """What a trial needs of the statement (`statement.Statement`) that it is made in."""

    @property
    def journal(self) -> Journal:
        """What keeps the words of this cycle that can be taken back."""

    def checkpoint(self) -> int:
        """Return a mark to roll back to."""

    def rollback(self, mark: int) -> None:
        """Undo everything that was logged after a mark."""


class Trial:
    """What is done and said until it is kept; whatever is not kept is taken back when the trial ends, also by an exception."""

    __slots__ = ("_kept", "_mark", "_statement", "_words")

    def __init__(self, statement: Undoable) -> None:
        self._statement = statement
        self._kept = False
        self._mark = self._words = 0

    def __enter__(self) -> Self:
        self._mark = self._statement.checkpoint()
        self._words = self._statement.journal.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        journal = self._statement.journal
        try:
            if not self._kept or error is not None:
                self.take_back()
        finally:
            journal.end()

    def keep(self) -> None:
        """Let everything stay."""
        self._kept = True

    def take_back(self) -> None:
        """Undo what was done and said so far; the trial goes on."""
        self._statement.rollback(self._mark)
        self._statement.journal.back_to(self._words)
