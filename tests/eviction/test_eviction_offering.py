"""Where a member costs least: inside its domain, by what goes, then by the score of the node; and who is placed without an offer, or not at all."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from eviction_hand import ANYWHERE, PREEMPT, Hand

from builders import group, pod
from pumice.actions.eviction import offers
from pumice.actions.eviction.offers import Offers
from pumice.framework.plugin import Plugin
from pumice.framework.subject import Subject

LIKES = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "preference": {"matchExpressions": [{"key": "is", "operator": "In", "values": ["n"]}]}}
            ]
        }
    }
}


def hand_of(ranks, told=ANYWHERE, **more):
    """Fill each node with a pod of a job of some rank."""
    running = {f"on-{name}": (0, rank, [(name, 1)]) for name, rank in ranks.items()}
    return Hand(nodes=dict.fromkeys(ranks, 1), running=running, asks=[(1, told)], **more)


def cheapest(hand):
    found = Offers(hand.plan.session, hand.rules).cheapest(hand.plan, hand.members[0])
    if found is None:
        return None
    return hand.plan.session.cluster.nodes.records[found.row].name, [t.name for u in found.units for t in u.tasks]


@pytest.mark.parametrize(
    ("ranks", "told", "found"),
    [
        ({"m": "low", "n": "mid"}, ANYWHERE, "m"),
        ({"m": "mid", "n": "low"}, ANYWHERE, "n"),
        ({"m": "low", "n": "low"}, ANYWHERE, "m"),  # of equals the first by name
        ({"m": "low", "n": "low"}, LIKES, "n"),  # but for the score
        ({"m": "low", "n": "low", "o": "low"}, LIKES, "n"),
        ({"m": "low", "n": "mid"}, LIKES, "m"),  # which does not count before who goes
        ({"m": "high", "n": "high"}, ANYWHERE, None),
        ({"m": "low"}, {"nodeSelector": {"is": "n"}}, None),
        ({"m": "low"}, {"requests": {"example/card": "1"}}, None),
    ],
)
def test_a_member_goes_where_the_least_important_goes_then_by_score_and_name(ranks, told, found):
    assert cheapest(hand_of(ranks, told)) == (None if found is None else (found, [f"on-{found}-0"]))


class Jealous(Plugin):
    """Gives nobody of one job away."""

    name = "jealous"
    points = frozenset({"Preemptable"})

    def open(self, session):
        session.preemptable.add(lambda _claimant, tasks: [task for task in tasks if task.job.name != "loved"])


@pytest.mark.parametrize(("told", "found"), [(LIKES, "n"), (ANYWHERE, "m")])
def test_of_nodes_that_turn_out_to_cost_the_same_the_score_decides(told, found):
    """One seems to cost less, by a pod that is not given away."""
    running = {"loved": (0, "low", [("m", 1)]), "on-m": (0, "mid", [("m", 1)]), "on-n": (0, "mid", [("n", 1)])}
    text = PREEMPT.replace("{name: conformance}", "{name: jealous}")
    hand = Hand(nodes={"m": 2, "n": 1}, running=running, asks=[(1, told)], text=text, plugins=[Jealous])
    assert cheapest(hand) == (found, [f"on-{found}-0"])


@pytest.mark.parametrize(("inside", "found"), [("n", "n"), ("mn", "m"), ("o", "o"), ("", None)])
def test_a_member_goes_nowhere_outside_its_domain(inside, found):
    hand = hand_of({"m": "low", "n": "mid", "o": "mid"})
    rows = [hand.desk.node(name).row for name in inside]
    hand.plan.domain = SimpleNamespace(rows=np.array(rows, dtype=np.int64))
    assert cheapest(hand) == (None if found is None else (found, [f"on-{found}-0"]))


def test_what_nodes_cost_follows_what_has_happened_on_them():
    hand = hand_of({"m": "low", "n": "low", "o": "mid"})
    known = Offers(hand.plan.session, hand.rules)
    member, rows = hand.members[0], []
    for _ in range(3):
        found = known.cheapest(hand.plan, member)
        rows.append(hand.plan.session.cluster.nodes.records[found.row].name)
        hand.plan.excluded.update(dict.fromkeys(task.uid for unit in found.units for task in unit.tasks))
    assert rows == ["m", "n", "o"]
    assert known.cheapest(hand.plan, member) is None
    hand.plan.excluded.clear()
    assert hand.plan.session.cluster.nodes.records[known.cheapest(hand.plan, member).row].name == "m"


class Placing:
    """A plan that says whether a member is placed without victims, and takes down its steps."""

    def __init__(self, *, free=False):
        self._free, self.steps, self.refusal = free, [], ""
        self.queue = SimpleNamespace(name="q")

    def place_freely(self, _):
        return self._free

    def add_step(self, member, row, units):
        self.steps.append((member, row, units))
        return True


@pytest.mark.parametrize(
    ("options", "placed", "steps", "refusal"),
    [
        ({}, True, [("member", 3, ("unit",))], ""),
        ({"free": True}, True, [], ""),
        ({"free": True, "barred": True, "refused": "no"}, True, [], ""),
        ({"barred": True}, False, [], ""),
        ({"refused": "it has its due"}, False, [], "queue q may not take from others: it has its due"),
        ({"offer": None}, False, [], ""),
    ],
)
def test_a_member_is_placed_for_nothing_or_by_the_cheapest_offer_if_it_may_ask(
    options, placed, steps, refusal, monkeypatch
):
    monkeypatch.setattr(offers, "Subject", lambda *about: about)
    rules = SimpleNamespace(
        facts=SimpleNamespace(
            votes_go_by_priority=True, first_tier_of_several=None, protections_go_by_pod_or_queue=True
        ),
        session=SimpleNamespace(shortcuts=SimpleNamespace(deciding_tiers=False)),
        node_by_node=True,
        keeps_gangs=True,
        may_ask=lambda *_: options.get("refused"),
    )
    session = SimpleNamespace(pre_predicate=lambda _: "barred" if options.get("barred") else None)
    made = Offers(session, rules)
    offer = options.get("offer", SimpleNamespace(row=3, units=("unit",)))
    monkeypatch.setattr(made, "cheapest", lambda *_: offer)
    plan = Placing(free=options.get("free", False))
    assert made.place(plan, "member") is placed
    assert plan.steps == steps
    assert plan.refusal == refusal


def test_all_nodes_are_known_ahead_only_where_a_member_finds_no_room_and_nothing_says_more_of_others():
    taken = hand_of({"m": "low", "n": "low"})
    free = Hand(nodes={"m": 1, "n": 1}, running={"on-m": (0, "low", [("m", 1)])}, asks=[(1, ANYWHERE)])
    term = {"topologyKey": "is", "labelSelector": {"matchLabels": {"app": "x"}}}
    minds = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    minding = hand_of({"m": "low", "n": "low"}, minds)
    inside = hand_of({"m": "low", "n": "low"})
    inside.plan.domain = SimpleNamespace(rows=np.array([0, 1], dtype=np.int64))
    simulated = hand_of({"m": "low", "n": "low"})
    simulated.rules.simulation = object()
    leaving = [group("old", 0, phase="Running"), pod("old", "old", cpu="1", node="m", deleting=1)]
    left = Hand(nodes={"m": 1, "n": 1}, running={"on-n": (0, "low", [("n", 1)])}, asks=[(1, ANYWHERE)], also=leaving)
    unknown = (free, minding, inside, simulated, left)
    for hand, known in ((taken, True), *((each, False) for each in unknown)):
        member = hand.members[0]
        hand.plan.session.evaluate(Subject(member, hand.plan.queue))
        found = Offers(hand.plan.session, hand.rules).look_ahead(hand.plan, member)
        assert (found is not None) is known
    found = Offers(taken.plan.session, taken.rules).look_ahead(taken.plan, taken.members[0])
    assert found.left.tolist() == [True, True]
    assert found.kind.bounds.possible.tolist() == [True, True]
