"""What the cache does at the edges: just in time, exactly as much as allowed, an answer that comes too late."""

from __future__ import annotations

import pytest

from builders import NOW, SECOND, Desk, group, node, pod, queue
from containers import entries
from pumice.api import names
from pumice.cache import required_queues
from pumice.cache.effects import Bind, Evict, Note
from pumice.cache.options import Options
from pumice.cache.write_paces import REASONS, WritePaces


def test_a_reason_may_be_given_at_the_moment_when_it_has_stood_long_enough():
    paces = WritePaces(patience=10)
    assert not paces.has_stood("g", NOW)
    assert not paces.has_stood("g", NOW + 9)
    assert paces.next_wake() == NOW + 10
    assert paces.has_stood("g", NOW + 10)


def test_a_reason_that_was_withdrawn_has_to_stand_anew():
    paces = WritePaces(patience=10)
    paces.has_stood("g", NOW)
    paces.withdraw("g")
    assert not paces.has_stood("g", NOW + 10)
    assert paces.has_stood("g", NOW + 20)


def test_who_was_told_that_its_time_has_come_is_not_late_any_more():
    paces = WritePaces(patience=10)
    assert not paces.has_stood("g", NOW)
    assert paces.due(NOW + 9) == []
    assert paces.due(NOW + 10) == ["g"]
    assert paces.has_stood("g", NOW + 10)
    assert paces.next_wake() is None
    assert paces.due(NOW + 10) == []


@pytest.mark.parametrize("patience", [0, 10])
def test_there_is_something_to_withdraw_as_long_as_a_reason_stands_that_was_put_off(patience):
    paces = WritePaces(patience=patience)
    assert not paces.puts_anything_off
    assert not all(paces.may_give_reason("g", NOW) for _ in range(REASONS.burst + 1))
    assert paces.puts_anything_off
    paces.due(NOW + REASONS.pause)
    assert paces.puts_anything_off is bool(patience)
    paces.withdraw("g")
    assert not paces.puts_anything_off


def test_a_queue_that_had_to_wait_is_due_once_when_its_second_is_over():
    paces = WritePaces()
    assert [paces.may_write_queue("q", NOW) for _ in range(2)] == [True, False]
    due = [paces.queues_are_due(NOW + after) for after in (SECOND - 1, SECOND, SECOND)]
    assert due == [False, True, False]


def test_of_budgets_that_are_whole_again_nothing_is_kept():
    paces = WritePaces()
    before = entries(paces)
    assert paces.may_write_queue("q", NOW)
    assert paces.may_renew("g", NOW)
    assert entries(paces) != before
    paces.queues_are_due(NOW + REASONS.pause)
    assert entries(paces) == before


def test_queues_that_must_exist_are_as_volcano_makes_them():
    found = {each["metadata"]["name"]: each["spec"] for each in required_queues.required_queues(Options())}
    assert found == {"root": {"weight": 1, "reclaimable": False}, "default": {"weight": 1, "reclaimable": True}}


@pytest.mark.parametrize(("guarantee", "warned"), [("3", False), ("4", False), ("5", True), ("4001m", True)])
def test_as_much_may_be_guaranteed_as_may_be_held(guarantee, warned):
    made = Desk().feed(queue("q", capability={"cpu": "4"}, guarantee={"resource": {"cpu": guarantee}}))
    made.cycle()
    said = [note.message for note in made.world.of(Note) if note.name == "q"]
    assert any("is above 4 in spec.capability" in text for text in said) is warned


def test_status_that_somebody_else_writes_is_taken_in_though_nothing_else_is_new():
    made = Desk().feed(node("n1"), group("g", 1, phase="Pending"))
    made.apply()
    assert made.cluster.jobs["a/g"].status.phase == "Pending"
    made.modify(group("g", 1, phase="Inqueue")).apply()
    assert made.cluster.jobs["a/g"].status.phase == "Inqueue"


def binding():
    """A desk that has sent one bind."""
    made = Desk().feed(node("n1"), node("n2"), group("g"), pod("p", "g", cpu="1"))
    made.cycle()
    (sent,) = made.world.of(Bind)
    made.world.effects.clear()
    return made, sent


@pytest.mark.parametrize("where", ["there", "elsewhere"])
def test_answer_that_is_lost_after_its_bind_was_seen_is_told_only_if_it_was_that_one(where):
    made, sent = binding()
    place = sent.node if where == "there" else ({"n1", "n2"} - {sent.node}).pop()
    made.modify(pod("p", "g", cpu="1", node=place)).apply()
    made.settle(sent, "unknown").apply()
    told = [note for note in made.world.of(Note) if note.reason == "Scheduled" and note.name == "p"]
    assert len(told) == (where == "there")
    assert made.task("p").node.name == place


def test_answer_about_a_pod_that_is_gone_changes_nothing_and_its_successor_is_bound():
    made, sent = binding()
    made.delete(pod("p", "g", cpu="1")).apply()
    made.feed(pod("p", "g", uid="new", cpu="1"))
    made.settle(sent, "refused")
    made.cycle()
    assert [(each.uid, each.name) for each in made.world.of(Bind)] == [("new", "p")]
    assert made.task("p").refusal == ""


@pytest.mark.parametrize("where", ["there", "elsewhere"])
def test_bind_whose_answer_was_lost_is_told_when_it_is_seen(where):
    made, sent = binding()
    made.settle(sent, "unknown").apply()
    assert made.world.reads == ["p"]
    place = sent.node if where == "there" else ({"n1", "n2"} - {sent.node}).pop()
    made.modify(pod("p", "g", cpu="1", node=place)).apply()
    assert [note.name for note in made.world.of(Note) if note.reason == "Scheduled"] == ["p"] * (where == "there")


@pytest.mark.parametrize("code", ["notfound", "refused", "unavailable", "unknown"])
def test_eviction_of_a_pod_that_is_said_to_be_gone_is_looked_after_by_a_read(code):
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1", node="n1")).apply()
    made.cache.evict(made.task("p"), "somebody else")
    made.settle(made.world.of(Evict)[-1], code).apply()
    assert made.world.reads == ["p"] * (code == "notfound")
    made.now += 60 * SECOND
    made.apply()
    assert len(made.world.evictions) > 1


def test_a_node_offers_what_may_be_used_beyond_though_it_names_no_amount():
    made = Desk().feed(node("n1", cpu=None, annotations={names.OVERSUBSCRIPTION_CPU: "7"}), node("n2", cpu="1")).apply()
    column = made.cluster.vocabulary.columns["cpu"]
    offered = {each: int(made.cluster.nodes.allocatable[made.node(each).row][column]) for each in ("n1", "n2")}
    assert offered == {"n1": 7, "n2": 1000}
