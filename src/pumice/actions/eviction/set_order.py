"""In which order the sets of units on one node are tried: by rank, and among equals in victim order."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.actions.eviction.ranking import Rank
    from pumice.actions.eviction.units import Unit
    from pumice.framework.evaluation import Mask
    from pumice.model.nodes import Rows
    from pumice.model.resources import Vector

# Of so many units every set is looked at; of more, every set of up to three, as long as those are not too many.
FEW = 10
SETS = 4000


class Choice(msgspec.Struct, frozen=True):
    """A unit that may be taken on a node, what it would give back there, and what it costs."""

    unit: Unit
    freed: Vector
    priority: tuple[int, int]
    count: int
    loss: int


def rank(chosen: Sequence[Choice]) -> Rank:
    """Rank a set as `ranking.rank` does its units."""
    if len(chosen) == 1:
        only = chosen[0]
        return only.priority, only.unit.breaks, only.count, only.loss
    return (
        max([choice.priority for choice in chosen]),
        any(choice.unit.breaks for choice in chosen),
        sum([choice.count for choice in chosen]),
        sum([choice.loss for choice in chosen]),
    )


def sets_by_rank(choices: Sequence[Choice], lacking: Vector, asked: Vector) -> Iterator[list[Choice] | None]:
    """Give the sets of units that give back enough, by rank; None stands for whatever comes after the sets that are looked at."""
    if 0 < len(choices) <= FEW and are_equal(choices):
        yield from _sets_of_equals(choices, lacking, asked)
        return
    alone = _single_pods(choices, lacking, asked)
    for level in sorted({choice.priority for choice in choices}):
        # One pod alone ranks below any set of several: as a rule it does, and the others are not even listed.
        yield from ([choice] for choice in alone if choice.priority == level)
        yield from _other_sets(choices, level, lacking, asked)


def are_equal(choices: Sequence[Choice]) -> bool:
    """Tell whether units are single pods of one priority and shape, whose going costs the same: the last one of a job ends it."""
    first = choices[0]
    for choice in choices:
        if choice.freed is not first.freed or choice.priority != first.priority or choice.count > 1:
            return False
        if choice.unit.breaks or choice.loss != first.loss:
            return False
    return True


def _sets_of_equals(choices: Sequence[Choice], lacking: Vector, asked: Vector) -> Iterator[list[Choice]]:
    """Give the sets of pods that rank alike: the smallest first, then in victim order."""
    amounts = choices[0].freed[asked].tolist()
    short = [(amount, least) for amount, least in zip(amounts, lacking.tolist(), strict=True) if least > 0]
    if any(not amount for amount, _ in short):
        return
    fewest = max((-(-least // amount) for amount, least in short), default=1)
    for size in range(fewest, len(choices) + 1):
        yield from map(list, itertools.combinations(choices, size))


def _single_pods(choices: Sequence[Choice], lacking: Vector, asked: Vector) -> list[Choice]:
    """Return the pods one of which is enough, by loss, then in victim order."""
    short = [(column, least) for column, least in zip(asked.tolist(), lacking.tolist(), strict=True) if least > 0]
    single = [choice for choice in choices if choice.count == 1 and not choice.unit.breaks]
    enough = [choice for choice in single if all(choice.freed[column] >= least for column, least in short)]
    return sorted(enough, key=lambda choice: choice.loss)


def _other_sets(
    choices: Sequence[Choice], level: tuple[int, int], lacking: Vector, asked: Vector
) -> Iterator[list[Choice] | None]:
    """Give the other sets of which the highest priority is this one."""
    freed = np.stack([choice.freed for choice in choices])[:, asked]
    breaks = np.array([choice.unit.breaks for choice in choices], dtype=np.bool_)
    low = np.array([choice.priority <= level for choice in choices], dtype=np.bool_)
    top = np.array([choice.priority == level for choice in choices], dtype=np.bool_)
    for breaking in (False, True):
        places = np.flatnonzero(low if breaking else low & ~breaks)
        must = [top[places]] + ([breaks[places]] if breaking else [])
        if not all(mask.any() for mask in must) or (freed[places].sum(axis=0) < lacking).any():
            continue
        subsets, complete = _subsets(len(places))
        fit = (subsets.astype(np.int64) @ freed[places] >= lacking).all(axis=1)
        for mask in must:
            fit &= subsets[:, mask].any(axis=1)
        listed = _sorted([choices[place] for place in places.tolist()], subsets[fit])
        yield from (chosen for chosen in listed if breaking or not _is_single_pod(chosen))
        if not complete:
            yield None


def _is_single_pod(chosen: Sequence[Choice]) -> bool:
    return len(chosen) == 1 and chosen[0].count == 1


def _sorted(choices: Sequence[Choice], subsets: Mask) -> Iterator[list[Choice]]:
    """Give sets by number, then by loss, then in victim order."""
    counts: Rows = subsets.astype(np.int64) @ np.array([choice.count for choice in choices], dtype=np.int64)
    for count in np.unique(counts).tolist():
        members = [np.flatnonzero(subset).tolist() for subset in subsets[counts == count]]
        for places in sorted(members, key=lambda places: (sum(choices[place].loss for place in places), places)):
            chosen = [choices[place] for place in places]
            if _are_apart(chosen):
                yield chosen


def _are_apart(chosen: Sequence[Choice]) -> bool:
    """Tell whether no pod goes twice: alone and with its job."""
    whole = {id(choice.unit.tasks[0].job) for choice in chosen if choice.unit.whole}
    return not whole or not any(not c.unit.whole and id(c.unit.tasks[0].job) in whole for c in chosen)


@functools.lru_cache(maxsize=128)
def _subsets(size: int) -> tuple[Mask, bool]:
    """Return the sets of so many things, the empty one left out, one row each, and whether these are all of them."""
    if size <= FEW:
        numbers = np.arange(1, 2**size)
        return (numbers[:, None] >> np.arange(size) & 1).astype(np.bool_), True
    rows: list[Mask] = []
    left = SETS
    for length in (1, 2, 3):
        combinations = list(itertools.islice(itertools.combinations(range(size), length), left + 1))
        if len(combinations) > left:
            break
        left -= len(combinations)
        marks = np.zeros((len(combinations), size), dtype=np.bool_)
        np.put_along_axis(marks, np.array(combinations, dtype=np.int64), values=True, axis=1)
        rows.append(marks)
    return np.concatenate(rows), False
