"""Plans that are made by hand: what is spared of them, what a refused try leaves behind, and what parts of the search say of a node or a set."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from eviction_hand import ANYWHERE, Hand

from builders import group, node, pod, queue
from pumice.actions.eviction import asking, exhaustive, plan, rules, victim_sets
from pumice.actions.eviction.plan import Plan
from pumice.framework import subject
from pumice.model.statuses import Status


@pytest.fixture(params=["few", "many", "minding"], autouse=True)
def _kind(request, monkeypatch):
    """Plans are trimmed by trying where they are small, else by numbers where these say enough; not where members mind other pods."""
    if request.param == "many":
        monkeypatch.setattr(plan, "SMALL", 0)
    if request.param == "minding":
        term = {"topologyKey": "is", "labelSelector": {"matchLabels": {"app": "of nobody"}}}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        monkeypatch.setattr(Hand, "members_mind", {"affinity": apart})


def test_who_is_not_needed_is_spared_the_dearest_first():
    hand = Hand(
        nodes={"m": 4}, running={"low": (0, "low", [("m", 2)]), "mid": (0, "mid", [("m", 2)])}, asks=[(2, ANYWHERE)]
    )
    hand.take("low-0", "mid-0")
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == ["low-0"]
    assert hand.homes() == {"asks-0": "m"}


def test_who_is_given_back_together_with_another_is_not_looked_at_again():
    """Without the one the member goes elsewhere, and nobody needs the other any more."""
    hand = Hand(nodes={"m": 2, "n": 2}, running={"low": (0, "low", [("m", 1), ("m", 1)])}, asks=[(2, ANYWHERE)])
    hand.take("low-0", "low-1")
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == []
    assert hand.homes() == {"asks-0": "n"}


def test_of_several_who_are_not_needed_each_is_spared():
    running = {name: (0, rank, [("m", 2)]) for name, rank in (("a", "low"), ("b", "mid"), ("c", "mid"), ("d", "mid"))}
    hand = Hand(nodes={"m": 8}, running=running, asks=[(2, ANYWHERE)])
    hand.take("a-0", "b-0", "c-0", "d-0")
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == ["a-0"]


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3), (3, 1)])
def test_who_is_needed_goes(sizes):
    running = {"low": (0, "low", [("m", sizes[0])]), "mid": (0, "mid", [("m", sizes[1])])}
    hand = Hand(nodes={"m": 4}, running=running, asks=[(4, ANYWHERE)])
    hand.take("low-0", "mid-0")
    hand.place(asks_0="m")
    before = hand.statuses()
    hand.trim()
    assert hand.victims() == ["low-0", "mid-0"]
    assert hand.statuses() == before


def test_a_victim_is_spared_if_the_member_beside_it_finds_room_elsewhere():
    hand = Hand(nodes={"m": 2, "n": 2}, running={"low": (0, "low", [("m", 2)])}, asks=[(2, ANYWHERE)])
    hand.take("low-0")
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == []
    assert hand.homes() == {"asks-0": "n"}


def test_no_more_members_move_than_have_to_if_a_victim_is_spared():
    running = {"low": (0, "low", [("m", 2)]), "mid": (0, "mid", [("m", 2)])}
    hand = Hand(nodes={"m": 4, "n": 2}, running=running, asks=[(2, ANYWHERE), (2, ANYWHERE)])
    hand.take("low-0", "mid-0")
    hand.place(asks_0="m", asks_1="m")
    hand.trim()
    assert hand.victims() == ["low-0"]
    assert [member.name for member in hand.plan.members] == ["asks-0", "asks-1"]


def test_a_victim_is_not_spared_if_there_is_room_elsewhere_for_one_of_two_members_beside_it():
    hand = Hand(nodes={"m": 4, "n": 2}, running={"low": (0, "low", [("m", 4)])}, asks=[(2, ANYWHERE), (2, ANYWHERE)])
    hand.take("low-0")
    hand.place(asks_0="m", asks_1="m")
    before = hand.statuses()
    hand.trim()
    assert hand.victims() == ["low-0"]
    assert hand.statuses() == before
    assert [member.name for member in hand.plan.members] == ["asks-0", "asks-1"]


def test_members_are_back_where_they_were_if_sparing_somebody_moves_them_in_vain():
    """Without the victim on m its member moves to n, and the victim that was on n for the other is then beside nobody who could do without it."""
    running = {"low": (2, "low", [("m", 2), ("n", 2)])}
    hand = Hand(nodes={"m": 2, "n": 4}, running=running, asks=[(2, ANYWHERE), (2, ANYWHERE)])
    hand.take("low-0", "low-1", whole=True)
    hand.place(asks_0="m", asks_1="n")
    before = hand.statuses()
    hand.trim()
    assert hand.victims() == ["low-0", "low-1"]
    assert hand.statuses() == before


def test_a_member_is_back_beside_its_victim_if_its_moving_brings_back_more_than_the_queue_may_hold():
    """Without mid-0 it moves to n, where low-0 is of no use to it; with both of them back the queue holds too much."""
    limit = queue("default", capability={"cpu": "5"})
    running = {"mid": (0, "mid", [("m", 3)]), "low": (0, "low", [("m", 1)])}
    asks = [(2, ANYWHERE)]
    hand = Hand(nodes={"m": 4, "n": 2}, running=running, asks=asks, more=", {name: capacity}", also=[limit])
    hand.take("mid-0", "low-0")
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == ["mid-0"]
    assert hand.homes() == {"asks-0": "m"}
    assert hand.statuses()["asks-0"] == (Status.PIPELINED, hand.desk.node("m"))
    assert hand.statuses()["mid-0"][0] == Status.RELEASING


def test_a_plan_is_as_it_was_if_whoever_is_spared_brings_others_back_beyond_the_limit():
    """Without either of them the member moves to n, where the other is of no use to it; with both of them back the queue holds too much."""
    limit = queue("default", capability={"cpu": "7"})
    running = {"mid": (0, "mid", [("m", 3)]), "low": (0, "low", [("m", 1)])}
    hand = Hand(nodes={"m": 4, "n": 4}, running=running, asks=[(4, ANYWHERE)], more=", {name: capacity}", also=[limit])
    empty = hand.statuses()
    hand.take("mid-0", "low-0")
    hand.place(asks_0="m")
    before = hand.statuses()
    hand.trim()
    assert hand.victims() == ["low-0", "mid-0"]
    assert hand.statuses() == before
    hand.plan.give_up()
    assert hand.statuses() == empty
    assert not hand.desk.cluster.nodes.pipelined.any()


@pytest.mark.parametrize("where", ["m", "n"])
def test_whoever_a_member_must_not_be_near_goes_though_there_is_room_beside_it(where):
    """On its own node, or in the same zone."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    hand = Hand(nodes={"m": 4, "n": 4}, running={}, asks=[(2, apart)])
    hand.desk.modify(*(node(name, "4", labels={"is": name, "zone": "z"}) for name in "mn"))
    hand.desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    hand.desk.feed(pod("low-0", "low", cpu="1", node=where, labels={"app": "x"}))
    hand.desk.apply()
    hand.take("low-0")
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == ["low-0"]
    assert hand.homes() == {"asks-0": "m"}


@pytest.mark.parametrize("where", ["m", "n"])
def test_whoever_has_the_port_of_a_member_goes_if_it_is_on_its_node(where):
    port = [{"containerPort": 80, "hostPort": 80}]
    hand = Hand(nodes={"m": 4, "n": 1}, running={}, asks=[(2, {"ports": port})])
    hand.desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    hand.desk.feed(pod("low-0", "low", cpu="1", node=where, ports=port))
    hand.desk.apply()
    hand.take("low-0")
    hand.place(asks_0="m")
    hand.trim()
    assert hand.victims() == (["low-0"] if where == "m" else [])


def test_pods_that_were_taken_one_by_one_are_not_taken_apart_for_others_of_their_job():
    """A gang goes whole beside them."""
    running = {"a": (1, "low", [("m", 2)] * 4), "gang": (2, "low", [("n", 1), ("n", 1)])}
    there = {"nodeSelector": {"is": "m"}}
    for taken in (["a-0", "a-1"], ["a-1", "a-2"], ["a-2", "a-3"]):
        hand = Hand(nodes={"m": 8, "n": 2}, running=running, asks=[(4, there), (2, {"nodeSelector": {"is": "n"}})])
        hand.take(*taken)
        hand.take("gang-0", "gang-1", whole=True)
        hand.place(asks_0="m", asks_1="n")
        hand.trim()
        assert hand.victims() == [*taken, "gang-0", "gang-1"]


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_gang_goes_in_part_if_what_it_can_spare_is_enough(number):
    running = {"low": (1, "low", [("m", 2)] * number)}
    hand = Hand(nodes={"m": 2 * number}, running=running, asks=[(2 * number - 2, ANYWHERE)])
    hand.take(*(f"low-{i}" for i in range(number)), whole=True)
    hand.place(asks_0="m")
    hand.trim()
    assert len(hand.victims()) == number - 1
    assert hand.homes() == {"asks-0": "m"}


@pytest.mark.parametrize("least", [2, 3])
def test_a_gang_goes_whole_if_no_part_that_it_can_spare_is_enough(least):
    running = {"low": (least, "low", [("m", 2), ("m", 2), ("m", 2)]), "other": (0, "low", [("n", 1), ("n", 1)])}
    there = {"nodeSelector": {"is": "n"}}
    hand = Hand(nodes={"m": 6, "n": 2}, running=running, asks=[(4, {"nodeSelector": {"is": "m"}}), (2, there)])
    hand.take("other-0", "other-1")
    hand.take("low-0", "low-1", "low-2", whole=True)
    hand.place(asks_0="m", asks_1="n")
    hand.trim()
    assert hand.victims() == ["low-0", "low-1", "low-2", "other-0", "other-1"]


def test_other_victims_stay_in_a_plan_that_takes_a_part_of_a_gang():
    running = {"low": (1, "low", [("m", 2), ("m", 2)]), "mid": (0, "low", [("n", 2)])}
    hand = Hand(nodes={"m": 4, "n": 2}, running=running, asks=[(2, ANYWHERE), (2, {"nodeSelector": {"is": "n"}})])
    hand.take("low-0", "low-1", whole=True)
    hand.take("mid-0")
    hand.place(asks_0="m", asks_1="n")
    hand.trim()
    victims = hand.victims()
    assert (len(victims), victims[-1]) == (2, "mid-0")
    assert hand.homes() == {"asks-0": "m", "asks-1": "n"}


def test_a_plan_that_takes_somebody_of_no_use_to_its_queue_s_limit_spares_them_as_well():
    limit = queue("default", capability={"cpu": "4"})
    running = {"low": (0, "low", [("m", 2), ("n", 2)])}
    hand = Hand(nodes={"m": 2, "n": 4}, running=running, asks=[(2, ANYWHERE)], more=", {name: capacity}", also=[limit])
    hand.take("low-0", "low-1")
    hand.place(asks_0="n")
    hand.trim()
    assert len(hand.victims()) == 1  # one of them makes room below the limit


# -- sets on one node ------------------------------------------------------------------------------------------


def test_what_a_gang_gives_back_on_a_node_is_what_it_has_there():
    running = {"low": (3, "low", [("m", 1), ("m", 2), ("n", 4)])}
    hand = Hand(nodes={"m": 3, "n": 4}, running=running, asks=[(3, ANYWHERE)])
    sets = victim_sets.VictimSets(hand.plan, hand.members[0], None, {})
    for name, cpu in (("m", 3000), ("n", 4000)):
        row = hand.desk.node(name).row
        (choice,) = sets.choices(sets.in_order(row), row)
        assert (int(choice.freed[0]), choice.count, choice.unit.whole) == (cpu, 3, True)


def test_where_sets_are_not_tried_one_by_one_whoever_is_not_needed_is_given_back(monkeypatch):
    monkeypatch.setattr(victim_sets, "TRIES", 0)
    running = {"a": (0, "low", [("m", 1)]), "b": (0, "low", [("m", 1)]), "mid": (0, "mid", [("m", 3)])}
    hand = Hand(nodes={"m": 5}, running=running, asks=[(3, ANYWHERE)])
    row = hand.desk.node("m").row
    _, found = victim_sets.VictimSets(hand.plan, hand.members[0], None, {}).cheapest(row)
    assert [task.name for unit in found for task in unit.tasks] == ["mid-0"]


# -- every combination -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [exhaustive.MOST, exhaustive.MOST + 1])
def test_every_combination_is_proposed_where_at_most_so_many_units_could_go(count):
    running = {f"j{i}": (0, "low", [("m", 1)]) for i in range(count)}
    hand = Hand(nodes={"m": count}, running=running, asks=[(1, ANYWHERE), (1, ANYWHERE)])
    wanted = asking.Wanted(hand.plan.queue, hand.plan.job, hand.members, lambda: len(hand.plan.members) == 2)
    proposed = [len(hand.plan.victims) for _ in exhaustive.EverySet(hand.rules).proposals(hand.plan, wanted)]
    pairs = count * (count - 1) // 2
    assert proposed[:pairs] == ([2] * pairs if count == exhaustive.MOST else [])


def test_no_combination_takes_more_of_a_job_one_by_one_than_it_can_spare():
    running = {"low": (2, "low", [("m", 1)] * 4)}
    hand = Hand(nodes={"m": 4}, running=running, asks=[(1, ANYWHERE), (1, ANYWHERE), (1, ANYWHERE)], minimum=1)
    wanted = asking.Wanted(hand.plan.queue, hand.plan.job, hand.members, lambda: True)
    proposals = exhaustive.EverySet(hand.rules).proposals(hand.plan, wanted)
    assert {tuple(sorted(len(unit.tasks) for unit in hand.plan.units)) for _ in proposals} == {(1,), (1, 1), (4,)}


def test_of_its_own_job_any_combination_is_proposed():
    running = {"low": (0, "low", [("m", 1)])}
    hand = Hand(nodes={"m": 4}, running=running, asks=[(2, ANYWHERE), (2, ANYWHERE)])
    hand.desk.feed(*(pod(f"own-{i}", "asks", cpu="1", node="m", priority=-5) for i in range(3)))
    session = hand.desk.session()
    within = rules.PreemptWithin(session)
    wanted = asking.Wanted(hand.plan.queue, hand.plan.job, hand.members, lambda: True)
    made = Plan(session, within, wanted)
    sizes = {len(made.victims) for _ in exhaustive.EverySet(within).proposals(made, wanted)}
    assert sizes == {2, 3}
    assert not any(unit.whole for _ in exhaustive.EverySet(within).proposals(made, wanted) for unit in made.units)


# -- plans -----------------------------------------------------------------------------------------------------


def test_a_member_may_wait_within_the_limit_of_its_queue_for_victims_that_were_sent_away():
    limit = queue("default", capability={"cpu": "4"})
    running = {"low": (0, "low", [("m", 2)]), "kept": (0, "high", [("m", 2)])}
    hand = Hand(nodes={"m": 8}, running=running, asks=[(1, ANYWHERE)], more=", {name: capacity}", also=[limit])
    hand.desk.cycle()
    assert hand.desk.world.evictions == ["low-0"]
    hand.desk.feed(group("next", 1, phase="Inqueue", priorityClassName="high"), pod("next-0", "next", cpu="1"))
    session = hand.desk.session()
    member = hand.desk.task("next-0")
    made = Plan(session, rules.Preempt(session), asking.Wanted(hand.plan.queue, member.job, [member], lambda: True))
    assert made.is_allowed(member)
    assert session.allocatable(hand.plan.queue, subject.equal_tasks([member])) is not None


def test_a_plan_inside_a_domain_takes_from_its_nodes_alone():
    hand = Hand(nodes={"m": 1, "n": 1}, running={"low": (0, "low", [("m", 1), ("n", 1)])}, asks=[(1, ANYWHERE)])
    wanted = asking.Wanted(hand.plan.queue, hand.plan.job, hand.members, lambda: True)
    inside = Plan(hand.plan.session, hand.rules, wanted, SimpleNamespace(rows=np.array([hand.desk.node("m").row])))
    tasks = [hand.desk.task("low-0"), hand.desk.task("low-1"), hand.members[0]]
    assert [inside.covers(task) for task in tasks] == [True, False, False]
    assert [hand.plan.covers(task) for task in tasks] == [True, True, True]
