"""The sets of victims on one node: of which units they are made, which are tried, who is known to be refused, and when fewer are tried."""

from __future__ import annotations

import pytest
from eviction_hand import Hand

from builders import group, pod
from pumice.actions.eviction import victim_sets
from pumice.actions.eviction.victim_sets import VictimSets
from pumice.framework.plugin import Plugin

TEXT = """
actions: "preempt"
tiers:
- plugins: [{name: priority}, {name: jealous}]
- plugins: [{name: gang, enablePreemptable: false}, {name: predicates}, {name: nodeorder}]
"""


class Jealous(Plugin):
    """Gives nobody away of those whom the class names."""

    name = "jealous"
    points = frozenset({"Preemptable"})
    kept: frozenset[str] = frozenset()

    def open(self, session):
        session.preemptable.add(lambda _claimant, tasks: [task for task in tasks if task.name not in Jealous.kept])


def sets_of(running, asked, *, nodes=("m",), kept=(), monkeypatch=None, **more):
    """Fill nodes with jobs, each name with its minimum and its pods, and give the sets for a pod that asks."""
    if monkeypatch is not None:
        monkeypatch.setattr(Jealous, "kept", frozenset(kept))
    sizes = {name: sum(cpu for _, _, pods in running.values() for on, cpu in pods if on == name) for name in nodes}
    hand = Hand(nodes=sizes, running=running, asks=[(asked, more)], text=TEXT, plugins=[Jealous])
    return hand, VictimSets(hand.plan, hand.members[0], None, {})


def names(found):
    return None if found is None else sorted(task.name for unit in found[1] for task in unit.tasks)


@pytest.mark.parametrize(
    ("least", "pods", "units"),
    [
        (0, 2, [1, 1]),
        (1, 2, [1, 1, 2]),
        (2, 2, [2]),
        (2, 3, [1, 1, 1, 3]),
        (1, 1, [1]),
        (3, 3, [3]),
        (4, 3, [3]),
    ],
)
def test_pods_that_a_job_can_spare_go_one_by_one_and_all_of_them_as_a_whole_if_it_cannot_spare_so_many(
    least, pods, units
):
    hand, sets = sets_of({"a": (least, "low", [("m", 1)] * pods)}, 1)
    row = hand.desk.node("m").row
    choices = sets.choices(sets.in_order(row), row)
    assert sorted(choice.count for choice in choices) == units
    assert [choice.unit.whole for choice in choices if choice.count > 1] == [True] * (units[-1] > 1)


def test_who_is_refused_alone_is_remembered_and_is_in_no_other_set(monkeypatch):
    running = {name: (0, "low", [("m", 1)]) for name in "abc"}
    hand, sets = sets_of(running, 2, kept=["c-0"], monkeypatch=monkeypatch)
    tried, lets = [], sets.door.lets

    def noted(going, ordered, row):
        tried.append(sorted(task.name for unit in going for task in unit.tasks))
        return lets(going, ordered, row)

    sets.door.lets = noted
    assert names(sets.cheapest(hand.desk.node("m").row)) == ["a-0", "b-0"]
    assert [task.name for unit in sets.refused.values() for task in unit.tasks] == ["c-0"]
    assert sum("c-0" in each for each in tried) == 1


def test_pods_that_must_not_go_together_do_not(monkeypatch):
    running = {name: (0, "low", [("m", 1)]) for name in "abc"}
    hand, sets = sets_of(running, 2, monkeypatch=monkeypatch)
    row = hand.desk.node("m").row
    first = names(sets.cheapest(row))
    hand.plan.kept[frozenset(hand.desk.task(name).uid for name in first)] = None
    other = names(sets.cheapest(row))
    assert len(other) == 2
    assert other != first


@pytest.mark.parametrize(
    ("vain", "helped", "told"), [(1, False, "CUT_SHORTER"), (1, True, "CUT_SHORT"), (2, False, "CUT_SHORT")]
)
def test_fewer_sets_are_tried_after_many_nodes_on_which_nobody_helped(vain, helped, told, monkeypatch):
    for name, value in (("MANY_IN_VAIN", vain), ("TRIES", 1), ("FEW_TRIES", 0)):
        monkeypatch.setattr(victim_sets, name, value)
    running = {f"{name}{i}": (0, "low", [(name, 1)]) for name in "mn" for i in range(4)}
    kept = [f"n{i}-0" for i in range(4)] + ([] if helped else [f"m{i}-0" for i in range(4)])
    hand, sets = sets_of(running, 2, nodes="mn", kept=kept, monkeypatch=monkeypatch)
    assert (sets.cheapest(hand.desk.node("m").row) is not None) is helped
    hand.plan.bounds.clear()
    assert sets.cheapest(hand.desk.node("n").row) is None
    assert list(hand.plan.bounds) == [getattr(victim_sets, told)]


def test_where_sets_are_taken_in_order_lower_pods_go_before_others_and_no_gang_before_there_is_need(monkeypatch):
    monkeypatch.setattr(victim_sets, "TRIES", 0)
    running = {
        "a": (2, "low", [("m", 1), ("m", 1)]),
        "b": (0, "low", [("m", 1)]),
        "c": (0, "mid", [("m", 2)]),
    }
    for asked, goes in (
        (1, ["b-0"]),
        (3, ["a-0", "a-1", "b-0"]),
        (2, ["a-0", "a-1"]),
        (5, ["a-0", "a-1", "b-0", "c-0"]),
    ):
        hand, sets = sets_of(running, asked, monkeypatch=monkeypatch)
        assert names(sets.cheapest(hand.desk.node("m").row)) == goes


def test_whoever_is_not_needed_is_given_back_however_many_were_taken_in_order(monkeypatch):
    """The small ones go first, as they are the least important; then the large one is enough alone."""
    monkeypatch.setattr(victim_sets, "TRIES", 0)
    running = {f"a{i}": (0, "low", [("m", 1)]) for i in range(6)} | {"z": (0, "mid", [("m", 7)])}
    hand, sets = sets_of(running, 7, monkeypatch=monkeypatch)
    assert names(sets.cheapest(hand.desk.node("m").row)) == ["z-0"]


@pytest.mark.parametrize("given", ["a-0", "b-0", "c-0"])
def test_after_as_many_sets_as_are_tried_one_is_taken_in_order_of_those_who_are_given(given, monkeypatch):
    monkeypatch.setattr(victim_sets, "TRIES", 0)
    running = {name: (0, "low", [("m", 1)]) for name in "abc"}
    hand, sets = sets_of(running, 1, kept={"a-0", "b-0", "c-0"} - {given}, monkeypatch=monkeypatch)
    assert names(sets.cheapest(hand.desk.node("m").row)) == [given]


def test_on_a_node_without_enough_nobody_is_found():
    hand, sets = sets_of({"a": (0, "low", [("m", 1)])}, 2)
    assert sets.cheapest(hand.desk.node("m").row) is None
    assert not sets.refused
    _, unoffered = sets_of({"a": (0, "low", [("m", 1)])}, 1, requests={"example/card": "1"})
    assert unoffered.cheapest(hand.desk.node("m").row) is None


def test_who_needs_somebody_to_stay_is_not_given_up_because_it_would_not_fit_with_everybody_gone():
    term = {"topologyKey": "is", "labelSelector": {"matchLabels": {"app": "x"}}}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    hand, sets = sets_of({"a": (0, "low", [("m", 1)])}, 1, affinity=beside)
    hand.desk.feed(group("x", 0, phase="Running", priorityClassName="low"))
    hand.desk.feed(pod("x", "x", cpu="0", node="m", labels={"app": "x"}, created=9))
    hand.desk.apply()
    assert names(sets.cheapest(hand.desk.node("m").row)) == ["a-0"]
