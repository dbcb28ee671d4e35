"""What is written about pods: why they wait, as often as that may be, the node they are to get, and that their gate is taken off."""

from __future__ import annotations

import pytest

from builders import SECOND, Desk, group, node, pod
from pumice.api import kinds
from pumice.cache.effects import Patch
from pumice.cache.options import Options
from pumice.framework.closing import TaskReport

FULL = "no node has 2 cpu free: the freest of 1, n1, has {} cpu"


def waiting(*conditions, **options):
    made = pod("p", "g", cpu="1")
    made["status"]["conditions"] = list(conditions)
    return Desk(options=Options(**options)).feed(node("n1"), group("g", 2), made).apply()


def publish(desk, message, nominated=""):
    report = TaskReport(desk.task("p"), "Unschedulable", message, nominated)
    desk.cache.publisher.pods.publish(report, desk.now)


def written(desk):
    """The reasons that were written, and the nodes that were nominated with them."""
    bodies = [each.body["status"] for each in desk.world.patches("Pod")]
    return [(each["conditions"][0]["message"], each.get("nominatedNodeName", "")) for each in bodies]


def test_a_reason_must_have_stood_before_it_is_written_and_a_nomination_is_written_at_once():
    desk = waiting(reason_patience=SECOND)
    publish(desk, "one")
    assert written(desk) == []
    publish(desk, "two", "n1")
    assert written(desk) == [("two", "n1")]
    desk.now += SECOND
    publish(desk, "one")
    assert written(desk) == [("two", "n1"), ("one", "")]


def test_a_reason_that_was_put_off_is_not_due_any_more_once_the_one_before_it_is_right_again():
    desk = waiting(reason_patience=SECOND)
    for moment in (0, SECOND):
        desk.now += moment
        publish(desk, "one")
    publish(desk, "two")
    publisher = desk.cache.publisher
    assert publisher.next_wake() == desk.now + SECOND
    publish(desk, "one")
    assert publisher.next_wake() is None
    desk.now += SECOND
    publish(desk, "two")
    assert written(desk) == [("one", "")]
    assert publisher.next_wake() == desk.now + SECOND


def test_other_numbers_are_written_only_when_their_time_has_come():
    desk = waiting(renews_numbers=True)
    publish(desk, FULL.format(1))
    publish(desk, FULL.format(0))
    assert written(desk) == [(FULL.format(1), "")]
    desk.now = desk.cache.next_wake()
    desk.apply()
    publish(desk, FULL.format(0))
    assert written(desk) == [(FULL.format(1), ""), (FULL.format(0), "")]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": FULL.format(1)}, True),
        ({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "another"}, False),
        ({"type": "PodScheduled", "status": "False", "reason": "Another", "message": FULL.format(1)}, False),
        ({"type": "PodScheduled", "status": "True", "reason": "Unschedulable", "message": FULL.format(1)}, False),
        ({"type": "Another", "status": "False", "reason": "Unschedulable", "message": FULL.format(1)}, False),
    ],
)
def test_what_a_pod_says_already_is_not_written_after_a_restart(condition, says):
    desk = waiting(condition)
    publish(desk, FULL.format(2))
    assert written(desk) == ([] if says else [(FULL.format(2), "")])


def test_a_status_is_merged_by_the_types_of_its_conditions_and_nobody_waits_for_it():
    desk = waiting()
    publish(desk, "one")
    (patch,) = desk.world.patches("Pod")
    assert (patch.subresource, patch.strategic, patch.reports) == ("status", True, True)


def gates(desk):
    return [each for each in desk.world.of(Patch) if "spec" in each.body]


def test_a_gate_is_taken_off_once_and_again_if_that_failed():
    desk = waiting()
    task = desk.task("p")
    assert desk.cache.take_gate_off(task)
    assert not desk.cache.take_gate_off(task)
    (patch,) = gates(desk)
    assert (patch.kind, patch.namespace, patch.name, patch.uid) == (kinds.POD, "a", "p", task.uid)
    assert (patch.body, patch.subresource) == ({"spec": {"schedulingGates": None}}, "")
    before = desk.cluster.changed
    desk.settle(patch, "unavailable").apply()
    assert desk.cluster.changed != before
    assert desk.cache.take_gate_off(task)
    assert gates(desk) == [patch] * 2
    desk.settle(patch).apply()
    assert not desk.cache.take_gate_off(task)


def test_the_gate_of_a_pod_that_comes_back_is_taken_off_too():
    desk = waiting()
    desk.cache.take_gate_off(desk.task("p"))
    desk.delete(pod("p", "g")).feed(pod("p", "g", cpu="1")).apply()
    assert desk.cache.take_gate_off(desk.task("p"))


def removals(desk):
    return [each for each in desk.world.patches("Pod") if each.body["status"].get("nominatedNodeName", "") is None]


@pytest.mark.parametrize("since", ["", "n1"])
def test_a_nomination_is_taken_off_again_where_that_failed_unless_there_is_another_by_now(since):
    desk = waiting()
    publish(desk, "one", "n1")
    assert list(desk.cluster.nominated) == [desk.task("p").uid]
    desk.cache.publisher.pods.clear_nomination(desk.task("p"))
    assert (list(desk.cluster.nominated), desk.task("p").nominated) == ([], "")
    (removal,) = removals(desk)
    if since:
        publish(desk, "two", since)
    desk.settle(removal, "unavailable").apply()
    assert len(removals(desk)) == (1 if since else 2)
    assert desk.task("p").nominated == since


def test_a_nomination_that_was_never_there_is_not_taken_off_again():
    desk = waiting()
    pods = desk.cache.publisher.pods
    pods.clear_nomination(desk.task("p"))
    (removal,) = removals(desk)
    desk.settle(removal, "unavailable").apply()
    assert removals(desk) == [removal]
