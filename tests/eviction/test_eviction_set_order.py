"""Sets of units come by rank: held against listing every set and sorting them."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pumice.actions.eviction import set_order
from pumice.actions.eviction.units import Unit

FREED = [np.array(each) for each in ([1, 0], [2, 1], [1, 3], [4, 4])]  # pods of one shape give back the same vector
ASKED = np.array([0, 1])
PODS = st.tuples(st.integers(0, 3), st.integers(0, 1), st.just(1), st.integers(1, 2))  # shape, priority, count, loss
JOBS = st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(2, 3), st.integers(1, 9), st.booleans())


def choice(job, given, *, whole, breaks=False):
    shape, priority, count, loss = given
    unit = SimpleNamespace(tasks=[SimpleNamespace(job=job)], whole=whole, breaks=breaks)
    return set_order.Choice(unit, FREED[shape], (0, priority), count, loss)


def choices(pods, jobs):
    """Make a choice of each pod, two of which are of one job, and of each job as a whole; the first job has pods, too."""
    owners = [object() for _ in range(len(pods) + len(jobs))]
    single = [choice(owners[number // 2], given, whole=False) for number, given in enumerate(pods)]
    return single + [choice(owners[n], each[:4], whole=True, breaks=each[4]) for n, each in enumerate(jobs)]


def goes_twice(chosen):
    whole = [each.unit.tasks[0].job for each in chosen if each.unit.whole]
    return any(each.unit.tasks[0].job in whole for each in chosen if not each.unit.whole)


def rank_of(places, listed):
    chosen = [listed[place] for place in places]
    return (
        max(each.priority for each in chosen),
        any(each.unit.breaks for each in chosen),
        sum(each.count for each in chosen),
        sum(each.loss for each in chosen),
        places,
    )


def places(chosen, listed):
    where = {id(each): number for number, each in enumerate(listed)}
    return tuple(where[id(each)] for each in chosen)


def expected(listed, lacking, most):
    sizes = range(1, (len(listed) if most is None else most) + 1)
    every = [places for size in sizes for places in itertools.combinations(range(len(listed)), size)]
    enough = [
        places
        for places in every
        if (sum(listed[place].freed for place in places) >= lacking).all()
        and not goes_twice([listed[place] for place in places])
    ]
    return sorted(enough, key=lambda places: rank_of(places, listed))


@given(
    st.lists(PODS, max_size=5),
    st.lists(JOBS, max_size=2),
    st.tuples(st.integers(-1, 6), st.integers(-1, 6)),
)
@example([(1, 0, 1, 1)] * 4, [], (5, 2))
@example([(1, 0, 1, 1), (1, 0, 1, 2), (1, 0, 1, 1)], [], (2, 1))  # equal but for what their going costs
@example([(3, 0, 1, 1), (1, 0, 1, 1), (1, 0, 1, 1)], [], (4, 0))  # equal but for their shapes
def test_every_set_that_is_enough_comes_by_rank_then_in_victim_order(pods, jobs, lacking):
    listed = choices(pods, jobs)
    found = list(set_order.sets_by_rank(listed, np.array(lacking), ASKED))
    assert [places(chosen, listed) for chosen in found] == expected(listed, np.array(lacking), None)


ALIKE = st.tuples(st.integers(0, 3), st.just(0), st.just(1), st.integers(1, 2))


@given(st.lists(ALIKE, min_size=set_order.FEW + 1, max_size=set_order.FEW + 2), st.integers(1, 6))
def test_of_many_every_set_of_up_to_three_comes_by_rank_and_it_is_said_that_there_are_more(pods, lacking):
    listed, short = choices(pods, []), np.array([lacking, 0])
    found = list(set_order.sets_by_rank(listed, short, ASKED))
    sets = [places(chosen, listed) for chosen in found if chosen is not None]
    assert sets == expected(listed, short, 3)
    assert None in found or not sum(each.freed[0] for each in listed) >= lacking


# ---- equals


def pod_of(*, freed=None, priority=(1, 0), count=1, loss=5, breaks=False):
    return set_order.Choice(
        Unit(tasks=(SimpleNamespace(job=None),), whole=False, breaks=breaks),
        SAME if freed is None else freed,
        priority,
        count,
        loss,
    )


SAME = np.array([2, 1])


@pytest.mark.parametrize(
    ("others", "equal"),
    [
        ([], True),
        ([{}], True),
        ([{"freed": np.array([2, 1])}], False),  # of another shape
        ([{"priority": (1, 1)}], False),
        ([{"count": 2}], False),
        ([{"loss": 6}], False),
        ([{"breaks": True}], False),
        ([{}, {"loss": 4}], False),
    ],
)
def test_units_are_equal_if_they_are_pods_whose_going_costs_the_same(others, equal):
    assert set_order.are_equal([pod_of(), *(pod_of(**each) for each in others)]) is equal
    assert set_order.are_equal([pod_of(count=2)]) is False


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_set_is_ranked_as_its_units_together(number):
    chosen = [pod_of(), pod_of(priority=(2, 0), loss=7), pod_of(count=3, breaks=True)][:number]
    expected = [((1, 0), False, 1, 5), ((2, 0), False, 2, 12), ((2, 0), True, 5, 17)][number - 1]
    assert set_order.rank(chosen) == expected


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize(
    ("lacking", "first"), [((0, 0), 1), ((-3, 0), 1), ((2, 1), 1), ((3, 0), 2), ((0, 2), 2), ((4, 3), 3)]
)
def test_the_smallest_sets_that_are_enough_come_first(lacking, first, same):
    choices = [pod_of(loss=5 if same else 5 + place) for place in range(3)]
    sets = list(set_order.sets_by_rank(choices, np.array(lacking), np.array([0, 1])))
    sizes = [len(each) for each in sets]
    assert sizes[0] == first
    assert len(sets) == {1: 7, 2: 4, 3: 1}[first]


def test_nobody_is_given_of_nobody_and_of_those_who_give_back_nothing():
    assert list(set_order.sets_by_rank([], np.array([1, 0]), np.array([0, 1]))) == []
    nothing = [pod_of(freed=np.array([0, 1]))] * 2
    assert list(set_order.sets_by_rank(nothing, np.array([1, 0]), np.array([0, 1]))) == []
