"""Single steps of a plan: which tier is asked with what gone, what is let go whole, where members are placed without victims, and what stays if that fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from eviction_hand import ANYWHERE, PREEMPT, Hand

from builders import group, metadata, pod
from pumice.actions.eviction import gang_rules, plan, rules
from pumice.model.statuses import Status

GANGS = PREEMPT.replace('"preempt"', '"gangpreempt"')
RECLAIM = PREEMPT.replace('"preempt"', '"reclaim"')
ONLY_M = {"nodeSelector": {"is": "m"}}
ONLY_N = {"nodeSelector": {"is": "n"}}
RUNNING = {"a": (2, "low", [("m", 1), ("m", 1)]), "b": (0, "low", [("n", 1), ("n", 1)])}


def hand(asks=1, **more):
    return Hand(nodes={"m": 2, "n": 2}, running=RUNNING, asks=[(1, ANYWHERE)] * asks, **more)


# ---- what was said stays said


@pytest.mark.parametrize(
    ("form", "text", "gone", "begun"),
    [
        (rules.Preempt, PREEMPT, [], [False, False]),
        (rules.Preempt, PREEMPT, ["a-0"], [True, False]),
        (rules.Preempt, PREEMPT, ["b-0"], [False, True]),
        (rules.Preempt, PREEMPT, ["a-1", "b-0"], [True, True]),
        (gang_rules.GangPreempt, GANGS, [], [False, False]),
        (gang_rules.GangPreempt, GANGS, ["a-0"], [True, True]),
    ],
)
def test_once_somebody_goes_from_a_node_or_in_gang_forms_anywhere_the_tier_stays(form, text, gone, begun):
    made = hand(form=form, text=text)
    made.take(*gone)
    made.plan.votes = SimpleNamespace(tier=lambda _member, _row, _candidates, *, begun: begun)
    rows = [made.desk.node(name).row for name in "mn"]
    assert [made.plan.tier(made.members[0], row, ()) for row in rows] == begun


# ---- gangs


@pytest.mark.parametrize(
    ("gone", "whole"), [([], True), (["a-0"], False), (["a-0", "a-1"], True), (["b-0"], True), (["b-0", "a-1"], False)]
)
def test_gangs_are_left_whole_if_each_that_loses_a_pod_has_its_minimum_or_nobody_left(gone, whole):
    made = hand()
    made.take(*gone)
    assert made.plan.leaves_gangs_whole(made.plan.units) is whole
    made.plan.gangs = False
    assert made.plan.leaves_gangs_whole(made.plan.units) is True


def test_the_claimant_s_own_gang_may_lose_members():
    made = hand(asks=2)
    made.desk.feed(pod("own", "asks", node="m"))
    made.desk.apply()
    made.take("own")
    assert made.plan.leaves_gangs_whole(made.plan.units)


# ---- placing


def test_a_member_is_known_to_be_taken_for_and_one_that_is_refused_is_none():
    made = hand(asks=2)
    first, second = made.members
    alone = made.unit("b-0")
    assert made.plan.add_step(first, made.desk.node("n").row, [alone])
    assert made.plan.taken_for(alone) is first
    assert made.plan.taken_for(made.unit("b-1")) is None
    made.plan.statement = SimpleNamespace(pipeline=lambda *_, **__: 0)
    assert made.plan.settle(second, made.desk.node("n").row) is False
    assert made.plan.members == [first]


@pytest.mark.parametrize(
    ("form", "text", "admitted"), [(rules.Preempt, PREEMPT, True), (rules.Reclaim, RECLAIM, False)]
)
def test_where_a_queue_must_be_let_take_each_member_is_judged_even_if_it_needs_nobody_to_go(form, text, admitted):
    made = Hand(nodes={"m": 2}, running={}, asks=[(1, ANYWHERE)], form=form, text=text)
    assert made.plan.is_admitted
    assert made.plan.place_freely(made.members[0])
    assert made.plan.is_admitted is admitted


def test_where_nodes_are_sampled_a_member_without_room_is_looked_for_again(monkeypatch):
    made = hand()
    found = [[], [made.desk.node("n").row]]
    monkeypatch.setattr(plan.selection, "choose", lambda *_, **__: found.pop(0))
    made.plan.session.evaluator.sampler = object()
    made.take("b-0")
    assert not made.plan.place_freely(made.members[0])
    assert made.plan.place_freely(made.members[0])


def test_room_that_is_being_left_is_room_for_several_at_once():
    old = [group("old", 0, phase="Running"), pod("old", "old", cpu="3", node="m", deleting=1)]
    made = Hand(nodes={"m": 3}, running={}, asks=[(1, ANYWHERE)] * 3, also=old)
    enough = lambda: len(made.plan.members) == 3  # noqa: E731  what the plan is for
    assert made.plan.arrange_in_order(made.members, enough)
    assert made.homes() == dict.fromkeys(("asks-0", "asks-1", "asks-2"), "m")


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_members_that_are_alike_are_placed_as_far_as_there_is_room(number):
    made = Hand(nodes={"m": 1, "n": 2}, running={}, asks=[(1, ANYWHERE)] * 4)
    placed = made.plan.arrange_in_order(made.members, lambda: len(made.plan.members) == number)
    assert placed is (number <= 3)
    assert len(made.plan.members) == min(number, 3)
    made.plan.give_up()
    assert all(member.node is None for member in made.members)


@pytest.mark.parametrize("way", ["arrange", "arrange_enough"])
@pytest.mark.parametrize("small", [True, False])
def test_of_few_members_every_way_is_tried_and_what_was_tried_before_is_undone(way, small, monkeypatch):
    """The first takes the only node where the second may go."""
    if not small:
        monkeypatch.setattr(plan, "SMALL", 0)
    made = Hand(nodes={"m": 1, "n": 1}, running={}, asks=[(1, ANYWHERE), (1, ONLY_M)])
    asked = [made.members] if way == "arrange" else [made.members, lambda: len(made.plan.members) == 2]
    assert getattr(made.plan, way)(*asked) is small
    if small:
        assert sorted(made.homes().items()) == [("asks-0", "n"), ("asks-1", "m")]
        assert len(made.plan.members) == 2


def test_members_of_one_kind_are_tried_in_one_way_alone(monkeypatch):
    made = Hand(nodes={"m": 1}, running={}, asks=[(1, ANYWHERE), (1, ANYWHERE)])
    monkeypatch.setattr(plan, "Ways", None)  # nobody tries others
    assert not made.plan.arrange_enough(made.members, lambda: len(made.plan.members) == 2)


def test_what_is_arranged_for_later_members_leaves_those_before_where_they_are():
    made = Hand(nodes={"m": 1, "n": 2}, running={}, asks=[(1, ANYWHERE), (1, ANYWHERE), (1, ONLY_N)])
    made.place(asks_0="m")
    assert made.plan.arrange(made.members[1:])
    assert made.homes() == {"asks-0": "m", "asks-1": "n", "asks-2": "n"}
    assert made.plan.units == []


HARD = {"mode": "hard", "highestTierAllowed": 1}


@pytest.mark.parametrize(
    ("more", "sampled", "asked"),
    [({}, False, [3]), ({"networkTopology": HARD}, False, [1, 1, 1]), ({}, True, [1, 1, 1])],
)
def test_members_are_chosen_for_together_unless_where_one_is_decides_where_others_may_be(
    more, sampled, asked, monkeypatch
):
    made = Hand(nodes={"m": 3}, running={}, asks=[(1, ANYWHERE)] * 3, **more)
    counts = []

    def choose(_evaluation, _table, count, **_):
        counts.append(count)
        return [made.desk.node("m").row] * count

    monkeypatch.setattr(plan.selection, "choose", choose)
    if sampled:
        made.plan.session.evaluator.sampler = object()
    assert made.plan.arrange_in_order(made.members, lambda: len(made.plan.members) == 3)
    assert counts == asked


def rack(*nodes):
    """A hyper-node of some nodes."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in nodes]
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata("rack")}
    return {**made, "spec": {"tier": 1, "members": members}}


@pytest.mark.parametrize("finds", [True, False])
def test_members_are_arranged_as_allocate_would_and_nothing_is_said_about_it(finds, monkeypatch):
    """One of them waits already; the rack is smaller than the cluster."""
    made = Hand(
        nodes={"m": 3, "n": 2 if finds else 1, "o": 9},
        running={},
        asks=[(1, ANYWHERE), (2, ANYWHERE), (2, ANYWHERE)],
        more=", {name: network-topology-aware}",
        also=[rack("m", "n")],
        networkTopology=HARD,
    )
    session, said = made.plan.session, {}
    place = plan.inside_domains.place

    def talking(turn, tasks):
        session.findings.journal.put(said, "why", "not")
        return place(turn, tasks)

    monkeypatch.setattr(plan.inside_domains, "place", talking)
    made.place(asks_0="m")
    assert made.plan.arrange_anywhere(made.members) is finds
    assert said == {}
    assert session.findings.journal.depth == 0
    homes = {"asks-0": "m", "asks-1": "m", "asks-2": "n"} if finds else {"asks-0": "m"}
    assert sorted(made.homes().values()) == sorted(homes.values())
    assert [member.name for member in made.plan.members] == sorted(homes)
    assert all((member.status is Status.PIPELINED) is (member.name in homes) for member in made.members)


@pytest.mark.parametrize(("cpu", "placed"), [(4, ["asks-0", "asks-1"]), (2, ["asks-0", "asks-1"]), (1, [])])
def test_as_many_sub_groups_are_arranged_whole_as_must_start(cpu, placed):
    policy = {"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"]}
    asks = [(1, {"labels": {"part": part}}) for part in "aabb"]
    made = Hand(nodes={"m": cpu}, running={}, asks=asks, minimum=2, subGroupPolicy=[policy])
    assert len(made.members[0].job.sub_jobs) == 2
    assert made.plan.arrange_in_order(made.members, lambda: False) is bool(placed)
    assert sorted(made.homes()) == placed


@pytest.mark.parametrize("ends", [False, True])
def test_nothing_stays_of_a_plan_that_starts_again_or_is_given_up(ends):
    made = hand(asks=2)
    before = made.statuses()
    made.take("b-0", "b-1")
    made.place(asks_0="n", asks_1="n")
    made.plan.is_trimmed, made.plan.is_admitted = True, False
    (made.plan.give_up if ends else made.plan.start_again)()
    assert made.statuses() == before
    assert (made.plan.members, made.plan.units) == ([], [])
    if not ends:
        assert (made.plan.is_trimmed, made.plan.is_admitted) == (False, True)
