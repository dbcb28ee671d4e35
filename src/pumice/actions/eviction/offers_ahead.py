"""Offers for a run of equal members: as long as one node surely comes first again, others are not looked at for each member.

That can be told ahead where one pod makes room for one member, the pods are alike, and what happens on one node changes nothing on any other. `bench.eviction.thousand_victims` takes twice as long
without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import foresight
from pumice.model.nodes import Nodes

if TYPE_CHECKING:
    from pumice.actions.eviction.candidate_columns import Item
    from pumice.actions.eviction.offers import KindBounds
    from pumice.framework.evaluation import Evaluation, Mask
    from pumice.model.nodes import Rows

# For fewer it is not worth looking ahead.
FEWEST = 2


def times(kind: KindBounds, evaluation: Evaluation, left: Mask, scores: Rows, place: int) -> int:
    """Return how many equal members surely go to the node that comes first of those that are left, one after the other."""
    bounds, columns = kind.bounds, kind.columns
    alike = _alike(kind, place)
    if len(alike) < FEWEST:
        return 0
    row, request = int(columns.rows[place]), kind.request
    more = request.vector - alike[0].freed
    lacking = request.vector - columns.table.future_idle_at(row)
    steps = np.arange(len(alike))[:, None]
    short = (lacking + steps * more)[:, request.asked]
    # With what one pod gives back there is room for one member, and for none without.
    enough: Mask = np.logical_and.reduce(short <= alike[0].freed[request.asked], axis=1)
    fits: Mask = enough & np.logical_or.reduce(short > 0, axis=1)
    if (more[request.asked] < 0).any():
        return 0
    others = left.copy()
    others[place] = False
    other = bounds.lowest(others, scores)
    if other is not None:
        best = (bounds.rank(other), -int(scores[other]), int(columns.rows[other]))
        ahead = _scores_ahead(kind, evaluation, row, len(alike))
        rank = bounds.rank(place)
        fits &= np.array([(rank, -score, row) < best for score in ahead.tolist()], dtype=np.bool_)
    return int(fits.argmin()) if not fits.all() else len(alike)


def _alike(kind: KindBounds, place: int) -> list[Item]:
    """Return the pods of a node that are as cheap as its bound, each of them enough, if they are alike."""
    bounds, columns = kind.bounds, kind.columns
    if bounds.breaks[place] or bounds.count[place] != 1 or not bounds.settled[place]:
        return []
    start, end = int(columns.starts[place]), int(columns.ends[place])
    listed = [columns.items[at] for at in range(start, end) if kind.usable[at]]
    rank = bounds.rank(place)
    code = int(bounds.priority[place])
    found = [i for i in listed if i is not None and (i.priority, i.breaks, i.count, i.loss) == (code, *rank[1:])]
    return found if found and all(item.freed is found[0].freed for item in found) else []


def _scores_ahead(kind: KindBounds, evaluation: Evaluation, row: int, count: int) -> Rows:
    """Return the scores of a node before each of some members that wait there for pods that go."""
    table = kind.columns.table
    rows = np.full(count, row, dtype=np.int64)
    waiting = table.pipelined[rows] + np.arange(count)[:, None] * kind.request.vector
    nodes = Nodes(table, rows, table.used[rows], table.non_zero[rows], waiting, released=False)
    return foresight.rounded(evaluation.plain_scores(nodes))
