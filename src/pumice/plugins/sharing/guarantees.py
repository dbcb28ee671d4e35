"""How much of what queues are guaranteed counts: no more than their ceilings, than the cluster, and than there is for all siblings together.

Queues are places of a tree, numbered so that parents come before their children; place 0 is the root. Flat queues are children of the root. Matrices
have one row per place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.resources import Matrix, Vector

    Marks = npt.NDArray[np.bool_]

ROOT = 0


class Counted(msgspec.Struct, frozen=True):
    """What is guaranteed to each place in effect, what was before it was scaled down, and where that is less than was stated.

    `absent` is larger than the cluster and was never guaranteed, `scaled` is too much together.
    """

    amounts: Matrix
    written: Matrix
    absent: Marks
    scaled: Marks


def counted(parents: Sequence[int], stated: Matrix, ceilings: Matrix, available: Vector) -> Counted:
    """Work out which guarantees count; `available` is what the nodes offer less what foreign pods hold."""
    amounts = np.minimum(stated, ceilings)
    amounts[ROOT] = 0
    absent = amounts > available
    amounts[absent] = 0
    scaled = np.zeros(amounts.shape, dtype=np.bool_)
    if not amounts.any():
        return Counted(amounts, amounts, absent, scaled)
    below = children(parents)
    for place in range(len(parents) - 1, -1, -1):
        if len(below[place]):
            # A parent is guaranteed at least what its children are, as far as its own ceiling lets it hold that.
            together = np.maximum(amounts[place], amounts[below[place]].sum(axis=0))
            amounts[place] = np.minimum(together, ceilings[place])
    written = amounts.copy()
    room = np.zeros(amounts.shape, dtype=np.int64)
    room[ROOT] = np.minimum(ceilings[ROOT], available)
    for place, members in enumerate(below):
        if len(members):
            _share_out(amounts, scaled, members, room[place])
            others = amounts[members].sum(axis=0) - amounts[members]
            room[members] = np.minimum(ceilings[members], room[place] - others)
    return Counted(amounts, written, absent, scaled)


def _share_out(amounts: Matrix, scaled: Marks, members: npt.NDArray[np.int64], room: Vector) -> None:
    """Scale the guarantees of siblings down, in proportion, where they are more than their parent has room for."""
    together = amounts[members].sum(axis=0)
    for column in np.flatnonzero(together > room).tolist():
        whole, there = int(together[column]), max(int(room[column]), 0)
        # Products of two amounts need Python's integers.
        parts = [units * there // whole for units in amounts[members, column].tolist()]
        scaled[members, column] = amounts[members, column] > 0
        amounts[members, column] = parts


def children(parents: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """List the children of each place."""
    lists: list[list[int]] = [[] for _ in parents]
    for place, parent in enumerate(parents):
        if place != ROOT:
            lists[parent].append(place)
    return [np.array(members, dtype=np.int64) for members in lists]
