"""Every combination of few units, proposed one after the other: which of them are plans, and what such a plan holds."""

from __future__ import annotations

import pytest
from eviction_hand import ANYWHERE, PREEMPT, Hand

from builders import group, metadata, pod
from pumice.actions.eviction import exhaustive, gang_rules, ways
from pumice.model.statuses import Status

ONLY_M = {"nodeSelector": {"is": "m"}}
ONLY_N = {"nodeSelector": {"is": "n"}}
GANGS = PREEMPT.replace('"preempt"', '"gangpreempt"')


def proposed(hand, done):
    """Give the victims and the homes of each proposal."""
    found = []
    for _ in exhaustive.EverySet(hand.rules).proposals(hand.plan, hand.wanted(done)):
        assert all(member.status is Status.PIPELINED for member in hand.plan.members)
        found.append((hand.victims(), hand.homes()))
    assert not hand.plan.members
    assert not hand.plan.units
    return found


def test_no_combination_is_proposed_in_which_members_have_no_room():
    """There is enough of it in sum, on two nodes."""
    running = {"a": (0, "low", [("m", 1)]), "b": (0, "low", [("n", 1)])}
    form = gang_rules.GangPreempt
    hand = Hand(nodes={"m": 1, "n": 1}, running=running, asks=[(2, ANYWHERE)], text=GANGS, form=form)
    assert proposed(hand, lambda: True) == []


@pytest.mark.parametrize("every_way", [0, ways.MOST])
@pytest.mark.parametrize("form", [gang_rules.GangPreempt, None])
def test_no_combination_is_proposed_in_which_unequal_members_have_no_room(form, every_way, monkeypatch):
    monkeypatch.setattr(ways, "MOST", every_way)
    running = {"a": (0, "low", [("m", 2)]), "b": (0, "low", [("n", 1)])}
    more = {"form": form, "text": GANGS} if form else {}
    hand = Hand(nodes={"m": 2, "n": 1}, running=running, asks=[(1, ANYWHERE), (2, ONLY_N)], **more)
    assert proposed(hand, lambda: len(hand.plan.members) == 2) == []


@pytest.mark.parametrize("every_way", [0, ways.MOST])
@pytest.mark.parametrize("form", [gang_rules.GangPreempt, None])
def test_no_combination_is_proposed_in_which_one_member_is_always_in_the_way_of_the_other(form, every_way, monkeypatch):
    monkeypatch.setattr(ways, "MOST", every_way)
    running = {"a": (0, "low", [("m", 2)]), "b": (0, "low", [("n", 1)])}
    more = {"form": form, "text": GANGS} if form else {}
    hand = Hand(nodes={"m": 2, "n": 1}, running=running, asks=[(2, ANYWHERE), (1, ONLY_M)], **more)
    assert proposed(hand, lambda: len(hand.plan.members) == 2) == []


@pytest.mark.parametrize(("allowed", "found"), [(1, 0), (2, 1)])
def test_no_combination_is_proposed_that_breaks_a_budget(allowed, found):
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata("x", "a"), "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    form, text = gang_rules.GangPreempt, GANGS.replace("{name: conformance}", "{name: pdb}")
    hand = Hand(nodes={"m": 2}, running={}, asks=[(2, ANYWHERE)], also=[budget], text=text, form=form)
    hand.desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    hand.desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m", labels={"app": "x"}) for i in range(2)))
    hand.desk.session()
    assert len(proposed(hand, lambda: True)) == found


@pytest.mark.parametrize("every_way", [0, ways.MOST])
def test_whoever_was_in_the_way_of_another_member_is_placed_elsewhere_and_listed_once(every_way, monkeypatch):
    """The first takes the only node where the second may go; so it does when the largest comes first."""
    monkeypatch.setattr(ways, "MOST", every_way)
    running = {"a": (0, "low", [("m", 1), ("n", 1)])}
    for asks in ([(1, ANYWHERE), (1, ONLY_M)], [(1, ONLY_M), (1, ANYWHERE)]):
        hand = Hand(nodes={"n": 1, "m": 1}, running=running, asks=asks)
        (victims, homes), *_ = proposed(hand, lambda hand=hand: len(hand.plan.members) == 2)
        assert victims == ["a-0", "a-1"]
        bound = next(f"asks-{i}" for i, (_, told) in enumerate(asks) if told)
        assert len(homes) == 2
        assert homes[bound] == "m"


def test_where_nodes_are_asked_one_by_one_somebody_goes_only_beside_a_member():
    """There is room for one without any victim; where both are proposed to go, both members are in their places."""
    running = {"a": (0, "low", [("m", 1)]), "b": (0, "low", [("n", 1)])}
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": "is", "operator": "In", "values": ["free"]}]}}
    likes = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}
    hand = Hand(nodes={"free": 1, "m": 1, "n": 1}, running=running, asks=[(1, likes), (1, likes)])
    found = proposed(hand, lambda: len(hand.plan.members) == 2)
    assert [(victims, sorted(homes.values())) for victims, homes in found] == [
        (["b-0"], ["free", "n"]),
        (["a-0"], ["free", "m"]),
        (["a-0", "b-0"], ["m", "n"]),
    ]
