"""What arrives while a cycle decides: a gang whose ground has shifted is withheld whole, and decided anew in the next cycle."""

from __future__ import annotations

import pytest

import builders
from pumice.api import kinds
from pumice.framework.plugin import Action

WITH_INTERRUPTION = """
actions: "enqueue, interruption, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def interrupted_by(*events):
    """A desk whose first cycle is overtaken by events just before it allocates."""
    waiting = list(events)

    class Interruption(Action):
        """Feeds what a watch would deliver in the middle of a cycle."""

        name = "interruption"

        def execute(self, session):
            while waiting:
                event, manifest = waiting.pop(0)
                desk.feed(manifest, event=event)

    desk = builders.Desk(WITH_INTERRUPTION, Interruption)
    return desk


def gang(desk, members=2, cpu="3"):
    desk.feed(builders.node("n1", cpu="4"), builders.node("n2", cpu="4"))
    desk.feed(builders.group("g", members))
    return desk.feed(*(builders.pod(f"g-{i}", "g", cpu=cpu) for i in range(members)))


OVERTAKING = {
    "a node is deleted": ("DELETED", builders.node("n2", cpu="4")),
    "a node shrinks": ("MODIFIED", builders.node("n2", cpu="2")),
    "a node is cordoned": ("MODIFIED", builders.node("n2", cpu="4", cordoned=True)),
    "a node loses its readiness": ("MODIFIED", builders.node("n2", cpu="4", ready="False")),
    "a node's labels change": ("MODIFIED", builders.node("n2", cpu="4", labels={"zone": "b"})),
    "a foreign pod takes the room": ("ADDED", builders.pod("x", node="n2", cpu="2", scheduler="other")),
    "a member is deleted": ("DELETED", builders.pod("g-1", "g", cpu="3")),
    "a member is being deleted": ("MODIFIED", builders.pod("g-1", "g", cpu="3", deleting=True)),
    "a member is bound by somebody else": ("MODIFIED", builders.pod("g-1", "g", cpu="3", node="n9")),
    "minMember is raised": ("MODIFIED", builders.group("g", 3)),
    "the group is deleted": ("DELETED", builders.group("g", 2)),
    "the group changes its queue": ("MODIFIED", builders.group("g", 2, queue="other")),
    "the queue is deleted": ("DELETED", builders.queue("default")),
}


@pytest.mark.parametrize("event", OVERTAKING.values(), ids=OVERTAKING.keys())
def test_a_gang_that_is_overtaken_is_withheld_whole(event):
    desk = gang(interrupted_by(event))
    desk.cycle()
    assert desk.world.binds == {}
    assert desk.cluster.nodes.used.sum() == 0 or event[1]["kind"] == "Pod"


NATIVE = {
    "apiVersion": kinds.NATIVE_POD_GROUP.api_version,
    "kind": "PodGroup",
    "metadata": builders.metadata("w", "a"),
    "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
}


@pytest.mark.parametrize(
    ("event", "metadata", "bound"),
    [
        ("DELETED", {}, False),
        ("MODIFIED", {"deletionTimestamp": builders.stamp(1)}, False),
        ("MODIFIED", {"uid": "another"}, False),
        ("MODIFIED", {"labels": {"new": "label"}}, True),
        ("DELETED", {"name": "else"}, True),
    ],
)
def test_a_gang_of_kubernetes_own_is_withheld_if_its_group_goes_or_is_replaced(event, metadata, bound):
    desk = interrupted_by((event, {**NATIVE, "metadata": {**NATIVE["metadata"], **metadata}}))
    desk.feed(builders.node("n1"), NATIVE, builders.pod("w-0", cpu="1", schedulingGroup={"podGroupName": "w"}))
    desk.cycle()
    assert list(desk.world.binds) == ["w-0"] * bound


HARMLESS = {
    "a node's heartbeat": ("MODIFIED", builders.node("n2", cpu="4", ready="True")),
    "a foreign pod that fits beside": ("ADDED", builders.pod("x", node="n2", cpu="1", scheduler="other")),
    "a foreign pod that has finished": ("ADDED", builders.pod("x", node="n2", cpu="4", phase="Failed")),
    "a foreign pod on another node": ("ADDED", builders.pod("x", node="n7", cpu="4", scheduler="other")),
    "another node is deleted": ("DELETED", builders.node("n7")),
    "another group is deleted": ("DELETED", builders.group("h", 2)),
    "a new group": ("ADDED", builders.group("h", 2)),
    "the group changes something else": ("MODIFIED", builders.group("g", 2, minResources={"cpu": "1"})),
    "the group's own status": ("MODIFIED", builders.group("g", 2, phase="Inqueue")),
    "a member changes something else": ("MODIFIED", builders.pod("g-1", "g", cpu="3", labels={"new": "label"})),
    "another pod is deleted": ("DELETED", builders.pod("x", node="n2", cpu="1", scheduler="other")),
    "the queue changes": ("MODIFIED", builders.queue("default", weight=2)),
    "another queue is deleted": ("DELETED", builders.queue("else")),
    "a pod that cannot be read": ("ADDED", builders.pod("x", node="n2", cpu="-1", scheduler="other")),
}


@pytest.mark.parametrize("event", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_does_not_speak_against_a_gang_does_not_withhold_it(event):
    desk = gang(interrupted_by(event))
    desk.cycle()
    assert desk.world.binds.keys() == {"g-0", "g-1"}


def test_a_pod_that_runs_where_it_ran_withholds_nothing():
    desk = gang(interrupted_by(("MODIFIED", builders.pod("x", node="n2", cpu="1", phase="Unknown"))))
    desk.feed(builders.pod("x", node="n2", cpu="1")).cycle()
    assert desk.world.binds.keys() == {"g-0", "g-1"}


def test_a_node_that_shrank_and_was_put_back_withholds_nothing():
    sizes = [("MODIFIED", builders.node("n2", cpu=cpu)) for cpu in ("2", "4")]
    desk = gang(interrupted_by(*sizes))
    desk.cycle()
    assert desk.world.binds.keys() == {"g-0", "g-1"}


def test_what_overtook_a_cycle_does_not_speak_against_a_later_one():
    desk = gang(interrupted_by(("MODIFIED", builders.node("n2", cpu="4", cordoned=True))))
    desk.cycle()
    assert desk.world.binds == {}
    desk.modify(builders.node("n2", cpu="4")).cycle()
    assert desk.world.binds.keys() == {"g-0", "g-1"}


@pytest.mark.parametrize(("cpu", "bound"), [("0", True), ("1m", False)])
def test_a_foreign_pod_takes_room_as_far_as_it_asks_for_any(cpu, bound):
    """On n2 nothing is left beside the member, or less: what nobody asks for cannot be short."""
    desk = gang(interrupted_by(("ADDED", builders.pod("x", node="n2", cpu=cpu, scheduler="other"))), cpu="4")
    desk.cycle()
    assert (desk.world.binds.keys() == {"g-0", "g-1"}) is bound


def test_a_foreign_pod_that_asks_for_nothing_does_not_speak_against_one_that_does_not_either():
    def foreign(name, chips):
        return builders.pod(name, node="n1", requests={"example.com/chip": chips}, scheduler="other")

    desk = interrupted_by(("ADDED", foreign("x", "0")))
    desk.feed(builders.node("n1", **{"example.com__chip": "1"}), foreign("big", "2"))
    desk.feed(builders.group("g"), builders.pod("g-0", "g", cpu="1")).cycle()
    assert desk.world.binds == {"g-0": "n1"}


def test_another_gang_is_bound_all_the_same():
    desk = gang(interrupted_by(("MODIFIED", builders.node("n2", cpu="1"))))
    desk.feed(builders.node("n3", cpu="1"), builders.group("h"), builders.pod("h-0", "h", cpu="1"))
    desk.cycle()
    assert desk.world.binds.keys() == {"h-0"}


def test_the_reason_names_what_overtook_it():
    desk = gang(interrupted_by(("ADDED", builders.pod("x", node="n2", cpu="2", scheduler="other"))))
    record = desk.cycle()
    assert "pod a/x with 2 cpu appeared on node n2" in record.explain("a/g")


def test_the_reason_counts_the_pods_that_appeared_beside_the_first():
    for others in (1, 2):
        foreign = [builders.pod(f"x{n}", node="n2", cpu="2", scheduler="other") for n in range(others + 1)]
        desk = gang(interrupted_by(*(("ADDED", each) for each in foreign)))
        shown = f"pod a/x0 and {others} more with {2 * others + 2} cpu appeared on node n2"
        assert shown in desk.cycle().explain("a/g")


def test_the_next_cycle_decides_on_what_overtook_the_last():
    desk = gang(interrupted_by(("DELETED", builders.node("n2", cpu="4")), ("ADDED", builders.node("n3", cpu="4"))))
    desk.cycle()
    assert desk.world.binds == {}
    desk.cycle()
    assert sorted(desk.world.binds.values()) == ["n1", "n3"]


def test_a_foreign_pod_that_came_and_went_again_withholds_nothing():
    foreign = builders.pod("x", node="n2", cpu="2", scheduler="other")
    desk = gang(interrupted_by(("ADDED", foreign), ("DELETED", foreign)))
    desk.cycle()
    assert desk.world.binds.keys() == {"g-0", "g-1"}


def test_a_minimum_that_was_raised_and_put_back_withholds_nothing():
    desk = gang(interrupted_by(("MODIFIED", builders.group("g", 3)), ("MODIFIED", builders.group("g", 2))))
    desk.cycle()
    assert desk.world.binds.keys() == {"g-0", "g-1"}


def test_an_older_state_of_a_pod_does_not_replace_a_newer_one():
    desk = builders.Desk().feed(builders.node("n1"))
    newer = builders.pod("p", node="n1", cpu="1")
    newer["metadata"]["resourceVersion"] = "12"
    older = builders.pod("p", cpu="1")
    older["metadata"]["resourceVersion"] = "9"
    desk.feed(newer).modify(older).apply()
    assert desk.task("p").node is desk.node("n1")


def test_an_answer_about_a_pod_that_is_gone_meanwhile_brings_nothing_back():
    desk = gang(builders.Desk())
    desk.cycle()
    bind = desk.world.of(builders.Bind)[0]
    desk.settle(bind, "unknown").apply()
    read = desk.world.of(builders.Read)[0]
    desk.delete(builders.pod("g-0", "g", cpu="3")).settle(read, read=builders.pod("g-0", "g", cpu="3"))
    desk.apply()
    assert [task.name for task in desk.cluster.tasks.values()] == ["g-1"]
