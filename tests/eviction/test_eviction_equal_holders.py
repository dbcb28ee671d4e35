"""Holders that are alike: who is asked about by himself, of whom one stands for all, and when nobody does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from builders import Desk, group, node, pod, priority_class
from pumice.actions.eviction.equal_holders import EqualHolders
from pumice.framework import independence
from pumice.framework.reads import NOTHING

CONFIG = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}]
"""
CRITICAL = {"priorityClassName": "system-node-critical"}


def voters(*tiers, final_veto=False, blind=True):
    """Rules by which so many functions vote about victims in each tier."""
    extension = SimpleNamespace(
        tiers=[[SimpleNamespace(reads=NOTHING)] * count for count in tiers], final_veto=final_veto
    )
    return SimpleNamespace(is_blind=blind, name="preempt", facts=independence.Victims(extension, []))


class Held:
    """Pods that hold room, each the only one of its job: three alike, one of another shape, and two that are protected."""

    def __init__(self, rules, *, of_kind=None, yes=()):
        self.desk = Desk(CONFIG).feed(node("m", "64"), priority_class("system-node-critical", 9), group("asks", 1))
        kinds = {"a": {}, "b": {}, "c": {}, "large": {"cpu": "2"}, "x": CRITICAL, "y": CRITICAL}
        for name, spec in kinds.items():
            self.desk.feed(group(name, 1), pod(name, name, node="m", **{"cpu": "1", **spec}))
        self.desk.feed(pod("asks", "asks", cpu="1"))
        self.asked, self.of_kind, self.yes = [], [], yes
        self.session = session = self.desk.session()
        ask = self._ask  # a question is known by who it is
        kind = ask if of_kind is None else self._of_kind(of_kind)
        self.holders = EqualHolders(session, rules, self.desk.task("asks"), ask, kind)

    def _ask(self, _session, _rules, _claimant, tasks):
        self.asked.append(tasks[0].name)
        return tasks[0].name in self.yes

    def _of_kind(self, answer):
        def asked(_session, _rules, _claimant, tasks):
            self.of_kind.append(tasks[0].name)
            return answer

        return asked

    def could(self, *names):
        return [self.holders.could_be_evicted([self.desk.task(name)]) for name in names]

    def safe(self, *names):
        return self.holders.are_safe([self.desk.task(name) for name in names])


@pytest.mark.parametrize("goes", [True, False])
def test_one_of_each_kind_is_asked_about_and_stands_for_the_others(goes):
    held = Held(voters(2), yes=["a"] if goes else [])
    assert held.could("a", "b", "large", "c", "large") == [goes, goes, False, goes, False]
    assert held.asked == ["a", "large"]


@pytest.mark.parametrize(
    ("rules", "together"),
    [
        (voters(1), True),
        (voters(2), True),
        (voters(0, 2, 0), True),
        (voters(), True),
        (voters(0), True),
        (voters(3), False),  # two may agree on nobody and the third decide alone
        (voters(1, 1), False),  # the second decides where the first gives nobody
        (voters(3, final_veto=True), True),
        (voters(1, 1, final_veto=True), True),
        (voters(2, blind=False), False),  # somebody knows who a job is
        (voters(3, final_veto=True, blind=False), False),
    ],
)
def test_who_could_be_outvoted_or_is_known_by_more_than_numbers_is_asked_about_alone(rules, together):
    held = Held(rules, yes="ab")
    assert held.could("a", "b", "c") == ([True] * 3 if together else [True, True, False])
    assert held.asked == (["a"] if together else ["a", "b", "c"])
    assert not Held(rules).safe("a", "b") or together


def test_whose_kind_may_be_offered_is_asked_about_alone():
    held = Held(voters(2), of_kind=True, yes="a")
    assert held.could("a", "b", "c") == [True, False, False]
    assert (held.of_kind, held.asked) == (["a"], ["a", "b", "c"])


def test_nobody_is_asked_about_whose_kind_is_not_even_offered():
    held = Held(voters(2), of_kind=False, yes="ab")
    assert held.could("a", "b") == [False, False]
    assert (held.of_kind, held.asked) == (["a"], [])


@pytest.mark.parametrize(
    ("names", "yes", "asked"),
    [
        ("abc", "", ["a"]),
        ("abc", "a", ["a"]),
        ("xab", "", ["a"]),  # whoever is protected says nothing of the others
        ("xab", "a", ["a"]),
        ("xy", "xy", []),
    ],
)
def test_equal_holders_are_safe_if_one_is_that_nothing_protects(names, yes, asked):
    held = Held(voters(2), yes=yes)
    assert held.safe(*names) == (not asked or not yes)
    assert held.asked == asked


def test_a_protected_holder_is_of_another_kind_than_one_that_is_not():
    held = Held(voters(2), yes="a")
    assert held.could("a", "x", "y") == [True, False, False]
    assert held.asked == ["a", "x"]


@pytest.mark.parametrize(
    ("about", "asked", "safe"),
    [("asks", ["a", "b", "c"], False), ("a", ["a", "b"], False), ("b", ["a"], True), ("large", ["a"], True)],
)
def test_what_was_found_out_while_a_plugin_broke_down_about_one_of_the_two_says_nothing_of_equals(about, asked, safe):
    goes, stays = Held(voters(2), yes="abc"), Held(voters(2))
    for held in (goes, stays):
        held.session.breakdowns.blamed[held.desk.task(about).job_key] = "it broke down"
    assert goes.could("a", "b", "c") == [True, True, True]
    assert goes.asked == asked
    assert stays.safe("a", "b", "c") is safe


def test_holders_are_asked_about_alone_where_somebody_beside_them_is_spared_for_a_while():
    held = Held(voters(2), yes="ab")
    held.desk.task("x").eviction_refused = held.desk.now
    held.desk.cluster.evictions_refused += 1
    assert held.could("a", "b", "c") == [True, True, False]
    assert held.asked == ["a", "b", "c"]
    assert not held.safe("c")
    assert not held.safe("x", "y")  # whoever looks at one asks to be woken when that is over


def test_that_somebody_elsewhere_is_spared_says_nothing_of_holders():
    held = Held(voters(2))
    held.desk.cluster.evictions_refused += 1
    assert held.could("a", "b") == [False, False]
    assert held.asked == ["a"]
    assert held.safe("c")


@pytest.mark.parametrize("more", [{"minTaskMember": {"m": 1}}, {"networkTopology": {"mode": "hard"}}])
def test_holders_whose_job_is_more_than_one_plain_pod_are_asked_about_alone(more):
    held = Held(voters(2), yes=["more"])
    held.desk.feed(group("more", 1, **more), pod("more", "more", node="m", cpu="1", role="m"))
    held.desk.feed(group("pair", 1), *(pod(f"pair-{i}", "pair", node="m", cpu="1") for i in range(2)))
    held.desk.apply()
    assert held.could("a", "more", "pair-0", "more") == [False, True, False, True]
    assert held.asked == ["a", "more", "pair-0", "more"]
    assert not held.safe("pair-0", "pair-1")
