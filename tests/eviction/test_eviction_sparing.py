"""Who is needed and who is spared, beyond plain rooms: told without trying or by trying, with members that mind others, other resources, and gangs of which a part is enough."""

from __future__ import annotations

import msgspec
import pytest
from eviction_hand import ANYWHERE, Hand

from builders import group, pod
from pumice.actions.eviction import plan, trimming
from pumice.framework import shortcuts

ONLY_M = {"nodeSelector": {"is": "m"}}


@pytest.fixture(params=["few", "many"])
def _kind(request, monkeypatch):
    """Whether members are few enough that every way is tried."""
    if request.param == "many":
        monkeypatch.setattr(plan, "SMALL", 0)


def needed(hand, *names, whole=False):
    (unit,) = [each for each in hand.plan.units if [task.name for task in each.tasks] == list(names)]
    assert unit.whole is whole
    return trimming.is_needed(hand.plan, unit)


# ---- told without trying


def test_whose_going_makes_the_only_room_of_one_member_is_needed():
    hand = Hand(nodes={"m": 2, "n": 1}, running={"a": (0, "low", [("m", 2)])}, asks=[(2, ANYWHERE)])
    hand.take("a-0")
    hand.place(asks_0="m")
    assert needed(hand, "a-0")


@pytest.mark.parametrize(
    ("nodes", "asks", "where"),
    [
        ({"m": 4}, [(2, ANYWHERE)], {"asks_0": "m"}),  # it fits beside
        ({"m": 2, "n": 2}, [(2, ANYWHERE)], {"asks_0": "m"}),  # or elsewhere
        ({"m": 2}, [(1, ANYWHERE), (1, ANYWHERE)], {"asks_0": "m", "asks_1": "m"}),  # two would have to move
        ({"m": 2, "n": 1}, [(1, {"nodeSelector": {"is": "n"}})], {"asks_0": "n"}),  # nobody is beside it
    ],
)
def test_of_whom_that_cannot_be_told_it_has_to_be_tried(nodes, asks, where):
    hand = Hand(nodes=nodes, running={"a": (0, "low", [("m", 2)])}, asks=asks)
    hand.take("a-0")
    hand.place(**where)
    assert not needed(hand, "a-0")


def test_room_that_somebody_leaves_anyway_is_room_elsewhere():
    running = {"a": (0, "low", [("m", 2)])}
    leaving = [group("old", 0, phase="Running"), pod("old", "old", cpu="2", node="n", deleting=1)]
    hand = Hand(nodes={"m": 2, "n": 2}, running=running, asks=[(2, ANYWHERE)], also=leaving)
    hand.take("a-0")
    hand.place(asks_0="m")
    assert not needed(hand, "a-0")


def test_of_a_gang_all_who_are_on_a_node_count_and_nobody_else():
    running = {"a": (4, "low", [("m", 1), ("m", 1), ("n", 2), ("n", 1)])}
    hand = Hand(nodes={"m": 3, "n": 4}, running=running, asks=[(2, ONLY_M), (1, {"nodeSelector": {"is": "n"}})])
    names = [f"a-{i}" for i in range(4)]
    hand.take(*names, whole=True)
    hand.place(asks_0="m", asks_1="n")
    assert needed(hand, *names, whole=True)


def test_both_of_a_pair_count():
    hand = Hand(nodes={"m": 3}, running={"a": (2, "low", [("m", 1), ("m", 1)])}, asks=[(2, ANYWHERE)])
    hand.take("a-0", "a-1", whole=True)
    hand.place(asks_0="m")
    assert needed(hand, "a-0", "a-1", whole=True)


def test_who_takes_what_a_node_has_no_more_of_and_the_member_does_not_ask_for_is_not_needed_for_that():
    """A device is gone that it runs on; the node has room for the member beside it."""
    hand = Hand(nodes={"m": {"cpu": "2", "example__card": "1"}}, running={}, asks=[(2, ANYWHERE)])
    hand.desk.feed(group("a", 0, phase="Running", priorityClassName="low"))
    hand.desk.feed(pod("a-0", "a", node="m", requests={"example/card": "2"}))
    hand.desk.apply()
    hand.take("a-0")
    hand.place(asks_0="m")
    assert not needed(hand, "a-0")


# ---- tried


@pytest.mark.usefixtures("_kind")
@pytest.mark.parametrize("by_numbers", [True, False])
def test_a_gang_is_spared_if_the_member_finds_room_elsewhere_beside_one_of_it(by_numbers):
    """It must be beside a pod of those; while the gang counts as gone there is none on the other node."""
    term = {"topologyKey": "is", "labelSelector": {"matchLabels": {"app": "x"}}}
    beside = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    hand = Hand(nodes={"m": 4, "n": 3}, running={}, asks=[(2, beside)])
    hand.desk.feed(group("a", 2, phase="Running", priorityClassName="low"), group("kept", 0, phase="Running"))
    hand.desk.feed(
        *(
            pod(f"a-{i}", "a", cpu=cpu, node=on, labels={"app": "x"})
            for i, (cpu, on) in enumerate((("2", "m"), ("1", "n")))
        )
    )
    hand.desk.feed(pod("kept", "kept", cpu="2", node="m", labels={"app": "x"}))
    hand.desk.apply()
    taken = msgspec.structs.replace(shortcuts.ALL, victims_by_numbers=by_numbers)
    hand.plan.session.shortcuts = taken
    hand.take("a-0", "a-1", whole=True)
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == []
    assert hand.homes() == {"asks-0": "n"}


@pytest.mark.usefixtures("_kind")
def test_a_plan_of_which_somebody_is_spared_has_to_be_judged_again_and_no_other():
    running = {"a": (0, "low", [("m", 2)]), "b": (0, "mid", [("m", 2)])}
    for again in (False, True):
        hand = Hand(nodes={"m": 4}, running=running, asks=[(2 if again else 4, ANYWHERE)])
        hand.take("a-0", "b-0")
        hand.place(asks_0="m")
        hand.trim()
        assert hand.plan.is_admitted is not again


@pytest.mark.usefixtures("_kind")
def test_a_plan_that_takes_a_part_of_a_gang_has_to_be_judged_again():
    hand = Hand(nodes={"m": 4}, running={"a": (1, "low", [("m", 2), ("m", 2)])}, asks=[(2, ANYWHERE)])
    hand.take("a-0", "a-1", whole=True)
    hand.place(asks_0="m")
    hand.trim()
    assert len(hand.victims()) == 1
    assert not any(unit.whole for unit in hand.plan.units)
    assert not hand.plan.is_admitted


@pytest.mark.parametrize(("tries", "goes"), [(0, 3), (1, 3), (2, 3), (3, 1)])
def test_no_more_parts_of_gangs_are_tried_than_may_be_and_that_is_told(tries, goes, monkeypatch):
    """Only the third of them is beside the member."""
    monkeypatch.setattr(trimming, "TRIES", tries)
    running = {"a": (1, "low", [("m", 2), ("n", 2), ("n", 2)])}
    hand = Hand(nodes={"m": 2, "n": 4}, running=running, asks=[(2, ONLY_M)])
    hand.take("a-2", "a-1", "a-0", whole=True)
    hand.place(asks_0="m")
    hand.trim()
    assert len(hand.victims()) == goes
    assert (trimming.PARTS in hand.plan.bounds) is (goes == 3)


def test_of_a_gang_no_more_go_than_it_can_spare_though_nobody_of_it_is_left():
    """What its last member takes along is the gang itself; where that is taken apart, it keeps its minimum."""
    running = {"a": (2, "low", [("m", 2)] * 4)}
    hand = Hand(nodes={"m": 8}, running=running, asks=[(6, ANYWHERE)])
    hand.take(*(f"a-{i}" for i in range(4)), whole=True)
    hand.place(asks_0="m")
    hand.trim()
    assert len(hand.victims()) == 4
    assert all(unit.whole for unit in hand.plan.units)
