"""What changes under a gang while it is being bound: between one bind that has arrived and another that is held up."""

from __future__ import annotations

import pytest

from pumice.api import kinds
from testbed import faults, waiting

MEMBERS = {"gang-0", "gang-1", "gang-2"}


def hold_up(rig, pod, then=None):
    """Let the bind of one pod of the gang wait, the others arrive; returns what lets it go."""
    held = faults.Hold(then)
    rig.proxy.disturb(held, "POST", f"/pods/{pod}/binding$")
    rig.view.gang("gang", 3)
    waiting.until(lambda: held.held and rig.view.bound() == MEMBERS - {pod}, tell=rig.view.story)
    return held


def node_of(rig, pod):
    return rig.task(pod).node.name


# ---- a refusal for good


@pytest.mark.parametrize("status", [403, 422])
def test_after_a_refusal_for_good_bound_members_stay_and_the_group_says_why(rig, status):
    rig.proxy.disturb(faults.Answer(status, message="not this one"), "POST", "/pods/gang-1/binding$", times=None)
    rig.view.node("n1", 4)
    rig.view.gang("gang", 3)
    rig.view.gang("other", 1)
    waiting.until(lambda: rig.view.bound() == MEMBERS - {"gang-1"} | {"other-0"}, tell=rig.view.story)

    def told():
        group, pod = rig.view.get(kinds.POD_GROUP, "gang"), rig.view.get(kinds.POD, "gang-1")
        conditions = [
            condition["message"]
            for condition in group.get("status", {}).get("conditions", [])
            if condition["status"] == "True"
        ]
        reasons = {condition["reason"] for condition in pod["status"].get("conditions", [])}
        return any("gang-1" in text and "not this one" in text for text in conditions) and "SchedulerError" in reasons

    waiting.until(told, tell=rig.view.story)
    rig.check(broken={"gang"}, repeated=r"/pods/gang-1/binding$|/queues/")
    assert rig.view.phases() == {"gang": "Inqueue", "other": "Running"}
    waiting.until(lambda: any("not this one" in text for text in rig.view.events(kinds.POD, "gang-1")))
    tries = rig.proxy.count("POST", "/pods/gang-1/binding$")
    rig.proxy.calm()
    rig.view.delete(kinds.POD, "gang-1", gracePeriodSeconds=0)
    rig.view.pod("gang-1", "gang")
    waiting.until(lambda: rig.view.phases() == {"gang": "Running", "other": "Running"}, tell=rig.view.story)
    rig.check()
    assert tries < 20


# ---- nodes


def test_a_gang_survives_the_deletion_of_a_node_while_it_is_being_bound(rig):
    rig.view.node("n1", 2)
    rig.view.node("n2", 2)
    held = hold_up(rig, "gang-2", faults.Answer(503))
    lost = node_of(rig, "gang-2")
    rig.view.delete(kinds.NODE, lost)
    waiting.until(lambda: rig.cluster.nodes.count == 1)
    rig.view.node("n3", 2)
    held.release()
    waiting.until(lambda: rig.view.bound("gang") == MEMBERS, tell=rig.view.story)
    rig.check()
    assert rig.view.get(kinds.POD, "gang-2")["spec"]["nodeName"] != lost
    assert rig.view.phases() == {"gang": "Running"}


def test_a_bind_that_lands_on_a_node_after_its_deletion_counts_there(rig):
    rig.view.node("n1", 3)
    held = hold_up(rig, "gang-2")
    rig.view.delete(kinds.NODE, "n1")
    waiting.until(lambda: not rig.cluster.nodes.count)
    held.release()
    waiting.until(lambda: rig.view.bound("gang") == MEMBERS, tell=rig.view.story)
    rig.check()
    rig.view.node("n1", 3)
    rig.view.gang("late", 1)
    waiting.until(lambda: rig.view.events(kinds.POD, "late-0"))
    rig.check()
    assert rig.view.bound() == MEMBERS


@pytest.mark.parametrize("answer", [None, 503], ids=["bind arrives", "bind fails"])
def test_a_node_that_shrinks_while_a_gang_is_being_bound_takes_nobody_more(rig, answer):
    """What has been sent cannot be called back; what has failed goes elsewhere."""
    rig.view.node("n1", 3)
    held = hold_up(rig, "gang-2", faults.Answer(answer) if answer else None)
    rig.view.resize("n1", 2)
    waiting.until(lambda: rig.cluster.nodes.allocatable[0][0] == 2000)
    rig.view.gang("late", 1)
    held.release()
    if answer:
        waiting.until(lambda: rig.task("gang-2").status.title == "Pending")
        rig.view.node("n2", 2)
    else:
        waiting.until(lambda: rig.view.bound("gang") == MEMBERS, tell=rig.view.story)
        assert rig.view.over_committed() == {"n1": (3000, 2000)}
        rig.view.resize("n1", 3)
        rig.view.node("n2", 1)
    waiting.until(lambda: rig.view.phases() == {"gang": "Running", "late": "Running"}, tell=rig.view.story)
    rig.check()


# ---- groups and pods


def test_a_minimum_raised_while_a_gang_is_being_bound_is_met_by_later_pods(rig):
    rig.view.node("n1", 3)
    held = hold_up(rig, "gang-2")
    rig.view.call("PATCH", kinds.POD_GROUP, "gang", {"spec": {"minMember": 4}})
    waiting.until(lambda: rig.minimum("gang") == 4)
    held.release()
    waiting.until(lambda: rig.view.bound("gang") == MEMBERS, tell=rig.view.story)
    rig.check(broken={"gang"})
    assert rig.view.phases() == {"gang": "Inqueue"}
    rig.view.node("n2", 1)
    rig.view.pod("gang-3", "gang")
    waiting.until(lambda: rig.view.phases() == {"gang": "Running"}, tell=rig.view.story)
    rig.check()


def test_a_minimum_raised_before_any_bind_was_sent_binds_nobody(rig):
    rig.view.gang("gang", 3)
    waiting.until(lambda: rig.task("gang-2"))
    with rig.between_cycles():
        rig.view.call("PATCH", kinds.POD_GROUP, "gang", {"spec": {"minMember": 4}})
        rig.view.node("n1", 8)
    waiting.until(lambda: rig.minimum("gang") == 4 and rig.cluster.nodes.count)
    rig.check()
    assert rig.view.bound() == set()


@pytest.mark.parametrize("then", [faults.Pass, faults.Cut, faults.Lose], ids=["answered", "cut", "lost"])
def test_a_pod_created_anew_under_its_name_while_its_bind_is_in_flight_is_bound_too(rig, then):
    rig.view.node("n1", 3)
    held = hold_up(rig, "gang-1", then())
    former = rig.task("gang-1").uid
    rig.view.delete(kinds.POD, "gang-1", gracePeriodSeconds=0)
    rig.view.pod("gang-1", "gang")
    waiting.until(lambda: (task := rig.task("gang-1")) and task.uid != former)
    held.release()
    waiting.until(lambda: rig.view.phases() == {"gang": "Running"}, tell=rig.view.story)
    rig.check()
    assert rig.view.bound("gang") == MEMBERS
