"""What plugins are asked about victims, and when: in which order those they give come, for how long a tier decides, and which units a tier lets go."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from eviction_hand import ANYWHERE, Hand

from pumice.actions.eviction import units, votes
from pumice.framework.plugin import Plugin

TEXT = """
actions: "preempt"
tiers:
- plugins: [{name: backwards}]
- plugins: [{name: gang, enablePreemptable: false}, {name: predicates}]
"""


class Backwards(Plugin):
    """Gives whom it is asked about from the end, all but so many."""

    name = "backwards"
    points = frozenset({"Preemptable"})
    kept = 0

    def open(self, session):
        session.preemptable.add(lambda _claimant, tasks: list(reversed(tasks))[: len(tasks) - self.kept])


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_victims_are_offered_in_victim_order_in_whichever_order_plugins_name_them(kept, monkeypatch):
    monkeypatch.setattr(Backwards, "kept", kept)
    running = {"a": (0, "mid", [("m", 1)]), "b": (0, "low", [("m", 1), ("m", 1)])}
    hand = Hand(nodes={"m": 3}, running=running, asks=[(1, ANYWHERE)], text=TEXT, plugins=[Backwards])
    record = hand.desk.node("m")
    everybody = hand.rules.in_order(hand.members[0], list(record.tasks.values()))
    assert votes.offered(hand.rules, hand.members[0], record) == everybody[kept:]


# ---- which tier decides


class Asked:
    """Rules by which a tier with the next number decides each time that somebody asks."""

    name = "preempt"
    keeps_gangs = True

    def __init__(self, *, tiers=(1, 1), node_by_node=True, about="claimant", gives=()):
        self.node_by_node, self._about, self._gives = node_by_node, about, gives
        self.asked = []
        self.session = SimpleNamespace(
            cluster=SimpleNamespace(changed=1), shortcuts=SimpleNamespace(deciding_tiers=True)
        )
        self.facts = SimpleNamespace(first_tier_of_several=None)
        self.tiers = [["voter"] * count for count in tiers]

    def extension(self):
        return self

    def asking(self, _claimant, _domain):
        return self._about

    def decided(self, _about, candidates):
        self.asked.append(list(candidates))
        return len(self.asked), []

    def of_tier(self, number, _about, candidates):
        self.asked.append((number, [task.uid for task in candidates]))
        return [task for task in candidates if task.uid in self._gives]

    def in_order(self, _claimant, candidates):
        return list(candidates)

    def candidates(self, _claimant, _domain):
        return ["everybody"]

    def may_go(self, _claimant, task):
        return not task.kept

    def sources(self, _claimant):
        return self.jobs


def test_which_tier_decides_about_a_node_is_asked_again_when_something_has_moved_unless_somebody_goes_there():
    rules = Asked()
    known = votes.Votes(rules, None)
    assert [known.tier("member", 0, ["x"], begun=False) for _ in range(2)] == [1, 1]
    rules.session.cluster.changed += 1
    assert [known.tier("member", row, ["x"], begun=True) for row in (0, 0)] == [1, 1]
    assert [known.tier("member", row, ["x"], begun=False) for row in (0, 0, 1, 0)] == [2, 2, 3, 2]
    assert rules.asked == [["x"]] * 3


def test_in_gang_forms_one_tier_decides_about_all_nodes_and_is_asked_about_everybody():
    rules = Asked(node_by_node=False)
    known = votes.Votes(rules, None)
    assert [known.tier("member", row, ["x"], begun=False) for row in (0, 1)] == [1, 1]
    assert rules.asked == [["everybody"]]


@pytest.mark.parametrize(
    ("tiers", "node_by_node", "decides"), [((0, 2), False, 1), ((0, 2), True, 1), ((1, 1), False, 1)]
)
def test_the_only_tier_that_votes_decides_in_gang_forms_without_being_asked(tiers, node_by_node, decides):
    rules = Asked(tiers=tiers, node_by_node=node_by_node)
    assert votes.Votes(rules, None).tier("member", 0, ["x"], begun=False) == decides
    assert bool(rules.asked) is (node_by_node or tiers == (1, 1))


def test_no_tier_decides_for_whom_nobody_can_be_asked():
    rules = Asked(about=None)
    known = votes.Votes(rules, None)
    assert known.tier("member", 0, ["x"], begun=False) == -1
    assert known.ask_tier(0, "member", ["x"]) == []
    assert votes.ask(rules, "member", ["x"]) == []
    assert rules.asked == []


def task(uid, *, row=0, kept=False):
    node = None if row is None else SimpleNamespace(row=row)
    return SimpleNamespace(uid=uid, node=node, kept=kept, job=None)


@pytest.mark.parametrize(
    ("gives", "rows", "found", "asked"),
    [
        ({"b"}, None, True, ["a", "b"]),
        ({"c"}, None, True, ["a", "b", "c"]),
        ({"none"}, None, False, ["a", "b", "c"]),
        ({"waits", "kept"}, None, False, ["a", "b", "c"]),
        ({"a", "b"}, [1], False, ["c"]),
        ({"c"}, [1, 7], True, ["c"]),
        ({"c"}, [], False, []),
    ],
)
def test_whether_a_tier_gives_anybody_of_a_domain_is_asked_of_each_who_is_there_and_may_go(gives, rows, found, asked):
    rules = Asked(gives=gives)
    tasks = [task("waits", row=None), task("a"), task("kept", kept=True), task("b"), task("c", row=1)]
    rules.jobs = [SimpleNamespace(tasks={each.uid: each for each in tasks})]
    domain = None if rows is None else SimpleNamespace(rows=SimpleNamespace(tolist=lambda: rows))
    assert votes.Votes(rules, domain).gives_somebody(4, "member") is found
    assert rules.asked == [(4, [uid]) for uid in asked]


# ---- which units it lets go


@pytest.mark.parametrize(
    ("going", "gives", "lets"),
    [
        ([("a", "")], "a", True),
        ([("a", "")], "", False),
        ([("a", ""), ("b", "")], "ab", True),
        ([("a", ""), ("b", "")], "a", False),
        ([("ab", "whole")], "ab", True),
        ([("ab", "whole")], "a", False),  # the job would keep its minimum without that one
        ([("ab", "whole"), ("c", "")], "abc", True),
        ([("ab", "whole"), ("c", "")], "ab", False),
        ([("abc", "whole")], "ab", True),  # that breaks it, so that the rest goes too
        ([("abc", "whole")], "c", False),
        ([("abc", "whole")], "", False),
        ([("ax", "whole")], "a", False),  # of two one is here, which the job can spare
        ([("abx", "whole")], "ab", True),
        ([("ab", "")], "a", False),
        ([("ab", "jobless")], "ab", True),
        ([("abc", "jobless")], "ab", False),
    ],
)
def test_a_tier_lets_units_go_if_it_gives_all_of_them_or_so_many_that_their_job_cannot_stay(
    going, gives, lets, monkeypatch
):
    """Here is everybody but x."""
    monkeypatch.setattr(units, "keeps_its_minimum", lambda _, without: len(without) < 2)
    rules, made = Asked(gives=set(gives)), []
    for uids, kind in going:
        tasks = [task(uid) for uid in uids]
        for each in tasks:
            each.job = None if kind == "jobless" else "job"
        made.append(SimpleNamespace(tasks=tasks, whole=bool(kind)))
    asked = [each for unit in made for each in unit.tasks if each.uid != "x"]
    assert votes.Votes(rules, None).give(0, "member", asked, made) is lets
