"""How much of the cluster each queue deserves: weights poured out like water into vessels of limited height, in exact integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.model.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.resources import Matrix, Vector

# Two different fractions with denominators (weights) below 2**16 are more than 2**-32 apart, so their whole parts after this shift order them exactly.
_SHIFT = 32


class Shares(msgspec.Struct, frozen=True):
    """What each queue deserves, one row per queue, rounded down to whole units; and exactly, as numerator and denominator by column.

    Orders are by the exact amounts: rounded ones would tell queues apart that hold the same part of what they deserve.
    """

    amounts: Matrix
    exact: list[dict[int, tuple[int, int]]]


def deserved(total: Vector, weights: Sequence[int], wanted: Matrix, guarantee: Matrix) -> Shares:
    """Share the total out by weight, nobody getting more than is wanted nor less than is guaranteed.

    For each resource there is one level at which the sum of level x weight, cut off at what is wanted and raised to the guarantee, is the total; if everybody can
    be satisfied, everybody is.
    """
    high = np.maximum(wanted, guarantee)
    amounts = high.copy()
    exact = unrounded(high)
    for column in np.flatnonzero(high.sum(axis=0) > total).tolist():
        low, top = guarantee[:, column].tolist(), high[:, column].tolist()
        numerator, denominator = level(int(total[column]), weights, low, top)
        for row, (weight, least, most) in enumerate(zip(weights, low, top, strict=True)):
            if weight * numerator < most * denominator:
                raised = weight * numerator > least * denominator
                part = (weight * numerator, denominator) if raised else (least, 1)
                exact[row][column] = part
                amounts[row, column] = part[0] // part[1]
    return Shares(amounts, exact)


def unrounded(amounts: Matrix) -> list[dict[int, tuple[int, int]]]:
    """Give whole amounts as fractions, as `Shares` holds them."""
    return [{column: (units, 1) for column, units in enumerate(line)} for line in amounts.tolist()]


def level(total: int, weights: Sequence[int], low: Sequence[int], high: Sequence[int]) -> tuple[int, int]:
    """Return the level, as a fraction, at which vessels filled from `low` up to `high` hold the total, which must be less than they can hold.

    Between the points where some vessel starts or stops to rise the sum is a straight line: `fixed` + `slope` x level.
    """
    rising = [(w, a, b) for w, a, b in zip(weights, low, high, strict=True) if b > a]
    points = [((a << _SHIFT) // w, w, a, w) for w, a, b in rising]
    points += [((b << _SHIFT) // w, w, b, -w) for w, a, b in rising]
    points.sort()
    fixed, slope = sum(low), 0
    if fixed >= total:
        return 0, 1
    for _, weight, amount, change in points:
        if slope and fixed * weight + slope * amount >= total * weight:
            break
        slope += change
        fixed -= amount if change > 0 else -amount
    return total - fixed, slope


def surplus(total: Vector, weights: Sequence[int], request: Matrix) -> Shares:
    """Share the total out as kube-batch did: a queue is satisfied only if it asks for less than its part of every resource.

    Whoever is not satisfied keeps a surplus it does not ask for. Pods are not shared. Every queue that is not yet satisfied has the same amount per weight:
    what the satisfied ones leave, by the weights of the others.
    """
    counted = np.arange(len(total)) != PODS
    shared = np.zeros(request.shape, dtype=np.int64)
    open_rows = list(range(len(weights)))
    asked = request[:, counted].astype(object)
    left = total[counted].astype(object)
    while open_rows:
        whole = sum(weights[row] for row in open_rows)
        met = [row for row in open_rows if _is_less(asked[row] * whole, left * weights[row])]
        if not met:
            for row in open_rows:
                shared[row, counted] = left * weights[row] // whole
            break
        for row in met:
            left = left - asked[row]
            shared[row, counted] = asked[row]
        satisfied = frozenset(met)
        open_rows = [row for row in open_rows if row not in satisfied]
    return Shares(shared, unrounded(shared))


def _is_less(asked: Vector, part: Vector) -> bool:
    """Tell whether less is asked for than there is of every resource that is there or asked for."""
    return bool(((asked < part) | ((asked == 0) & (part == 0))).all())
