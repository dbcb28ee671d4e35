"""The choice among the nodes that are left where all that compares them gives the nodes of a group the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.foresight import PRECISION
from pumice.framework.node_choice import Choosing

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.followers import Followers, Grouped
    from pumice.model.nodes import Rows


class GroupChoice(Choosing):
    """The choice among groups of nodes.

    Of each group only the highest score counts until a group is chosen; then its nodes are looked at one by one.
    """

    __slots__ = ("_bounds", "_places", "_rating", "_rows", "_scores", "_sizes", "_sums", "_tops")

    def __init__(self, plain: Floats, fixed: Mask, allowed: Mask, followers: Followers, rating: Grouped) -> None:
        super().__init__(plain, fixed, followers)
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
