"""Bundles of the gang forms: into what a job is cut, which bundles come first, and what a plan made of them holds."""

from __future__ import annotations

import pytest
from eviction_hand import ANYWHERE, PREEMPT, Hand

from builders import metadata
from pumice.actions.eviction import bundles, gang_rules
from pumice.actions.eviction.settings import Asked

TEXT = PREEMPT.replace('"preempt"', '"gangpreempt"')
X = {"labels": {"app": "x"}}


def budget(allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata("x", "a"), "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed},
    }


def hand_of(running, asked, *, nodes=None, **more):
    nodes = nodes or {"m": sum(cpu for _, _, pods in running.values() for on, cpu, *_ in pods if on == "m")}
    more.setdefault("form", gang_rules.GangPreempt)
    return Hand(nodes=nodes, running=running, asks=[(asked, ANYWHERE)], **{"text": TEXT, **more})


def proposed(hand):
    """Give the units of each proposal: who goes, and whether that is a whole job, breaks a gang and ends a job."""
    found = []
    wanted = hand.wanted(lambda: len(hand.plan.members) == 1)
    for _ in bundles.Bundles(hand.plan.session, hand.rules).proposals(hand.plan, wanted):
        assert not hand.plan.is_admitted
        assert len(hand.plan.members) == 1
        found.append(
            sorted((sorted(t.name for t in unit.tasks), unit.whole, unit.breaks, unit.ends) for unit in hand.plan.units)
        )
    assert not hand.plan.units
    assert not hand.plan.members
    return found


@pytest.mark.parametrize(
    ("least", "pods", "asked", "units"),
    [
        (0, 1, 1, [(["a-0"], False, False, False)]),
        (2, 2, 1, [(["a-0", "a-1"], True, True, True)]),
        (1, 1, 1, [(["a-0"], True, False, True)]),
        (3, 2, 1, [(["a-0", "a-1"], True, False, False)]),  # what is left of a gang
        (2, 3, 1, [(["a-2"], False, False, False)]),
        (2, 3, 2, [(["a-0", "a-1"], True, True, True), (["a-2"], False, False, False)]),
    ],
)
def test_a_job_is_cut_into_pods_that_it_can_spare_and_all_others_together(least, pods, asked, units):
    hand = hand_of({"a": (least, "low", [("m", 1)] * pods)}, asked)
    assert proposed(hand) == [units]


def test_what_breaks_no_gang_goes_first_and_nobody_more_important_than_it_takes():
    running = {"b": (2, "low", [("m", 1)] * 2), "a": (0, "low", [("m", 1)]), "c": (0, "mid", [("m", 1)])}
    hand = hand_of(running, 1)
    assert [[unit[0] for unit in each] for each in proposed(hand)] == [[["a-0"]], [["a-0"]]]
    both = hand_of({name: running[name] for name in "ac"}, 2)
    assert [[unit[0] for unit in each] for each in proposed(both)] == [[["a-0"], ["c-0"]]]
    left = hand_of({"b": (3, "low", [("m", 1)] * 2), "d": (2, "low", [("m", 1)] * 2)}, 1)
    assert [[unit[0] for unit in each] for each in proposed(left)] == [[["b-0", "b-1"]]]


def test_nothing_is_proposed_where_members_do_not_fit_though_there_is_enough_in_sum():
    hand = hand_of({"a": (0, "low", [("m", 1), ("n", 1)])}, 2, nodes={"m": 1, "n": 1})
    assert proposed(hand) == []


def test_of_what_a_job_can_spare_those_go_that_are_where_members_fit():
    """The last of them, who would go first, is on a node that is too small; another is on one that is gone."""
    running = {"a": (2, "low", [("m", 2), ("m", 2), ("n", 1)]), "lost": (0, "low", [("gone", 2)])}
    hand = hand_of(running, 2, nodes={"m": 4, "n": 1})
    assert proposed(hand)[0][0][0] == ["a-1"]


@pytest.mark.parametrize(("least", "pods", "goes"), [(2, 2, False), (3, 2, True), (2, 3, True)])
def test_where_jobs_must_not_go_whole_only_what_is_spared_or_left_of_them_goes(least, pods, goes):
    form = lambda session: gang_rules.GangPreempt(session, Asked(allows_whole=False))  # noqa: E731  as a class would be
    hand = hand_of({"a": (least, "low", [("m", 1)] * pods)}, 1, form=form)
    assert bool(proposed(hand)) is goes


@pytest.mark.parametrize("text", [TEXT, f"compatibility: volcano\n{TEXT}"])
def test_a_gang_of_which_one_must_stay_does_not_go(text):
    hand = hand_of({"a": (2, "low", [("m", 1)] * 2)}, 1, text=text)
    hand.desk.task("a-1").preemptable = False
    assert proposed(hand) == []
    other = hand_of({"a": (2, "low", [("m", 1)] * 2)}, 1, text=text)
    other.plan.excluded[other.desk.task("a-1").uid] = None
    assert proposed(other) == []


def test_a_job_that_must_not_go_entirely_gives_what_it_can_spare():
    hand = hand_of({"a": (2, "low", [("m", 1)] * 3)}, 2)
    uids = frozenset(hand.desk.task(f"a-{i}").uid for i in range(3))
    hand.plan.kept[uids] = None
    assert proposed(hand) == []
    less = hand_of({"a": (2, "low", [("m", 1)] * 3)}, 1)
    less.plan.kept[uids] = None
    assert proposed(less) == [[(["a-2"], False, False, False)]]


@pytest.mark.parametrize(("asked", "units"), [(3, [["a-0"], ["y-0"], ["z-0"]]), (4, None)])
def test_a_gang_that_a_budget_would_leave_in_part_stays_whole(asked, units):
    """The budget allows one of them to go; that is used up when it comes to the one that the gang could spare."""
    text = TEXT.replace("{name: conformance}", "{name: pdb}")
    single = {name: (0, "low", [("m", 1)]) for name in "ay"}
    running = {"g": (2, "low", [("m", 1), ("m", 1), ("m", 1, X)]), **single, "z": (0, "low", [("m", 1, X)])}
    hand = hand_of(running, asked, text=text, also=[budget(1)])
    found = [[unit[0] for unit in each] for each in proposed(hand)]
    assert found == ([] if units is None else [units])
