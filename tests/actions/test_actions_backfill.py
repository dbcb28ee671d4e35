"""backfill: pods that ask for nothing, one by one; what is said of those that are not placed, and what is held for some."""

from __future__ import annotations

import pytest
from test_actions_small_worlds import Licensed

from builders import Desk, group, node, pod
from pumice.cache.effects import Bind
from pumice.framework.plugin import Plugin
from pumice.model.statuses import Status

TEXT = """
actions: "backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}%s]
"""


def told(desk):
    """Run a cycle; give what was said of the group, and why pods were not placed."""
    explained = desk.cycle().explain("a/g")
    return explained, {name: text for name, reason, text in desk.world.notes if reason == "FailedScheduling"}


def test_a_job_that_can_never_be_valid_is_told_so_by_backfill_too():
    desk = Desk(TEXT % "").feed(node("n"), group("g", 2, phase="Inqueue"), pod("g-0", "g"))
    assert "backfill (cycle 1): NotEnoughTasks: the group has 1 valid pods, minMember is 2" in told(desk)[0]


def test_a_pod_of_a_sub_group_that_cannot_start_whole_is_told_what_that_lacks():
    policy = {"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"]}
    desk = Desk(TEXT % "").feed(node("n", "4"), group("g", 1, phase="Inqueue", subGroupPolicy=[policy]))
    desk.feed(pod("g-0", "g", labels={"part": "a"}), pod("g-1", "g", cpu="1", labels={"part": "a"}))
    explained, pods = told(desk)
    assert desk.world.binds == {}
    lack = "has 1 of the 2 members it starts with"
    assert "backfill (cycle 1): g-0: sub-group a/g/s" in explained
    assert lack in explained
    assert lack in pods["g-0"]


def test_pods_of_a_sub_group_that_is_whole_are_placed():
    policy = {"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"]}
    desk = Desk(TEXT % "").feed(node("n", "4"), group("g", 1, phase="Inqueue", subGroupPolicy=[policy]))
    desk.feed(*(pod(f"g-{i}", "g", labels={"part": "a"}) for i in range(2))).cycle()
    assert sorted(desk.world.binds) == ["g-0", "g-1"]


def test_a_pod_that_is_refused_before_nodes_are_looked_at_is_told_why():
    desk = Desk(TEXT % ", {name: licensed}", Licensed).feed(node("n"), group("g", 1, phase="Inqueue"))
    assert "no licence" in told(desk.feed(pod("g-0", "g", labels={"app": "x"})))[1]["g-0"]


def test_a_slot_that_is_being_released_is_no_slot_and_that_is_said_until_there_is_one():
    going = pod("old-0", "old", node="n", deleting=3600)
    desk = Desk(TEXT % "").feed(node("n", pods="1"), group("old", 0), going, group("g", 1, phase="Inqueue"))
    explained, pods = told(desk.feed(pod("g-0", "g")))
    assert "0/1 nodes are unavailable: 1 node(s) pod number exceeded." in pods["g-0"]
    assert "g-0: 0/1 nodes are unavailable" in explained
    assert "unavailable" not in told(desk.delete(going))[0]
    assert desk.world.binds == {"g-0": "n"}


class Unready(Plugin):
    """Finds one job never ready."""

    name = "unready"
    points = frozenset({"JobReady"})

    def open(self, session):
        session.job_ready.add(lambda job: job.name != "a")


def test_what_a_job_that_is_not_ready_has_got_is_given_to_no_other_in_the_cycle():
    desk = Desk(TEXT % ", {name: unready}", Unready).feed(node("n", pods="1"))
    for number, name in enumerate("ab"):
        desk.feed(group(name, 1, phase="Inqueue", created=number), pod(f"{name}-0", name))
    desk.cycle()
    assert desk.world.binds == {}


@pytest.mark.parametrize(
    ("gone", "free", "where"),
    [
        (False, False, None),
        (False, True, "m"),
        (True, False, "n"),  # what it waits for is there
    ],
)
def test_a_pod_for_which_a_slot_is_held_starts_where_there_is_one_or_keeps_it(gone, free, where):
    desk = Desk(TEXT % "").feed(node("n", pods="1"), node("m", pods="1", cordoned=not free), group("old", 0))
    desk.feed(*([] if gone else [pod("old-0", "old", node="n", deleting=3600)]), group("g", 1, phase="Inqueue"))
    waits = pod("g-0", "g")
    waits["status"]["nominatedNodeName"] = "n"
    session = desk.feed(waits).session()
    task = desk.task("g-0")
    assert list(session.reserved) == [task.uid]
    next(action for action in desk.scheduler.engine.actions if action.name == "backfill").execute(session)
    assert desk.world.binds == ({"g-0": where} if where else {})
    assert task.node is desk.node(where or "n")
    assert (task.status == Status.PIPELINED) is (where is None)


def test_a_pod_that_was_placed_is_not_placed_again():
    desk = Desk(TEXT % "").feed(node("n"), group("g", 1, phase="Inqueue"), pod("g-0", "g"))
    desk.cycle()
    desk.feed(node("m")).cycle()
    assert [effect.name for effect in desk.world.of(Bind)] == ["g-0"]
