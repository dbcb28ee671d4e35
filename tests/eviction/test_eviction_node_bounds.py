"""What a node costs at the least is never more than any set of units there costs, and what is said to be settled is what the cheapest set costs."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.actions.eviction import node_bounds, unit_columns

ASKED = np.array([0, 2])  # the resources that a member asks for, of three
DIGIT = 1 << unit_columns.DIGIT
PRIORITIES = [(-5, 0), (1, 0), (1, 7), (2, -3)]
UNITS = st.tuples(
    st.sampled_from(PRIORITIES),
    st.sampled_from([0, 0, 0, 2, 3]),  # pods of a gang that breaks, or 0 for a unit that breaks none
    st.sampled_from([1, 1, 1, 2]),  # pods of a unit that breaks none
    st.sampled_from([1, 2, 3, DIGIT - 1, DIGIT, DIGIT + 2]),
    st.tuples(*3 * [st.integers(0, 3)]),
    st.booleans(),
)
NODES = st.lists(st.tuples(st.lists(UNITS, max_size=5), st.tuples(*2 * [st.integers(-2, 6)])), min_size=1, max_size=4)

ALIKE = st.builds(
    lambda loss, freed: ((1, 0), 0, 1, loss, (freed, 0, freed), True), st.integers(1, 2), st.integers(1, 3)
)
CLOSE = st.lists(st.tuples(st.lists(ALIKE, min_size=1, max_size=3), st.just((2, 2))), min_size=2, max_size=4)


def columns_of(nodes):
    """Lay units out; whether each may be used is the last that is said of it."""
    columns = unit_columns.UnitColumns()
    columns.clear(len(nodes), 3, 3 * unit_columns.DIGIT)
    vectors, usable = {}, {}
    for row, (listed, _) in enumerate(nodes):
        items = []
        for rank, gang, count, loss, freed, ok in sorted(listed):
            vector = vectors.setdefault(freed, np.array(freed))
            task = SimpleNamespace(uid=f"{row}-{len(items)}")
            code = unit_columns.code(*rank)
            items.append(unit_columns.Item(code, gang > 0, gang or count, loss, vector, (task,), 0, 0, 0))
            usable[task.uid] = ok
        columns.write({row: items})
    flags = [item is not None and usable[item.tasks[0].uid] for item in columns.items.tolist()]
    return columns, np.array(flags, dtype=np.bool_)


def those_of(columns, usable, place):
    """Give the units of a node that may be used."""
    return [columns.items[at] for at in range(columns.starts[place], columns.ends[place]) if usable[at]]


def cheapest(items, lacking):
    """Give what the cheapest set of units costs that gives back what a node lacks; None if there is none."""
    ranks = [
        (
            max(unit_columns.decoded(item.priority) for item in some),
            any(item.breaks for item in some),
            sum(item.count for item in some),
            sum(item.loss for item in some),
        )
        for size in range(1, len(items) + 1)
        for some in itertools.combinations(items, size)
        if all(sum(item.freed[column] for item in some) >= least for column, least in zip(ASKED, lacking, strict=True))
    ]
    return min(ranks, default=None)


def cost(bounds, place):
    return bounds.rank(place) if bounds.possible[place] else None


def assessed(columns, usable, nodes, places):
    bounds = node_bounds.Bounds(columns, ASKED)
    lacking = np.array([short for _, short in nodes])
    bounds.assess(np.array(places), lacking[places], usable)
    return bounds, lacking


def is_below(bound, best):
    """Tell whether a bound holds: the priority and whether a gang breaks are exact, the rest is not above the cost."""
    return bound is not None and bound[:2] == best[:2] and bound <= best


TWO_ARE_NEEDED = [(2 * [((1, 0), 0, 1, 1, (2, 0, 2), True)], (4, 4))]


def unit(loss, freed, *, gang=0, count=1):
    """A unit of the lowest priority that gives back so much of each resource that is asked for."""
    return (1, 0), gang, count, loss, (freed[0], 0, freed[1]), True


HALVES = [(2, 2), (2, 2), (3, 1), (1, 3)]  # what is enough in twos: the first two, and the other two
ONE_IS_LACKING = [([unit(1, (0, 2)), unit(1, (0, 2)), unit(5, (1, 2))], (1, 4))]
NARROW = [  # nodes on which something else is nearly as cheap, or nearly enough
    ([unit(1, (1, 1), gang=2), unit(5, (3, 3), gang=2), unit(1, (1, 1))], (3, 3)),
    ([unit(5, (3, 3), gang=2), unit(9, (3, 3), gang=3)], (3, 3)),
    ([unit(10, (4, 4), count=2), unit(1, (2, 2)), unit(1, (2, 2))], (4, 4)),
    ([unit(1, (4, 4), count=2), unit(5, (2, 2)), unit(5, (2, 2))], (4, 4)),
    (2 * [unit(0, (2, 2))], (4, 4)),
    *(
        ([unit(loss, freed) for loss, freed in zip(losses, HALVES, strict=True)], (4, 4))
        for losses in (
            (DIGIT, 1, DIGIT - 1, DIGIT - 1),
            (DIGIT**2, 1, DIGIT**2 - DIGIT, DIGIT**2 - DIGIT),
            (3, 4, 1, 2),
        )
    ),
]


@pytest.mark.parametrize("alone", [True, False])
@settings(max_examples=drawn(400, 40), deadline=None)
@example(nodes=TWO_ARE_NEEDED)
@example(nodes=NARROW)
@given(nodes=NODES)
def test_a_bound_is_never_above_the_cheapest_set_and_is_what_it_costs_where_it_is_settled(alone, nodes):
    columns, usable = columns_of(nodes)
    every = list(range(len(nodes)))
    for places in [[row] for row in every] if alone else [every * 2]:
        bounds, lacking = assessed(columns, usable, nodes, places)
        for place in dict.fromkeys(places):
            items = those_of(columns, usable, place)
            best = cheapest(items, lacking[place])
            assert (cost(bounds, place) is None) == (best is None)
            assert best is None or is_below(cost(bounds, place), best)
            assert best is None or not bounds.settled[place] or cost(bounds, place) == best


@pytest.mark.parametrize(("threes", "twos"), [(16, 64), (2, 64), (2, 3)])
@settings(max_examples=drawn(400, 40), deadline=None)
@example(nodes=NARROW)
@example(nodes=ONE_IS_LACKING)
@given(nodes=NODES)
def test_looking_at_sets_of_two_and_three_gives_what_the_cheapest_costs_if_it_is_no_larger(threes, twos, nodes):
    columns, usable = columns_of(nodes)
    bounds, lacking = assessed(columns, usable, nodes, list(range(len(nodes))))
    before = {place: cost(bounds, place) for place in range(len(nodes))}
    loose = np.flatnonzero(bounds.possible & ~bounds.settled)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(node_bounds, "THREES", threes)
        patched.setattr(node_bounds, "TWOS", twos)
        if len(loose):
            bounds.tighten(loose, lacking[loose], usable)
    assert bounds.settled[loose].all()
    for place in loose.tolist():
        items = those_of(columns, usable, place)
        best, bound = cheapest(items, lacking[place]), cost(bounds, place)
        assert before[place] <= bound <= best
        fit = [item for item in items if unit_columns.decoded(item.priority) <= best[0] and item.breaks <= best[1]]
        size = next((size for size, most in ((3, threes), (2, twos), (1, twos)) if size <= len(fit) <= most), 0)
        if len(fit) <= size or (size and best[2] <= size):
            assert bound == best


@settings(max_examples=drawn(200, 60), deadline=None)
@example(nodes=2 * TWO_ARE_NEEDED, scores=[0, 0], among=[True, True])
@given(
    nodes=CLOSE | NODES,
    scores=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    among=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_places_come_by_their_bounds_then_by_score_then_by_name(nodes, scores, among):
    columns, usable = columns_of(nodes)
    bounds, _ = assessed(columns, usable, nodes, list(range(len(nodes))))
    points, open_to = np.array(scores[: len(nodes)]), np.array(among[: len(nodes)])
    left = [place for place in range(len(nodes)) if open_to[place] and bounds.possible[place]]
    left.sort(key=lambda place: (bounds.rank(place), -scores[place], place))
    assert bounds.lowest(open_to, points) == (left[0] if left else None)
    known = next((at for at, place in enumerate(left) if not bounds.settled[place]), len(left))
    assert bounds.in_order(open_to, points) == left[: known + 1]
