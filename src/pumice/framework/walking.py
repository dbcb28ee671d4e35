"""Choosing nodes one by one where a placement changes what other nodes answer, without applying each before the next.

Functions about other nodes that can be *followed* keep step themselves: a follower starts from what counts now and is told every row that is
chosen. What nodes answer by their own amounts is looked up ahead, for many nodes at once. The rows are exactly those that choosing, applying and asking
again would give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from pumice.framework.foresight import Foresight, rounded

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
    step = Step(evaluation, plain, allowed, rating)
    chosen: list[int] = []
    while len(chosen) < count:
        row = step.best()
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
        step.reconsider(row, fits=points is not None)
        for score in rating:
            score.place(row)
        for filter_ in refusing:
            rows = filter_.place(row)
            if rows is not None:
                step.refuse(rows, np.logical_or.reduce([f.refused[rows] for f in refusing]) | ~fixed[rows])
    return chosen


class Step:
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
