"""What an explanation says of a pod beside its job, and what is held for it."""

from __future__ import annotations

import pytest
from explaining_worlds import asked

from builders import SECOND, Desk, group, node, pod
from pumice.cache.effects import Bind
from pumice.framework.explaining.explanations import Hold
from pumice.framework.reservations import Hold as Claim

GATES = {"schedulingGates": [{"name": "example.com/wait"}]}


def test_a_pod_that_waits_for_a_gate_is_told_so_and_not_which_nodes_take_it():
    made = Desk().feed(node("n1"), group("g", 1), pod("g-0", "g", cpu="1", **GATES))
    (told,) = asked(made, ("pod", "a/g-0"))
    assert told.notes == ("it waits for a scheduling gate to be taken off",)
    assert told.placement is None


def test_a_pod_whose_bind_failed_is_told_why_and_which_nodes_take_it():
    made = Desk().feed(node("n1"), node("n2", cpu="1"), group("g", 1), pod("g-0", "g", cpu="2"))
    made.cycle()
    made.settle(made.world.of(Bind)[-1], "refused", "no such luck").modify(node("n1", cpu="1"))
    (told,) = asked(made, ("pod", "a/g-0"))
    assert told.notes == ("its last bind failed: failed to bind to node n1: no such luck",)
    assert (told.placement.fitting, told.placement.nodes) == (0, 2)


def test_of_a_pod_that_has_its_node_neither_a_reason_nor_other_nodes_are_told_whatever_others_of_its_job_wait_for():
    made = Desk().feed(node("n1"), group("g", 1), pod("g-0", "g", cpu="1", node="n1"), pod("g-1", "g", cpu="9"))
    runs, waits = asked(made, ("pod", "a/g-0"), ("pod", "a/g-1"))
    assert (runs.node, runs.cause, runs.reason, runs.placement) == ("n1", "", "", None)
    assert waits.cause
    assert waits.reason == "0/1 nodes are unavailable: 1 Insufficient cpu."


def test_a_pod_without_a_group_is_told_who_would_make_one():
    made = Desk().feed(node("n1"), pod("alone", cpu="1"))
    (told,) = asked(made, ("pod", "a/alone"))
    assert told.cause.startswith("it belongs to no group; ")
    assert (told.reason, told.job) == ("", None)
    assert (told.placement.fitting, told.placement.nodes) == (1, 1)


# -- what is held ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("running", [False, True])
def test_room_is_held_for_who_waits_for_it_and_not_for_who_has_it(running):
    made = Desk().feed(node("n1", cpu="2"), node("n2", cpu="2"), group("g", 1))
    made.feed(pod("leaves", scheduler="else", cpu="2", node="n1", deleting=True))
    made.feed(pod("g-0", "g", cpu="2", **({} if not running else {"node": "n2"})), pod("g-1", "g", cpu="2"))
    job, first, second = asked(made, ("job", "a/g"), ("node", "n1"), ("node", "n2"))
    held = Hold(pod="a/g-1", job="a/g", node="n1", request={"cpu": "2"})
    assert (list(job.holds), list(first.holds), list(second.holds)) == ([held], [held], [])


def test_a_claim_on_a_node_that_has_no_room_for_it_now_is_told_of_that_node_alone():
    made = Desk().feed(node("n1", cpu="2"), node("n2", cpu="1"), group("old", 1), group("g", 1))
    made.feed(pod("old-0", "old", cpu="1", node="n1"), pod("g-0", "g", cpu="2")).apply()
    made.scheduler.reservations.holds[made.task("g-0").uid] = Claim("n1", patience=60 * SECOND)
    job, first, second = asked(made, ("job", "a/g"), ("node", "n1"), ("node", "n2"))
    held = Hold(pod="a/g-0", job="a/g", node="n1", request={"cpu": "2"})
    assert (list(job.holds), list(first.holds), list(second.holds)) == ([held], [held], [])
