"""What nodes will answer with more equal tasks on them: the rules of looking ahead, over nodes made of plain numbers."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.framework import foresight

ASKED = np.array([0, 1])


def shape_of(*needed):
    asked = np.array(needed)
    return SimpleNamespace(request=SimpleNamespace(asked=ASKED, needed=asked, vector=asked))


def table_of(free, change):
    """Nodes with so much free now, and so much more, or less, once what is being released is gone and what is expected has come."""
    free, change = np.array(free).reshape(-1, 2), np.array(change).reshape(-1, 2)
    return SimpleNamespace(idle_at=lambda rows: free[rows], after_release=lambda idle, rows: idle + change[rows])


def fitting(room, needed, limit):
    """How often a request goes into a room, counted one by one; what is not asked for does not matter."""
    count = 0
    while count < limit and all(have >= (count + 1) * want for have, want in zip(room, needed, strict=True) if want):
        count += 1
    return count


AMOUNTS = st.lists(st.integers(-3, 9), min_size=2, max_size=2)


@settings(max_examples=drawn(100))
@given(
    st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=4),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.integers(1, 5),
    st.booleans(),
)
def test_a_node_has_room_for_as_many_as_fit_one_by_one_now_and_later(nodes, needed, limit, released):
    table = table_of([free for free, _ in nodes], [change for _, change in nodes])
    found = foresight.capacity(table, np.arange(len(nodes)), shape_of(*needed), limit, released=released)
    later = [[have + more for have, more in zip(free, change, strict=True)] for free, change in nodes]
    now = [fitting(free, needed, limit) if not released else limit for free, _ in nodes]
    assert found.tolist() == [min(a, fitting(b, needed, limit)) for a, b in zip(now, later, strict=True)]


class Nodes:
    """Nodes with room for some tasks, which score something else with each task on them and may refuse any."""

    def __init__(self, draw, allowed):
        self.draw, self.allowed = draw, allowed
        self.room = [draw.randint(1, 9) for _ in allowed]
        self.says = {}
        self.filters = draw.random() < 0.7
        self.subject = SimpleNamespace(shape=shape_of(1, 0))

    def answer(self, row, steps):
        """The score with so many more on a row, None if it takes no more then."""
        fits = steps < self.room[row] and (not self.filters or self.draw.random() < 0.8)
        return self.says.setdefault((row, steps), float(self.draw.randint(0, 50)) if fits else None)

    def foreseen(self, rows, steps, *, released):
        """Answer about rows that take tasks, and about no more of them than there is room for."""
        assert released is True
        asked = list(zip(rows.tolist(), steps.tolist(), strict=True))
        assert all(self.allowed[row] and 0 < more < self.room[row] for row, more in asked)
        found = [self.answer(row, more) for row, more in asked]
        points = np.array([-1.0 if points is None else points for points in found])
        return points, np.array([points is not None for points in found]) if self.filters else None


@settings(max_examples=drawn(160))
@given(st.randoms(use_true_random=True))
def test_with_each_task_a_node_scores_what_it_says_about_so_many_until_it_takes_no_more(draw):
    allowed = np.array([draw.random() < 0.8 for _ in range(draw.randint(1, 9))])
    left = np.flatnonzero(allowed).tolist()
    nodes = Nodes(draw, allowed)
    table = table_of([[-5, 0]] * len(allowed), [[room + 5, 0] for room in nodes.room])
    likely = np.array(sorted(draw.sample(left, draw.randint(0, len(left)))), dtype=np.int64)
    small = {"BATCH": draw.randint(1, 3), "LARGE_BATCH": draw.randint(1, 3), "DEPTH": draw.randint(1, 4)}
    taken = dict.fromkeys(left, 0)
    with contextlib.ExitStack() as stack:
        for name, value in small.items():
            stack.enter_context(mock.patch.object(foresight, name, value))
        ahead = foresight.Foresight(nodes, table, allowed, likely, 8, steps=draw.randint(1, 4), released=True)
        while left:
            row = draw.choice(left)
            taken[row] += 1
            after = ahead.take(row)
            assert after == nodes.answer(row, taken[row])
            if after is None:
                left.remove(row)


@pytest.mark.parametrize(
    ("count", "together"),
    [
        (1, foresight.BATCH),
        (8 * foresight.BATCH + 8, foresight.BATCH + 1),
        (10**6, foresight.LARGE_BATCH),
    ],
)
def test_beside_a_node_that_was_not_expected_those_after_it_are_looked_at_as_many_as_the_run_is_long(count, together):
    asked = []

    def foreseen(rows, steps, *, released):
        asked.extend(rows.tolist())
        return np.zeros(len(rows)), None

    size = foresight.LARGE_BATCH + 50
    evaluation = SimpleNamespace(subject=SimpleNamespace(shape=shape_of(1, 0)), foreseen=foreseen)
    ahead = foresight.Foresight(
        evaluation,
        table_of([[9, 0]] * size, [[0, 0]] * size),
        np.ones(size, dtype=np.bool_),
        np.array([0]),
        count,
        steps=2,
        released=False,
    )
    assert asked == [0, 0]
    ahead.take(3)
    assert asked[2:] == list(range(3, 4 + together))
