"""What queues deserve: the worked cases, the definition of the level, and what must hold for any queues."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.plugins.proportion import water_level

GI = 2**30
C = 1000


def matrix(rows):
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1)


def share_out(total, queues):
    """Queues as (weight, wanted, guarantee), amounts by resource."""
    return water_level.deserved(
        np.array(total, dtype=np.int64),
        [q[0] for q in queues],
        matrix([q[1] for q in queues]),
        matrix([q[2] for q in queues]),
    )


def amounts(total, queues):
    return share_out(total, queues).amounts.tolist()


# -- worked cases: (total, queues as (weight, wanted within the limit, guarantee), deserved) -------------------------

NONE = (0, 0)
CASES = {
    "PP1 what one does not want goes to who wants more": (
        (12 * C, 24 * GI),
        [(1, (2 * C, 4 * GI), NONE), (2, (12 * C, 24 * GI), NONE), (3, (4 * C, 4 * GI), NONE)],
        [[2 * C, 4 * GI], [6 * C, 16 * GI], [4 * C, 4 * GI]],
    ),
    "PP2 a capability caps, a guarantee is off the others' limit": (
        (20 * C, 40 * GI),
        [(1, (6 * C, 10 * GI), (4 * C, 0)), (1, (16 * C, 40 * GI), NONE)],
        [[6 * C, 10 * GI], [14 * C, 30 * GI]],
    ),
    "PP3 resources are shared each by itself": (
        (10 * C, 10 * GI),
        [(1, (10 * C, 2 * GI), NONE), (1, (2 * C, 10 * GI), NONE)],
        [[8 * C, 2 * GI], [2 * C, 8 * GI]],
    ),
    "PP4 a guarantee is kept though less is asked for": (
        (10 * C, 10 * GI),
        [(1, (1 * C, 1 * GI), (4 * C, 0)), (1, (6 * C, 2 * GI), NONE)],
        [[4 * C, 1 * GI], [6 * C, 2 * GI]],
    ),
    "ours 12: a guarantee does not promise more than there is": (
        (10 * C, 10),
        [(1, (8 * C, 1), (8 * C, 0)), (1, (2 * C, 1), NONE), (1, (2 * C, 1), NONE)],
        [[8 * C, 1], [1 * C, 1], [1 * C, 1]],
    ),
    "amounts are rounded down": ((10, 10), [(1, (9, 3), NONE)] * 3, [[3, 3]] * 3),
    "nothing to share": ((0, 0), [(1, (5, 5), NONE)], [[0, 0]]),
    "guarantees beyond the total are still kept": (
        (4, 9),
        [(1, (9, 1), (3, 0)), (1, (9, 1), (3, 0))],
        [[3, 1], [3, 1]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_worked_case(name):
    total, queues, expected = CASES[name]
    assert amounts(total, queues) == expected


def test_no_queue_at_all_shares_nothing():
    shares = water_level.deserved(np.array([5, 5]), [], np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64))
    assert (shares.amounts.shape, shares.exact) == ((0, 2), [])


# -- properties --------------------------------------------------------------------------------------------------

units = st.one_of(st.integers(0, 40), st.integers(0, 2**50))
vessel = st.tuples(st.one_of(st.integers(1, 9), st.integers(1, 65535)), units, units)
vessels = st.lists(vessel, min_size=1, max_size=8)


def single(total, queues):
    """Share one resource out."""
    return share_out([total], [(w, (wanted,), (least,)) for w, wanted, least in queues])


def held_at(height, queues):
    return sum(max(Fraction(least), min(height * w, Fraction(max(wanted, least)))) for w, wanted, least in queues)


@settings(max_examples=drawn(300), deadline=None)
@given(units, vessels)
def test_level_is_where_the_vessels_hold_the_total(total, queues):
    high = [max(wanted, least) for _, wanted, least in queues]
    low = [least for _, _, least in queues]
    found = single(total, queues).amounts[:, 0].tolist()
    if sum(high) <= total:
        assert found == high
        return
    above, below = water_level.level(total, [w for w, _, _ in queues], low, high)
    height = Fraction(above, below)
    assert held_at(height, queues) == max(total, sum(low))
    assert found == [
        int(max(Fraction(least), min(height * w, Fraction(most))))
        for (w, _, least), most in zip(queues, high, strict=True)
    ]


@settings(max_examples=drawn(200), deadline=None)
@given(units, vessels)
def test_deserved_sums_to_at_most_the_total_between_guarantee_and_wish(total, queues):
    found = single(total, queues).amounts[:, 0].tolist()
    assert sum(found) <= max(total, sum(least for _, _, least in queues))
    for (_, wanted, least), part in zip(queues, found, strict=True):
        assert least <= part <= max(wanted, least)


@settings(max_examples=drawn(200), deadline=None)
@given(units, vessels, st.integers(1, 100))
def test_more_weight_never_means_less(total, queues, more):
    weight, wanted, least = queues[0]
    heavier = [(weight + more, wanted, least), *queues[1:]]
    if weight + more > 65535:
        return
    before, after = (single(total, each).amounts[:, 0].tolist() for each in (queues, heavier))
    assert after[0] >= before[0]
    assert all(b <= a for a, b in zip(before[1:], after[1:], strict=True))


@settings(max_examples=drawn(200), deadline=None)
@given(units, st.lists(st.tuples(vessel, st.integers()), min_size=1, max_size=8))
def test_order_of_queues_plays_no_part(total, numbered):
    plain = single(total, [queue for queue, _ in numbered]).amounts[:, 0].tolist()
    order = sorted(range(len(numbered)), key=lambda i: (numbered[i][1], i))
    shuffled = single(total, [numbered[i][0] for i in order]).amounts[:, 0].tolist()
    assert [plain[i] for i in order] == shuffled


@settings(max_examples=drawn(200), deadline=None)
@given(units, vessels, st.integers(1, 65535))
def test_queue_that_wants_nothing_changes_nothing(total, queues, weight):
    alone = single(total, queues)
    beside = single(total, [*queues, (weight, 0, 0)])
    assert beside.amounts[:-1].tolist() == alone.amounts.tolist()
    assert beside.exact[:-1] == alone.exact


@settings(max_examples=drawn(200), deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1),
    st.integers(2, 50),
)
def test_scaling_a_resource_scales_what_is_deserved_exactly(total, queues, times):
    def fractions(shares):
        return [Fraction(*row[0]) for row in shares.exact]

    scaled = single(total * times, [(w, wanted * times, least * times) for w, wanted, least in queues])
    assert fractions(scaled) == [part * times for part in fractions(single(total, queues))]


# -- differential: the loop that others run, where nothing is guaranteed -----------------------------------------------


def rounds(total, weights, wanted):
    """Pour out what is left by weight, cut off at the wish, until nothing is left or nobody wants more."""
    part, left, met = [Fraction()] * len(weights), Fraction(total), [False] * len(weights)
    for _ in range(200):
        whole = sum(w for w, done in zip(weights, met, strict=True) if not done)
        if not whole or left < Fraction(1, 10**9):
            break
        poured = Fraction()
        for i, weight in enumerate(weights):
            if not met[i]:
                new = min(part[i] + left * weight / whole, Fraction(wanted[i]))
                poured += new - part[i]
                part[i], met[i] = new, new >= wanted[i]
        left -= poured
    return part


@settings(max_examples=drawn(150), deadline=None)
@given(st.integers(0, 10**5), st.lists(st.tuples(st.integers(1, 20), st.integers(0, 10**5)), min_size=1, max_size=6))
def test_without_guarantees_the_level_is_where_the_rounds_end(total, queues):
    found = single(total, [(w, wanted, 0) for w, wanted in queues]).amounts[:, 0].tolist()
    expected = rounds(total, [w for w, _ in queues], [wanted for _, wanted in queues])
    assert all(0 <= float(b) - a < 1 + 1e-6 for a, b in zip(found, expected, strict=True))


# -- kube-batch ----------------------------------------------------------------------------------------------------


def test_kb1_a_queue_short_in_one_resource_keeps_its_surplus_of_the_others():
    shares = water_level.surplus(
        np.array([10 * C, 10 * GI, 110]), [1, 1], matrix([(10 * C, 2 * GI, 10), (2 * C, 10 * GI, 10)])
    )
    assert shares.amounts.tolist() == [[5 * C, 5 * GI, 0]] * 2


def test_legacy_queue_that_asks_for_less_of_everything_leaves_the_rest_to_the_others():
    request = matrix([(1 * C, 1 * GI, 1), (20 * C, 20 * GI, 9), (20 * C, 1, 9)])
    shares = water_level.surplus(np.array([10 * C, 10 * GI, 110]), [1, 1, 2], request)
    assert shares.amounts[:, 0].tolist() == [1 * C, 3 * C, 6 * C]
    assert shares.amounts[:, 1].tolist() == [1 * GI, 3 * GI, 6 * GI]


def legacy_rounds(total, weights, request):
    part = [[Fraction()] * len(total) for _ in weights]
    left, met = [Fraction(t) for t in total], set()
    while len(met) < len(weights) and any(left):
        whole = sum(w for i, w in enumerate(weights) if i not in met)
        poured = [Fraction()] * len(total)
        for i, weight in enumerate(weights):
            if i in met:
                continue
            old = part[i]
            part[i] = [d + r * weight / whole for d, r in zip(old, left, strict=True)]
            if all(asked < d for asked, d in zip(request[i], part[i], strict=True)):
                part[i] = [Fraction(asked) for asked in request[i]]
                met.add(i)
            poured = [p + new - before for p, new, before in zip(poured, part[i], old, strict=True)]
        left = [r - p for r, p in zip(left, poured, strict=True)]
    return [[int(x) for x in row] for row in part]


@settings(max_examples=drawn(150), deadline=None)
@given(
    st.tuples(st.integers(1, 500), st.integers(1, 500)),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 300), st.integers(0, 300)), min_size=1, max_size=6),
)
def test_legacy_shares_are_those_of_its_rounds(total, queues):
    weights = [w for w, _, _ in queues]
    found = water_level.surplus(np.array([*total, 0]), weights, matrix([(a, b, 0) for _, a, b in queues]))
    assert found.amounts[:, :2].tolist() == legacy_rounds(total, weights, [(a, b) for _, a, b in queues])
