"""What keeps step while equal tasks are placed one after another: filters and scores about other nodes that start from what counts now and are told every row that is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pumice.framework.vectors import Floats, Mask
    from pumice.model.domains import Domains
    from pumice.model.nodes import Rows


class Refusing(Protocol):
    """A filter that is followed."""

    def refuses(self, rows: Rows) -> Mask:
        """Mark the rows that do not take the next task."""

    def place(self, row: int) -> Rows | None:
        """Count one more equal task on a row; returns the rows whose verdict may have changed."""


@runtime_checkable
class Excluding(Refusing, Protocol):
    """A filter that may do nothing else than close the domain of every row that is chosen."""

    def closes(self) -> Domains | None:
        """Return the domains; None if placements change other verdicts too."""


class Rating(Protocol):
    """A score that compares candidates and is followed."""

    def place(self, row: int) -> object:
        """Count one more equal task on a row."""

    def points(self, rows: Rows, sizes: Rows | None = None) -> Floats:
        """Score candidates; each may stand for several that are alike, so many of them."""


@runtime_checkable
class Grouped(Rating, Protocol):
    """A rating that gives all rows of a group the same, `values[groups[row]]`; every group has rows."""

    groups: Rows
    values: Floats


@runtime_checkable
class Gaining(Grouped, Protocol):
    """A rating by groups that can go on in one of them before it looks at the others again."""

    def rising(self, group: int) -> int:
        """Return how many more tasks in a group raise its points by as much each as those of any other group, or more."""

    def advance(self, group: int, count: int) -> tuple[float, float]:
        """Count equal tasks in a group; returns by how much its points rise, and by how much those of others do at the most. Until it is settled `values` lags behind."""

    def settle(self) -> None:
        """Bring the points of all groups up to date."""


@runtime_checkable
class Alike(Protocol):
    """A follower that can say which rows it treats alike."""

    def alike(self) -> Sequence[npt.NDArray[Any]]:
        """Return columns over all rows: those that are equal in all of them stay alike until one of them is chosen."""


class Followers(msgspec.Struct):
    """What keeps step while equal tasks are placed."""

    refusing: list[Refusing]
    rating: list[Rating]

    def refuses(self, rows: Rows) -> Mask | None:
        """Mark the rows that some filter refuses; None if there is none."""
        refused: Mask | None = None
        for each in self.refusing:
            mask = each.refuses(rows)
            refused = mask if refused is None else refused | mask
        return refused
