"""The room of nodes over time: steps that are changed one by one and all at once, against sums over everything that was ever given and taken."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pumice.plugins.timeline import profile as profiles
from pumice.plugins.timeline.profile import NEVER, Need, Profile

NODES, LAST = 3, 40


class Plain:
    """What nodes have now, and a list of who gives or takes how much from when to when."""

    def __init__(self, room):
        self.room = room
        self.changes = []

    def at(self, moment):
        found = self.room.copy()
        for row, amount, start, stop in self.changes:
            if start <= moment < stop:
                found[row] += amount
        return found

    def least(self, start, stop):
        return np.min([self.at(moment) for moment in range(start, stop)], axis=0)


def span(chance):
    start = chance.randrange(LAST)
    return start, chance.choice((start + chance.randrange(1, LAST), NEVER))


def amount(chance):
    return np.array([chance.randrange(-5, 6) for _ in range(2)])


def rebuilt(chance, profile, plain):
    """Begin anew with a node, with all that was given and taken there since in its steps."""
    row, ends = chance.randrange(NODES), []
    plain.room[row] = amount(chance)
    for _, given, start, stop in (each for each in plain.changes if each[0] == row):
        ends.append((start, given))
        if stop < NEVER:
            ends.append((stop, -given))
    profile.rebuild(row, plain.room[row], ends)


def changed(chance, profile, plain):
    rows = chance.sample(range(NODES), chance.randrange(1, NODES + 1))
    amounts, (start, stop) = [amount(chance) for _ in rows], span(chance)
    plain.changes += [(row, given, start, stop) for row, given in zip(rows, amounts, strict=True)]
    profile.change(rows, np.array(amounts), start, stop)


def taken(chance, profile, plain):
    many = [(chance.randrange(NODES), amount(chance), *span(chance)) for _ in range(chance.randrange(5))]
    plain.changes += [(row, -given, start, stop) for row, given, start, stop in many]
    rows, amounts, starts, stops = (list(each) for each in zip(*many, strict=True)) if many else ([], [], [], [])
    profile.take(np.array(rows, dtype=np.int64), np.array(amounts), np.array(starts), np.array(stops))


@pytest.mark.parametrize("seed", range(60))
def test_steps_add_up_to_all_that_was_given_and_taken(seed):
    chance = random.Random(seed)  # noqa: S311
    plain, profile = Plain(np.array([amount(chance) for _ in range(NODES)])), Profile()
    profile.build(plain.room, {})
    for _ in range(8):
        chance.choice((rebuilt, changed, changed, taken))(chance, profile, plain)
        for moment in range(0, 2 * LAST, 3):
            assert (profile.at(moment) == plain.at(moment)).all()
        start = chance.randrange(LAST)
        stop = start + chance.randrange(1, LAST)
        assert (profile.least(start, stop) == plain.least(start, stop)).all()
        below = any((plain.at(moment) < 0).any() for moment in range(start, 3 * LAST))
        assert profile.is_overbooked(start) == below


def held(room, need):
    """Count the pods that a node with some room takes."""
    room = room[need.columns]
    fits = [int(left) // int(each) for left, each in zip(room, need.amounts, strict=True) if each > 0]
    return 0 if (room < 0).any() else max(0, min([need.count, *fits]))


def enough(plain, need, start, stop):
    rooms = [plain.at(moment) for moment in range(start, min(stop, 3 * LAST))]
    may = np.ones(NODES, dtype=bool) if need.may is None else need.may
    return sum(min(held(room[row], need) for room in rooms) for row in range(NODES) if may[row]) >= need.count


def needed(chance):
    may = chance.choice((None, np.array([chance.random() < 0.7 for _ in range(NODES)])))
    return Need(np.arange(2), np.array([chance.randrange(4), chance.randrange(1, 4)]), chance.randrange(1, 5), may)


@pytest.mark.parametrize("levels", [0, 16])
@pytest.mark.parametrize("seed", range(40))
def test_there_is_room_from_the_first_time_at_which_all_that_was_given_and_taken_leaves_enough(
    seed, levels, monkeypatch
):
    monkeypatch.setattr(profiles, "LEVELS", levels)
    chance = random.Random(seed)  # noqa: S311
    plain, profile = Plain(np.array([abs(amount(chance)) for _ in range(NODES)])), Profile()
    profile.build(plain.room, {})
    for _ in range(6):
        changed(chance, profile, plain)
        needs = [needed(chance) for _ in range(chance.randrange(1, 3))]
        since, run = chance.randrange(LAST), chance.choice((chance.randrange(1, LAST), NEVER))
        fits = [t for t in range(since, 2 * LAST) if all(enough(plain, need, t, t + run) for need in needs)]
        found = list(profile.candidates(needs, since, run))
        assert found[:1] == fits[:1]
        assert set(found) <= set(fits)


@pytest.mark.parametrize("seed", range(30))
def test_two_profiles_beside_each_other_have_what_both_have(seed):
    chance = random.Random(seed)  # noqa: S311
    pairs = []
    for _ in range(2):
        plain, profile = Plain(np.array([amount(chance) for _ in range(NODES)])), Profile()
        profile.build(plain.room, {})
        for _ in range(chance.randrange(6)):
            changed(chance, profile, plain)
        pairs.append((plain, profile))
    (plain, profile), (other_plain, other) = pairs
    both = profile.beside(other)
    other.compact()
    row, room = chance.randrange(NODES), amount(chance)
    profile.rebuild(row, room, [], other)
    for moment in range(0, 2 * LAST, 3):
        assert (both.at(moment) == plain.at(moment) + other_plain.at(moment)).all()
        assert (other.at(moment) == other_plain.at(moment)).all()
        assert (profile.at(moment)[row] == room + other_plain.at(moment)[row]).all()
