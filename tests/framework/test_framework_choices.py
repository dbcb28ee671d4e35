"""The choices among nodes, each held against one that looks at every node for every task."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import numpy as np
import pytest

from pumice.framework import kind_choice, walking
from pumice.framework.followers import Followers
from pumice.framework.group_choice import FEW, GONE, GroupChoice, Ladder
from pumice.framework.kind_choice import ALIKE, WORTHWHILE, sorted_by_kind
from pumice.framework.node_choice import Choice

SCORES = (5.0, 5.0004, 5.0006, 4.0, 5.0, 4.9996)


class ByGroup:
    """A rating that gives all rows of a group the same, which rises or falls there with each task."""

    def __init__(self, groups, values, gain):
        self.groups, self.values, self.gain = np.array(groups), np.array(values, dtype=np.float64), gain
        self._owed = []

    def place(self, row):
        self.values[self.groups[row]] += self.gain

    def points(self, rows, sizes=None):
        del sizes
        return self.values[self.groups[rows]]

    def rising(self, group):
        del group
        return 3 if self.gain >= 0 else 0

    def advance(self, group, count):
        self._owed.append((group, self.gain * count))
        return self.gain * count, 0.0

    def settle(self):
        for group, points in self._owed:
            self.values[group] += points
        self._owed.clear()

    def alike(self):
        return [self.groups]


class Limited:
    """A filter that takes so many tasks in each domain."""

    def __init__(self, domains, most):
        self.domains, self.most = np.array(domains), most
        self.counts = np.zeros(max(domains) + 1, dtype=np.int64)

    def refuses(self, rows):
        return self.counts[self.domains[rows]] >= self.most

    def place(self, row):
        domain = self.domains[row]
        self.counts[domain] += 1
        return np.flatnonzero(self.domains == domain) if self.counts[domain] == self.most else None

    def alike(self):
        return [self.domains]


class World:
    """Nodes that score so much, take so many tasks, and score otherwise with each; some are closed."""

    def __init__(self, seed, size=9, kinds=9):
        draw = random.Random(seed)  # noqa: S311  a world, not a secret
        drawn = [
            (draw.choice(SCORES), draw.random() < 0.85, draw.randint(1, 3), draw.choice((0.0, 0.0, -0.5, 0.5, 0.0004)))
            for _ in range(kinds)
        ]
        self.kinds = [draw.randrange(kinds) for _ in range(size)]
        self.plain = np.array([drawn[kind][0] for kind in self.kinds])
        self.fixed = np.array([drawn[kind][1] for kind in self.kinds])
        self.room = [drawn[kind][2] for kind in self.kinds]
        self.step = [drawn[kind][3] for kind in self.kinds]
        groups = [draw.randrange(3) if kinds == size else kind % 3 for kind in self.kinds]
        self.groups = [sorted(set(groups)).index(group) for group in groups]
        self.values = [draw.choice((0.0, 0.5, 1.0)) for _ in set(groups)]
        self.gain = draw.choice((-1.0, -0.5, 0.0, 0.5))
        self.domains = [draw.randrange(4) if kinds == size else kind % 4 for kind in self.kinds]
        self.most = draw.randint(1, 4)
        self.count = draw.randint(WORTHWHILE, 2 * WORTHWHILE)

    def followers(self, *, rated=True, limited=True):
        rating = [ByGroup(self.groups, self.values, self.gain)] if rated else []
        return Followers([Limited(self.domains, self.most)] if limited else [], rating)

    def taking(self):
        """Give what puts one more task on a row, and says what it scores from then on."""
        taken = [0] * len(self.plain)

        def take(row):
            taken[row] += 1
            return float(self.plain[row] + taken[row] * self.step[row]) if taken[row] < self.room[row] else None

        return take

    def one_by_one(self, followers, normalised=None):
        """Look at every node for every task."""
        plain, fixed, take, chosen = self.plain.copy(), self.fixed.copy(), self.taking(), []
        for _ in range(self.count):
            rows = np.flatnonzero(fixed)
            if (refused := followers.refuses(rows)) is not None:
                rows = rows[~refused]
            if not len(rows):
                break
            total = plain[rows] + sum(each.points(rows) for each in followers.rating)
            if normalised is not None:
                total = total + normalised(rows)
            keys = np.rint(total * 1000)
            row = int(rows[keys.argmax()])
            chosen.append(row)
            points = take(row)
            fixed[row] = points is not None
            plain[row] = plain[row] if points is None else points
            for each in (*followers.rating, *followers.refusing):
                each.place(row)
        return chosen

    def chosen_by(self, choice):
        take, chosen = self.taking(), []
        while len(chosen) < self.count and (row := choice.best()) is not None:
            chosen.append(row)
            choice.place(row, take(row))
        return chosen


SEEDS = range(60)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("rated", [False, True])
def test_the_best_of_all_nodes_is_chosen_as_they_are_now(rated, limited):
    for seed in SEEDS:
        world = World(seed)
        followers = world.followers(rated=rated, limited=limited)
        plain = SimpleNamespace(settled_raws=[])
        choice = Choice(plain, world.plain.copy(), world.fixed.copy(), world.fixed.copy(), followers)
        expected = world.one_by_one(world.followers(rated=rated, limited=limited))
        assert world.chosen_by(choice) == expected, seed


def test_what_is_normalised_is_brought_to_scale_among_those_who_are_left():
    raw = np.array([3.0, 9.0, 1.0, 4.0, 4.0, 8.0, 2.0, 7.0, 5.0])
    for seed in SEEDS:
        world = World(seed)
        evaluation = SimpleNamespace(settled_raws=[(raw, lambda each: each / each.max())])
        choice = Choice(evaluation, world.plain.copy(), world.fixed.copy(), world.fixed.copy(), world.followers())
        expected = world.one_by_one(world.followers(), lambda rows: raw[rows] / raw[rows].max())
        assert world.chosen_by(choice) == expected, seed


@pytest.mark.parametrize("limited", [False, True])
def test_the_best_of_groups_is_chosen_as_the_best_of_all_nodes_would_be(limited):
    for seed in SEEDS:
        world = World(seed)
        followers = world.followers(limited=limited)
        choice = GroupChoice(world.plain.copy(), world.fixed.copy(), world.fixed.copy(), followers, followers.rating[0])
        assert world.chosen_by(choice) == world.one_by_one(world.followers(limited=limited)), seed


def test_many_are_chosen_in_one_group_as_long_as_no_other_may_be_better():
    for seed in range(200):
        world = World(seed)
        followers = world.followers(limited=False)
        choice = GroupChoice(world.plain.copy(), world.fixed.copy(), world.fixed.copy(), followers, followers.rating[0])
        found = choice.choose(followers.rating[0], SimpleNamespace(take=world.taking()), world.count)
        assert found == world.one_by_one(world.followers(limited=False)), seed


@pytest.mark.parametrize("times", [1, 2])
def test_of_many_groups_that_are_equally_good_the_first_row_is_chosen(times):
    """Also of rows that were chosen before, and score what they did."""
    for count in (2, FEW, FEW + 1, FEW + 2, 3 * FEW):
        groups = [*range(count), *range(count)]
        plain = np.array([4.0] * count + [5.0] * count)
        plain[count - 1] = 5.0
        left = dict.fromkeys(range(2 * count), times)

        def take(row, plain=plain, left=left):
            left[row] -= 1
            return float(plain[row]) if left[row] else None

        open_ = np.ones(2 * count, dtype=np.bool_)
        rating = ByGroup(groups, [0.0] * count, 0.0)
        choice = GroupChoice(plain.copy(), open_.copy(), open_.copy(), Followers([], [rating]), rating)
        chosen = choice.choose(rating, SimpleNamespace(take=take), times * (count + 1))
        assert chosen == [row for row in range(count - 1, 2 * count) for _ in range(times)]


def test_where_no_node_is_there_none_is_chosen():
    none, nowhere = np.zeros(0), np.zeros(0, dtype=np.bool_)
    rating = ByGroup([], [], 0.0)
    rating.groups = np.zeros(0, dtype=np.int64)
    choice = GroupChoice(none, nowhere, nowhere, Followers([], [rating]), rating)
    assert choice.best() is None
    assert choice.choose(rating, SimpleNamespace(take=None), 3) == []
    assert Choice(SimpleNamespace(settled_raws=[]), none, nowhere, nowhere, Followers([], [])).best() is None
    assert Choice(SimpleNamespace(settled_raws=[]), none, nowhere, nowhere, Followers([], [rating])).best() is None


# ---- from the amounts on


class Closing(Limited):
    """A filter that takes one task in each domain, and says which these are."""

    def __init__(self, domains, missing=(), alone=False):
        super().__init__(domains, 1)
        codes = np.array([-1 if row in missing else domain for row, domain in enumerate(domains)])
        self.found = SimpleNamespace(codes=codes, some_missing=bool(missing), alone=alone)

    def closes(self):
        return self.found


def walked(world, followers, within=None):
    """Choose nodes by what they have room for."""
    one = np.array([1])
    room, rows = np.array(world.room)[:, None], np.arange(len(world.room))
    table = SimpleNamespace(rows=rows, idle_at=lambda rows: room[rows], after_release=lambda free, rows: free)
    request = SimpleNamespace(asked=np.array([0]), needed=one, vector=one)

    def foreseen(rows, taken, *, released):
        assert not released
        return world.plain[rows] + taken * np.array(world.step)[rows], None

    evaluation = SimpleNamespace(
        fixed=lambda released: world.fixed,
        plain=world.plain,
        settled_raws=[],
        foreseen=foreseen,
        subject=SimpleNamespace(shape=SimpleNamespace(request=request)),
    )
    return walking.walk(evaluation, table, followers, world.count, released=False, within=within)


@pytest.mark.parametrize("within", [None, [1, 3, 4, 7, 8]])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("rated", [False, True])
def test_nodes_are_chosen_as_if_all_were_looked_at_for_every_task(rated, limited, within):
    for seed in SEEDS:
        world = World(seed)
        before = world.fixed.copy()
        found = walked(world, world.followers(rated=rated, limited=limited), within)
        assert (world.fixed == before).all()
        if within is not None:
            world.fixed[[row for row in range(len(before)) if row not in within]] = False
        assert found == world.one_by_one(world.followers(rated=rated, limited=limited)), seed


@pytest.mark.parametrize("count", [1, 2, 5, 30])
@pytest.mark.parametrize("kind", ["shared", "alone", "missing"])
def test_where_a_task_closes_its_domain_the_best_of_each_is_chosen(kind, count):
    for seed in SEEDS:
        world = World(seed)
        world.count = count
        domains = [*range(len(world.plain))] if kind == "alone" else world.domains
        missing = (2,) if kind == "missing" else ()
        found = walked(world, Followers([Closing(domains, missing, kind == "alone")], []))
        assert found == world.one_by_one(Followers([Limited(domains, 1)], [])), seed


# ---- rungs

RUNGS = [
    ([5.0, 4.0], 2, [None, None], [0], 4.0),
    ([5.0, 5.0, 5.0], 2, [4.0, 4.0], [0, 1], 5.0),
    ([5.0, 5.0, 5.0], 3, [4.0, 4.0, 4.0], [0, 1, 2], 4.0),
    ([5.0, 5.0], 3, [5.0, 4.0, 4.0], [0, 0, 1], 4.0),  # one that scores the same comes first again
    ([5.0, 5.0], 3, [6.0, 4.0], [0], 6.0),  # one that scores more is looked at anew
    ([5.0, 5.0], 3, [4.999, 4.0], [0], 5.0),  # so is one that is not far enough below
    ([5.0, 5.0], 3, [4.998, 4.0], [0, 1], 4.998),
    ([4.9995, 5.0], 3, [4.0], [0], 5.0),  # two that may round to the same are chosen one by one
    ([-np.inf, 5.0], 3, [None], [1], GONE),
]


@pytest.mark.parametrize(("scores", "most", "later", "chosen", "top"), RUNGS)
def test_rows_of_one_rung_are_chosen_one_after_the_other(scores, most, later, chosen, top):
    ladder = Ladder(np.arange(len(scores)), np.array(scores))
    left = list(later)
    assert ladder.climb(0.0, most, SimpleNamespace(take=lambda _: left.pop(0))) == chosen
    assert ladder.top == top
    assert ladder.moved.keys() == set(chosen)


# ---- kinds


def in_order(columns):
    """Say the same by comparing every place with every other."""
    places = range(len(columns[0]))
    kinds = sorted({tuple(column[place] for column in columns) for place in places})
    groups = [[place for place in places if tuple(c[place] for c in columns) == kind] for kind in kinds]
    return sorted(groups)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 90])
def test_places_that_are_equal_in_all_columns_stand_together(size):
    for seed in range(10):
        draw = random.Random(seed)  # noqa: S311  as above
        columns = [
            np.array([draw.choice((1.5, -2.25, 0.0)) for _ in range(size)]),
            np.array([draw.randint(-3, 4) for _ in range(size)], dtype=np.int64),
            np.array([draw.randint(2, 6) for _ in range(size)], dtype=np.int16),
        ]
        order, begins = sorted_by_kind(columns)
        bounds = [*begins.tolist(), size]
        found = [order[a:b].tolist() for a, b in itertools.pairwise(bounds)]
        assert sorted(found) == in_order(columns), seed


def test_where_there_are_too_many_values_nobody_is_told_apart():
    wide = np.array([0, 2**40])
    assert sorted_by_kind([wide]) is not None
    assert sorted_by_kind([wide, wide]) is None


def alike(seed, kinds, size):
    world = World(seed, size=size, kinds=kinds)
    world.fixed[:] = True
    return world


def test_the_best_of_kinds_is_chosen_as_the_best_of_all_nodes_would_be():
    found = 0
    for seed in range(80):
        world = alike(seed, 4, 40)
        choice = kind_choice.find(world.plain, world.fixed, world.followers(), world.count)
        if choice is not None:
            found += 1
            assert world.chosen_by(choice) == world.one_by_one(world.followers()), seed
    assert found > 40


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("rated", [False, True])
def test_kinds_are_followed_whatever_follows_them(rated, limited):
    for seed in range(30):
        world = alike(seed, 3, 24)
        followers = world.followers(rated=rated, limited=limited)
        choice = kind_choice.find(world.plain, world.fixed, followers, world.count)
        if choice is not None:
            expected = world.one_by_one(world.followers(rated=rated, limited=limited))
            assert world.chosen_by(choice) == expected, seed


def test_it_is_chosen_by_kinds_for_many_tasks_among_many_that_are_alike():
    plain = np.repeat([5.0, 4.0], ALIKE)
    open_ = np.ones(len(plain), dtype=np.bool_)
    nobody = Followers([], [])
    assert kind_choice.find(plain, open_, nobody, WORTHWHILE) is not None
    assert kind_choice.find(plain, open_, nobody, WORTHWHILE - 1) is None
    closed = open_.copy()
    closed[0] = False
    assert kind_choice.find(plain, closed, nobody, WORTHWHILE) is None
    unsure = SimpleNamespace(refuses=None, place=None)
    assert kind_choice.find(plain, open_, Followers([unsure], []), WORTHWHILE) is None
    assert kind_choice.find(plain, ~open_, nobody, WORTHWHILE).best() is None
