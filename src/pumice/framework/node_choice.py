"""The choice among the nodes that are left while equal tasks are placed: every node is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.foresight import rounded

if TYPE_CHECKING:
    from pumice.framework.evaluation import Evaluation, Floats, Mask
    from pumice.framework.followers import Followers
    from pumice.model.nodes import Rows

REFUSED = np.iinfo(np.int64).min


class Choosing:
    """What every choice brings up to date: scores by the node's own amounts, which nodes have room, and the followers."""

    __slots__ = ("_fixed", "_followers", "_plain")

    def __init__(self, plain: Floats, fixed: Mask, followers: Followers) -> None:
        self._plain = plain
        self._fixed = fixed
        self._followers = followers

    def best(self) -> int | None:
        """Return the row with the highest score, the first among equals; None if no row is left."""
        raise NotImplementedError  # pragma: no cover  each choice has its own

    def reconsider(self, row: int, *, fits: bool) -> None:
        """Take over a changed score of a row, and whether it takes more."""
        raise NotImplementedError  # pragma: no cover  as above

    def refuse(self, rows: Rows, refused: Mask) -> None:
        """Take over changed verdicts of rows."""
        raise NotImplementedError  # pragma: no cover  as above

    def place(self, row: int, points: float | None) -> None:
        """Put a task on a row, which scores so much from then on; None if it takes no more."""
        if points is None:
            self._fixed[row] = False
        else:
            self._plain[row] = points
        self.reconsider(row, fits=points is not None)
        for score in self._followers.rating:
            score.place(row)
        for filter_ in self._followers.refusing:
            rows = filter_.place(row)
            if rows is not None:
                refused = ~self._fixed[rows]
                for other in self._followers.refusing:
                    refused |= other.refuses(rows)
                self.refuse(rows, refused)


class Choice(Choosing):
    """The choice among all nodes."""

    __slots__ = ("_allowed", "_candidates", "_keys", "_settled")

    def __init__(self, evaluation: Evaluation, plain: Floats, fixed: Mask, allowed: Mask, followers: Followers) -> None:
        super().__init__(plain, fixed, followers)
        self._allowed = allowed
        self._candidates: Rows | None = None
        self._keys: Rows | None = None
        self._settled = evaluation.settled_raws
        if not followers.rating and not self._settled:
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
        for follower in self._followers.rating:
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
