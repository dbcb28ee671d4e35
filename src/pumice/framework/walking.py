"""Choosing nodes one by one where a placement changes what other nodes answer, without applying each before the next.

Functions about other nodes that can be *followed* keep step themselves: a follower starts from what counts now and is told every row that is
chosen. What nodes answer by their own amounts is looked up ahead, for many nodes at once. The rows are exactly those that choosing, applying and asking
again would give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
import numpy as np

from pumice.framework.foresight import PRECISION, Foresight, rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.evaluation import Evaluation, Floats, Mask
    from pumice.model.nodes import NodeTable, Rows

REFUSED = np.iinfo(np.int64).min


class Refusing(Protocol):
    """A filter that is followed."""

    refused: Mask

    def place(self, row: int) -> Rows | None:
        """Count one more equal task on a row; returns the rows whose verdict may have changed."""


class Rating(Protocol):
    """A score that compares candidates and is followed."""

    def place(self, row: int) -> object:
        """Count one more equal task on a row."""

    def points(self, rows: Rows) -> Floats:
        """Score candidates."""


@runtime_checkable
class Grouped(Rating, Protocol):
    """A rating that gives all rows of a group the same, `values[groups[row]]`; every group has rows."""

    groups: Rows
    values: Floats


class Followers(msgspec.Struct):
    """What keeps step while equal tasks are placed."""

    refusing: list[Refusing]
    rating: list[Rating]


def walk(
    evaluation: Evaluation,
    table: NodeTable,
    followers: Followers,
    count: int,
    *,
    released: bool,
    within: Rows | None = None,
) -> list[int]:
    """Return the rows for up to `count` equal tasks, in order, of some nodes or of all; fewer if no node takes the next one."""
    refusing, rating = followers.refusing, followers.rating
    fixed = evaluation.fixed(released=released).copy()
    if within is not None:
        outside = np.ones(len(fixed), dtype=np.bool_)
        outside[within] = False
        fixed[outside] = False
    allowed = fixed.copy()
    for filter_ in refusing:
        allowed &= ~filter_.refused
    plain = evaluation.plain.copy()
    foresight = Foresight(evaluation, table, allowed, count, released=released)
    choice = _choice(evaluation, plain, allowed, rating)
    chosen: list[int] = []
    while len(chosen) < count:
        row = choice.best()
        if row is None:
            break
        chosen.append(row)
        if len(chosen) == count:
            break
        points = foresight.take(row)
        if points is None:
            fixed[row] = False
        else:
            plain[row] = points
        choice.reconsider(row, fits=points is not None)
        for score in rating:
            score.place(row)
        for filter_ in refusing:
            rows = filter_.place(row)
            if rows is not None:
                choice.refuse(rows, np.logical_or.reduce([f.refused[rows] for f in refusing]) | ~fixed[rows])
    return chosen


def _choice(evaluation: Evaluation, plain: Floats, allowed: Mask, rating: Sequence[Rating]) -> Choice | GroupChoice:
    """Return what chooses among the nodes that are left."""
    only = rating[0] if len(rating) == 1 and not evaluation.settled_raws else None
    if isinstance(only, Grouped):
        return GroupChoice(plain, allowed, only)
    return Choice(evaluation, plain, allowed, rating)


class Choice:
    """The choice among the nodes that are left."""

    __slots__ = ("_allowed", "_candidates", "_keys", "_plain", "_rating", "_settled")

    def __init__(self, evaluation: Evaluation, plain: Floats, allowed: Mask, rating: Sequence[Rating]) -> None:
        self._plain = plain
        self._allowed = allowed
        self._rating = rating
        self._candidates: Rows | None = None
        self._keys: Rows | None = None
        self._settled = evaluation.settled_raws
        if not rating and not self._settled:
            # Nothing depends on who the candidates are: one key per node, brought up to date where something changed.
            self._keys = np.where(allowed, rounded(plain), REFUSED)

    def best(self) -> int | None:
        """Return the row with the highest score, the first among equals; None if no row is left."""
        if self._keys is not None:
            row = int(self._keys.argmax()) if len(self._keys) else 0
            return row if len(self._keys) and self._keys[row] != REFUSED else None
        if self._candidates is None:
            self._candidates = np.flatnonzero(self._allowed)
        rows = self._candidates
        if not len(rows):
            return None
        scores = self._plain[rows]
        for raw, normalise in self._settled:
            scores += normalise(raw[rows])
        for follower in self._rating:
            scores += follower.points(rows)
        return int(rows[int(rounded(scores).argmax())])

    def reconsider(self, row: int, *, fits: bool) -> None:
        """Take over a changed score of a row, and whether it takes more."""
        if bool(self._allowed[row]) != fits:
            self._allowed[row] = fits
            self._candidates = None
        if self._keys is not None:
            self._keys[row] = rounded(self._plain[row : row + 1])[0] if fits else REFUSED

    def refuse(self, rows: Rows, refused: Mask) -> None:
        """Take over changed verdicts of rows."""
        if (self._allowed[rows] == refused).any():
            self._allowed[rows] = ~refused
            self._candidates = None
            if self._keys is not None:
                self._keys[rows] = np.where(refused, REFUSED, rounded(self._plain[rows]))


class GroupChoice:
    """The choice among the nodes that are left where all that compares them gives the nodes of a group the same.

    Of each group only the highest score counts until a group is chosen; then its nodes are looked at one by one.
    """

    __slots__ = ("_bounds", "_places", "_plain", "_rating", "_rows", "_scores", "_sizes", "_sums", "_tops")

    def __init__(self, plain: Floats, allowed: Mask, rating: Grouped) -> None:
        self._plain = plain
        self._rating = rating
        # Rows in the order of groups, where each stands in it, and the scores of those that are left.
        self._rows = np.argsort(rating.groups, kind="stable")
        self._places = np.argsort(self._rows, kind="stable")
        self._sizes: Rows = np.bincount(rating.groups, minlength=len(rating.values))
        ends = np.cumsum(self._sizes)
        begins = ends - self._sizes
        self._bounds: list[tuple[int, int]] = list(zip(begins.tolist(), ends.tolist(), strict=True))
        self._scores = np.where(allowed, plain, -np.inf)[self._rows]
        self._tops = np.maximum.reduceat(self._scores, begins) if len(self._rows) else np.zeros(0)
        self._sums = np.zeros(len(self._tops))

    def best(self) -> int | None:
        """Return the row with the highest score, the first among equals; None if no row is left."""
        if not len(self._tops):
            return None
        values = self._rating.values
        keys = _keys(self._tops, values, self._sums)
        group = int(keys.argmax())
        highest = keys[group]
        if highest == -np.inf:
            return None
        keys[group] = -np.inf
        if keys.max() == highest:
            spread = np.repeat(values, self._sizes)
            return int(self._rows[_keys(self._scores, spread, spread) == highest].min())
        begin, end = self._bounds[group]
        inside = _keys(self._scores[begin:end], values[group])
        return int(self._rows[begin + int((inside == highest).argmax())])

    def reconsider(self, row: int, *, fits: bool) -> None:
        """Take over a changed score of a row, and whether it takes more."""
        self._scores[self._places[row]] = self._plain[row] if fits else -np.inf
        self._look_again(int(self._rating.groups[row]))

    def refuse(self, rows: Rows, refused: Mask) -> None:
        """Take over changed verdicts of rows."""
        self._scores[self._places[rows]] = np.where(refused, -np.inf, self._plain[rows])
        for group in np.unique(self._rating.groups[rows]).tolist():
            self._look_again(group)

    def _look_again(self, group: int) -> None:
        begin, end = self._bounds[group]
        self._tops[group] = self._scores[begin:end].max()


def _keys(scores: Floats, points: Floats, out: Floats | None = None) -> Floats:
    """Return sums in whole thousandths, as floats."""
    sums = np.add(scores, points, out=out)
    sums *= PRECISION
    return np.rint(sums, out=sums)
