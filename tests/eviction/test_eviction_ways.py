"""Where few members are placed in every way, each state is looked at once: that finds a way exactly where trying everything does."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from eviction_crowds import crowd

from drawing import seeds
from pumice.actions.eviction import ways
from pumice.actions.eviction.ways import Ways
from pumice.framework import subject

SEEDS = seeds(20, 9, 10, 11, 12, 17)
FEW = 3  # members that are placed in every order and on every node, without a memory


def tried(ways, members):
    """Tell whether any order of any of some members, on any nodes, is enough and suits."""
    plan = ways.plan
    mark, count = plan.statement.checkpoint(), len(plan.members)
    for member in members:
        for row in ways.rows(member):
            found = False
            if plan.settle(member, row):
                rest = [task for task in members if task is not member]
                found = ways.suits() if ways.done() else tried(ways, rest)
            plan.back_to(mark, count)
            if found:
                return True
    return False


@pytest.mark.parametrize("name", ["preempt", "preempt, limits", "reclaim, capacity", "reclaim, tree"])
def test_a_way_is_found_where_there_is_one(name, monkeypatch):
    compared = []
    finds = Ways.finds

    def checked(self, members, placed=()):
        if placed or len(members) > FEW:
            return finds(self, members, placed)
        wanted = tried(self, members)
        found = finds(self, members)
        assert found == wanted, members
        compared.append(len(members))
        return found

    monkeypatch.setattr(Ways, "finds", checked)
    for seed in SEEDS:
        desk = crowd(seed, name)
        desk.cycle()
        assert not desk.scheduler.failures, (seed, desk.scheduler.failures)
    assert sum(count > 1 for count in compared) > 10


class Rooms:
    """A plan of members without names: each goes on nodes of its kind."""

    def __init__(self, rooms):
        self._rooms, self.members, self.bounds = rooms, [], {}
        self.queue = "q"
        self.statement = SimpleNamespace(checkpoint=lambda: len(self.members))
        facts, announced = SimpleNamespace(siblings_share_answers=True), SimpleNamespace(divisions=[])
        self.session = SimpleNamespace(pre_predicate=lambda _: None, independence=facts, announced=announced)

    def rows(self, _):
        return None

    def is_allowed(self, _):
        return True

    def evaluation(self, member):
        mask = np.array([room >= member.priority for room in self._rooms])
        return SimpleNamespace(possible=lambda *, released: mask, mask=lambda *, released: mask)

    def settle(self, member, row):
        self._rooms[row] -= member.priority
        self.members.append((member, row))
        return True

    def back_to(self, mark, members):
        for member, row in self.members[mark:]:
            self._rooms[row] += member.priority
        del self.members[members:]


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(1, 2, 3), (3, 2, 1), (2, 2, 3), (2, 4, 1), (5, 1, 1)])
@pytest.mark.parametrize("rooms", [[1, 1], [2, 1], [3], [3, 3], [5, 1]])
def test_where_some_may_be_left_out_a_way_is_found_without_any_of_them(least, sizes, rooms, monkeypatch):
    monkeypatch.setattr(subject, "Subject", lambda member, _: member)
    members = [
        SimpleNamespace(uid=str(place), priority=size, role=str(place), sub_job=None, likeness=(size, None))
        for place, size in enumerate(sizes)
    ]

    def every(enough):
        plan = Rooms(list(rooms))
        return Ways(plan, least, lambda: len(plan.members) >= least, lambda: enough(plan))

    for wanted in members:

        def has(plan, wanted=wanted):
            return any(member is wanted for member, _ in plan.members)

        assert every(has).finds(members) is tried(every(has), members)


# ---- who is like whom


def member(**change):
    usual = {"uid": "u", "priority": 1, "role": "m", "sub_job": SimpleNamespace(key="s"), "likeness": ("shape", None)}
    volumes = SimpleNamespace(constraints=SimpleNamespace(has_volumes=change.pop("has_volumes", False)))
    return SimpleNamespace(**{**usual, "shape": SimpleNamespace(constraint_class=volumes), **change})


SESSION = SimpleNamespace(
    independence=SimpleNamespace(siblings_share_answers=True), announced=SimpleNamespace(divisions=[])
)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"uid": "other"}, True),
        ({"priority": 2}, False),
        ({"role": "w"}, False),
        ({"sub_job": SimpleNamespace(key="s")}, True),
        ({"sub_job": SimpleNamespace(key="t")}, False),
        ({"sub_job": None}, False),
        ({"likeness": ("other", None)}, False),
    ],
)
def test_members_are_of_one_kind_if_nothing_that_filters_scores_and_minima_see_tells_them_apart(change, same):
    assert (ways.kind_of(SESSION, member()) == ways.kind_of(SESSION, member(**change))) is same


@pytest.mark.parametrize(
    ("members", "job", "only"),
    [
        ([{}, {"uid": "other"}], {}, True),
        ([{}], {}, True),
        ([{}, {"priority": 2}], {}, False),
        ([{}, {}], {"topology": "hard"}, False),
        ([{}, {}], {"policies": ["policy"]}, False),
        ([{"has_volumes": True}], {}, False),
        ([{"likeness": ("shape", "apart")}], {}, False),
        ([{"likeness": ("shape", "apart"), "has_volumes": True}], {}, False),
    ],
)
def test_equal_members_are_placed_in_one_way_unless_where_one_is_counts_for_another(members, job, only):
    made = SimpleNamespace(**{"topology": None, "policies": [], **job})
    assert ways.is_only_one(SESSION, made, [member(**each) for each in members]) is only


@pytest.mark.parametrize(
    ("allowed", "refused", "within", "rows"),
    [
        (True, None, None, [0, 2, 3]),
        (True, None, [1, 2, 3], [2, 3]),
        (True, None, [1], []),
        (False, None, None, []),
        (True, "barred", None, []),
    ],
)
def test_a_member_is_tried_on_the_nodes_that_it_may_go_to_and_that_take_it(allowed, refused, within, rows, monkeypatch):
    monkeypatch.setattr(subject, "Subject", lambda member, _: member)
    mask = np.array([True, False, True, True])

    def passing(*, released):
        assert released
        return mask

    plan = SimpleNamespace(
        queue="q",
        is_allowed=lambda _: allowed,
        session=SimpleNamespace(pre_predicate=lambda _: refused),
        rows=lambda _: None if within is None else np.array(within),
        evaluation=lambda _: SimpleNamespace(mask=passing),
    )
    assert Ways(plan, 1, bool).rows("member") == rows


def test_after_so_many_states_no_other_way_is_tried_and_that_is_told(monkeypatch):
    monkeypatch.setattr(subject, "Subject", lambda member, _: member)
    monkeypatch.setattr(ways, "MOST", 2)
    members = [
        SimpleNamespace(uid=str(size), priority=size, role=str(size), sub_job=None, likeness=(size, None))
        for size in (1, 2)
    ]
    plan = Rooms([9, 9, 9])
    assert Ways(plan, 3, lambda: False).finds(members) is False
    assert plan.bounds == {}  # of two no three can be placed
    assert Ways(plan, 2, lambda: False).finds(members) is False
    assert list(plan.bounds) == [ways.REACHED]
    assert plan.members == []


def test_no_state_is_looked_at_twice(monkeypatch):
    """Of two members either may be left out: there are six ways to place one on three nodes, and nine to place both."""
    monkeypatch.setattr(subject, "Subject", lambda member, _: member)
    members = [
        SimpleNamespace(uid=str(size), priority=size, role=str(size), sub_job=None, likeness=(size, None))
        for size in (1, 2)
    ]
    for most in (14, 15):
        monkeypatch.setattr(ways, "MOST", most)
        plan = Rooms([9, 9, 9])
        assert Ways(plan, 1, lambda: False).finds(members) is False
        assert bool(plan.bounds) is (most == 14)


class Following(Rooms):
    """Takes the first member only beside the second."""

    def evaluation(self, member):
        found = super().evaluation(member)
        if member.uid == "first":
            beside = [row for other, row in self.members if other.uid == "second"]
            mask = np.array([row in beside for row in range(2)])
            possible = found.possible
            return SimpleNamespace(possible=possible, mask=lambda *, released: mask)
        return found


def test_whoever_waits_for_another_is_placed_after_it(monkeypatch):
    monkeypatch.setattr(subject, "Subject", lambda member, _: member)
    members = [
        SimpleNamespace(uid=uid, priority=1, role=uid, sub_job=None, likeness=(uid, minds))
        for uid, minds in (("first", "beside"), ("second", "beside"))
    ]
    plan = Following([2, 2])
    assert Ways(plan, 2, lambda: len(plan.members) == 2).finds(members)
    assert [(each.uid, row) for each, row in plan.members] == [("second", 0), ("first", 0)]
