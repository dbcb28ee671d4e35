"""How good a schedule is: pure functions, each the definition of one figure. Times are of any one unit, amounts of any one resource."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

BOUND = 10_000_000
"""Runs shorter than ten seconds (in microseconds) count as that long in a slowdown."""


class Interval(NamedTuple):
    """An amount of something from one time to another."""

    amount: int
    start: int
    end: int


class ForecastError(NamedTuple):
    """How far starts were from the first forecast of each: seconds late on average, regardless of the sign, the 95th percentile, and two shares."""

    mean: float | None
    absolute: float | None
    p95: int | None
    late: float | None
    without: float | None


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None of nothing."""
    return sum(values) / len(values) if values else None


def nearest_rank(values: Iterable[int | float], percent: int) -> int | float | None:
    """Return the smallest value that so many percent of all do not exceed."""
    listed = sorted(values)
    return listed[max(0, -(-percent * len(listed) // 100) - 1)] if listed else None


def slowdown(completion: int, run: int, bound: int = BOUND) -> float:
    """Return how many times its run time a job took from submit to end, at least one, runs below a bound taken as that long."""
    return max(1.0, completion / max(run, bound))


def total(intervals: Iterable[Interval]) -> int:
    """Return the sum of amount times duration."""
    return sum(each.amount * (each.end - each.start) for each in intervals)


def utilisation(used: int, capacity: int, makespan: int) -> float | None:
    """Return which part of what was offered over a time was used."""
    offered = capacity * makespan
    return used / offered if offered else None


def lost(amount: int, start: int, eviction: int, checkpoint: int) -> int:
    """Return the work that is lost with an evicted pod: since its start, or its last checkpoint."""
    ran = eviction - start
    return amount * (ran % checkpoint if checkpoint else ran)


def steps(intervals: Iterable[Interval]) -> list[tuple[int, int]]:
    """Return how much there is from each time on at which that changes."""
    changes: dict[int, int] = {}
    for amount, start, end in intervals:
        if end > start:
            changes[start] = changes.get(start, 0) + amount
            changes[end] = changes.get(end, 0) - amount
    level, found = 0, []
    for moment in sorted(changes):
        if changes[moment]:
            level += changes[moment]
            found.append((moment, level))
    return found


def capped(levels: Sequence[tuple[int, int]], most: int) -> int:
    """Return the integral of a level, as far as it does not exceed an amount."""
    return sum(min(level, most) * (after - moment) for (moment, level), (after, _) in itertools.pairwise(levels))


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index of fairness: 1 where all shares are equal, 1/n where one has everything."""
    squares = sum(x * x for x in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None


def forecast_error(pairs: Sequence[tuple[int, int | None]]) -> ForecastError:
    """Judge first forecasts, given as starts with what was expected of them; None where nothing was."""
    errors = [start - expected for start, expected in pairs if expected is not None]
    p95 = nearest_rank(errors, 95)
    return ForecastError(
        mean=mean(errors),
        absolute=mean([abs(error) for error in errors]),
        p95=None if p95 is None else int(p95),
        late=mean([float(error > 0) for error in errors]),
        without=1 - len(errors) / len(pairs) if pairs else None,
    )


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of a sample; 0 of a single value."""
    if len(values) < 2:
        return 0.0
    middle = sum(values) / len(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1))


def deserved(weights: Mapping[str, int], stated: Mapping[str, int], capacity: int) -> dict[str, int]:
    """Return what each queue deserves: what it states, else its weight's part of the capacity."""
    whole = sum(weights.values())
    return {
        name: stated[name] if name in stated else (capacity * weight // whole if whole else 0)
        for name, weight in weights.items()
    }
