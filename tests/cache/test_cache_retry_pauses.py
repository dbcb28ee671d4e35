"""Effects that fail: when they are repeated, and what is held meanwhile."""

from __future__ import annotations

import pytest

import builders
from builders import SECOND
from pumice.cache import retry_pauses
from pumice.cache.effects import Bind, Evict, Patch, Read
from pumice.framework.closing import TaskReport
from pumice.model.statuses import Status

PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}]
"""


def gang(desk, members=3):
    desk.feed(builders.node("n1", cpu=str(members)), builders.group("g", members))
    return desk.feed(*(builders.pod(f"g-{index}", "g", cpu="1") for index in range(members)))


def confirm(desk, *binds):
    """Let the watch show that pods are bound."""
    for bind in binds:
        desk.settle(bind).modify(builders.pod(bind.name, "g", cpu="1", node=bind.node))


@pytest.mark.parametrize("code", ["unavailable", "conflict", "unknown"])
def test_room_is_held_for_a_member_whose_bind_fails_in_passing(code):
    desk = gang(builders.Desk())
    desk.cycle()
    first, second, third = desk.world.of(Bind)
    confirm(desk, first, second)
    desk.feed(builders.group("rival", created=5), builders.pod("rival-0", "rival", cpu="1", created=5))
    failed = third
    for _ in range(20):
        if code == "unknown":
            desk.settle(failed, "unknown").cycle(0)
            desk.settle(desk.world.of(Read)[-1], read=builders.pod("g-2", "g", cpu="1"))
        else:
            desk.settle(failed, code)
        before = len(desk.world.of(Bind))
        for _ in range(20):
            desk.cycle()
            if len(desk.world.of(Bind)) > before:
                break
        failed = desk.world.of(Bind)[-1]
        assert failed.name == "g-2"
    assert "rival-0" not in desk.world.binds
    desk.settle(failed).modify(builders.pod("g-2", "g", cpu="1", node="n1")).cycle()
    assert desk.task("g-2").status == Status.RUNNING


def test_a_pause_after_a_fault_that_passes_is_short_and_after_a_refusal_long():
    assert [retry_pauses.delay(tries, "unavailable") for tries in (1, 2, 3, 60)] == [0, 10_000, 20_000, 10 * SECOND]
    assert [retry_pauses.delay(tries, "refused") for tries in (1, 2, 3, 60)] == [0, 10_000, 20_000, 1000 * SECOND]


def test_room_is_not_held_for_a_member_that_is_refused():
    desk = gang(builders.Desk())
    desk.cycle()
    confirm(desk, *desk.world.of(Bind)[:2])
    desk.feed(builders.group("rival", created=5), builders.pod("rival-0", "rival", cpu="1", created=5))
    for _ in range(12):
        desk.settle(desk.world.of(Bind)[-1], "refused").cycle()
    assert desk.world.binds["rival-0"] == "n1"


def test_a_bind_that_waits_to_be_repeated_ends_with_its_pod():
    desk = gang(builders.Desk(), members=1)
    for _ in range(12):
        desk.cycle()
        desk.settle(desk.world.of(Bind)[-1], "unavailable")
    desk.apply()
    assert desk.task("g-0").status == Status.BINDING
    desk.delete(builders.pod("g-0", "g", cpu="1")).cycle(60)
    desk.cycle()
    assert not desk.cluster.tasks
    assert desk.cache.next_wake() is None


def test_a_pod_created_anew_under_the_name_of_one_that_was_asked_about_stays():
    desk = gang(builders.Desk(), members=1)
    desk.cycle()
    desk.settle(desk.world.of(Bind)[-1], "unknown").cycle()
    read = desk.world.of(Read)[-1]
    desk.delete(builders.pod("g-0", "g", cpu="1"))
    desk.feed(builders.pod("g-0", "g", cpu="1", uid="another"))
    desk.settle(read, "notfound").cycle()
    assert [task.uid for task in desk.cluster.tasks.values()] == ["another"]
    assert desk.world.of(Bind)[-1].uid == "another"


def test_a_pod_that_a_read_does_not_find_is_gone_with_all_that_was_assumed_of_it():
    desk = gang(builders.Desk(), members=1)
    desk.cycle()
    desk.settle(desk.world.of(Bind)[-1], "unknown").cycle()
    desk.settle(desk.world.of(Read)[-1], "notfound").cycle()
    assert not desk.cluster.tasks
    assert desk.cache.next_wake() is None


@pytest.mark.parametrize("code", ["unavailable", "unknown", "conflict", "refused", "notfound"])
def test_an_eviction_is_repeated_as_long_as_the_pod_is_there(code):
    desk = builders.Desk(PREEMPTING)
    desk.feed(builders.priority_class("low", 1), builders.priority_class("high", 9), builders.node("n1", cpu="1"))
    desk.feed(builders.group("old", priorityClassName="low"), builders.pod("old-0", "old", cpu="1", node="n1"))
    desk.feed(builders.group("new", priorityClassName="high"), builders.pod("new-0", "new", cpu="1"))
    desk.cycle()
    for attempt in range(1, 8):
        assert desk.world.evictions == ["old-0"] * attempt
        desk.settle(desk.world.of(Evict)[-1], code).cycle()
        desk.cycle()
    for read in desk.world.of(Read):
        desk.settle(read, read=builders.pod("old-0", "old", cpu="1", node="n1"))
    desk.cycle(2000)
    sent = len(desk.world.evictions)
    desk.modify(builders.pod("old-0", "old", cpu="1", node="n1", deleting=True)).cycle(2000)
    desk.cycle()
    assert len(desk.world.evictions) in (sent, sent + 1)


def _evicting():
    """Send an eviction of `old-0`."""
    desk = builders.Desk(PREEMPTING)
    desk.feed(builders.priority_class("low", 1), builders.priority_class("high", 9), builders.node("n1", cpu="1"))
    desk.feed(builders.group("old", priorityClassName="low"), builders.pod("old-0", "old", cpu="1", node="n1"))
    desk.feed(builders.group("new", priorityClassName="high"), builders.pod("new-0", "new", cpu="1"))
    desk.cycle()
    assert desk.world.evictions == ["old-0"]
    return desk


@pytest.mark.parametrize("code", ["refused", "unavailable"])
def test_an_eviction_that_keeps_failing_is_repeated_when_its_pause_is_over_and_not_before(code):
    desk = _evicting()
    for tries in range(1, 13):
        failed = desk.now
        desk.settle(desk.world.of(Evict)[-1], code).cycle(0)
        desk.now = failed + max(retry_pauses.FIRST_DELAY, retry_pauses.delay(tries, code)) - 1
        desk.cycle(0.000001)
        assert len(desk.world.evictions) == tries
        desk.cycle(0)
        assert len(desk.world.evictions) == tries + 1


@pytest.mark.parametrize("answered", [True, False])
def test_an_eviction_of_which_nothing_is_seen_for_half_a_minute_is_asked_about(answered):
    desk = _evicting()
    if answered:
        desk.settle(desk.world.of(Evict)[-1])
    assert desk.cache.next_wake() <= desk.now + 30 * builders.SECOND
    desk.cycle(28)
    desk.cycle()
    assert desk.world.reads == []
    desk.cycle()
    desk.cycle()
    assert desk.world.reads == ["old-0"]
    assert desk.world.evictions == ["old-0"]


@pytest.mark.parametrize(
    ("found", "again"),
    [("there", True), ("going", False), ("gone", False), ("ended", False)],
)
def test_an_eviction_is_repeated_if_the_pod_that_was_read_is_not_going(found, again):
    desk = _evicting()
    desk.cycle(31)
    desk.cycle()
    read = desk.world.of(Read)[-1]
    if found == "gone":
        desk.settle(read, "notfound")
    else:
        more = {"going": {"deleting": True}, "ended": {"phase": "Failed"}}.get(found, {})
        desk.settle(read, read=builders.pod("old-0", "old", cpu="1", node="n1", **more))
    desk.cycle(10)
    desk.cycle()
    assert desk.world.evictions == ["old-0"] * (2 if again else 1)


def test_a_read_of_an_evicted_pod_that_fails_is_made_again_soon():
    desk = _evicting()
    desk.cycle(31)
    desk.cycle()
    desk.settle(desk.world.of(Read)[-1], "unavailable").cycle(2)
    desk.cycle()
    assert desk.world.reads == ["old-0"] * 2


@pytest.mark.parametrize(("kind", "name"), [("PodGroup", "g"), ("Pod", "large-0"), ("Queue", "default")])
def test_a_status_that_is_refused_is_written_again_ever_more_rarely(kind, name):
    desk = gang(builders.Desk(), members=1)
    desk.feed(builders.group("large"), builders.pod("large-0", "large", cpu="9"))
    answered = 0
    for _ in range(600):
        desk.cycle()
        effects = desk.world.of(Patch)
        for effect in effects[answered:]:
            desk.settle(effect, "refused" if effect.name == name else None)
        answered = len(effects)
    written = [effect for effect in desk.world.patches(kind) if effect.name == name]
    assert 5 <= len(written) <= 25


def failing(code="unavailable"):
    """A desk at which the third member of a gang waits on n1 for its bind to be sent again, while there is room on n2."""
    desk = gang(builders.Desk())
    desk.cycle()
    first, second, third = desk.world.of(Bind)
    confirm(desk, first, second)
    desk.feed(builders.node("n2", cpu="1")).cycle()
    for _ in range(12):
        desk.settle(third, code).apply()
        third = desk.world.of(Bind)[-1]
    desk.settle(third, code).apply()
    assert desk.task("g-2").status == Status.BINDING
    return desk


SHIFTS = {
    "the node is deleted": lambda desk: desk.delete(builders.node("n1", cpu="3")),
    "the node is cordoned": lambda desk: desk.modify(builders.node("n1", cpu="3", cordoned=True)),
    "the node shrinks": lambda desk: desk.modify(builders.node("n1", cpu="2")),
    "the node is not ready": lambda desk: desk.modify(builders.node("n1", cpu="3", ready="False")),
    "somebody takes the room": lambda desk: desk.feed(builders.pod("x", node="n1", cpu="1", scheduler="x")),
}


@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS.keys())
def test_a_bind_is_not_sent_again_to_a_node_that_has_changed(shift):
    desk = failing()
    shift(desk).cycle(20)
    desk.cycle()
    assert desk.world.of(Bind)[-1].node == "n2"


@pytest.mark.parametrize("heartbeat", [False, True])
def test_a_bind_is_sent_again_to_the_node_that_was_chosen(heartbeat):
    desk = failing()
    if heartbeat:
        desk.modify(builders.node("n1", cpu="3", ready="True", annotations={"at": "now"}))
    sent = len(desk.world.of(Bind))
    desk.now += 20 * SECOND
    *before, again = desk.apply().world.of(Bind)
    assert (len(before), again.node) == (sent, "n1")


def test_room_is_let_go_if_others_are_bound_while_one_keeps_failing():
    desk = builders.Desk()
    desk.feed(builders.node("n1", cpu="1"), builders.node("n2", cpu="9"))
    desk.feed(builders.group("g"), builders.pod("g-0", "g", cpu="1"))
    answered = 0
    for waiting in range(40):
        desk.feed(builders.group(f"o-{waiting}"), builders.pod(f"o-{waiting}", f"o-{waiting}", cpu="0"))
        desk.cycle(20)
        binds = desk.world.of(Bind)
        for bind in binds[answered:]:
            desk.settle(bind, "unavailable" if bind.name == "g-0" else None)
        answered = len(binds)
    desk.apply()
    assert desk.task("g-0").status == Status.PENDING
    assert sum(bind.name == "g-0" for bind in desk.world.of(Bind)) > 5


def test_a_nomination_that_could_not_be_taken_off_is_taken_off_later():
    """`p` was nominated by an earlier scheduler, its node is gone; other writes about it that go well change nothing."""
    desk = builders.Desk(PREEMPTING).feed(builders.node("n1", cpu="1"), builders.group("g"))
    waiting = builders.pod("p", "g", cpu="2")
    waiting["status"]["nominatedNodeName"] = "n9"
    desk.feed(waiting).cycle()

    def removals():
        return [p for p in desk.world.of(Patch) if p.body["status"].get("nominatedNodeName", "") is None]

    assert len(removals()) == 1
    for expected in (2, 3):
        desk.settle(removals()[-1], "unavailable")
        for other in desk.world.of(Patch):
            if other.kind.name == "Pod" and other not in removals():
                desk.settle(other)
        for _ in range(2):
            desk.cycle()
        assert len(removals()) == expected
    desk.settle(removals()[-1]).modify(builders.pod("p", "g", cpu="2"))
    for _ in range(3):
        desk.cycle()
    assert len(removals()) == 3


@pytest.mark.parametrize("arrived", [True, False], ids=["arrived", "failed"])
def test_a_nomination_of_which_the_watch_tells_after_it_was_taken_off_is_none(arrived):
    """Between both writes of ours and their echo comes one more event, of the state between them."""
    desk = builders.Desk(PREEMPTING).feed(builders.node("n1", cpu="1"), builders.group("g"))
    nominated, free = builders.pod("p", "g", cpu="2"), builders.pod("p", "g", cpu="2")
    nominated["status"]["nominatedNodeName"] = "n9"
    desk.feed(nominated).cycle()

    def removals():
        return [p for p in desk.world.of(Patch) if p.body["status"].get("nominatedNodeName", "") is None]

    assert len(removals()) == 1
    nominated["metadata"]["labels"] = {"seen": "late"}
    desk.modify(nominated)
    desk.settle(removals()[-1], None if arrived else "unavailable")
    for _ in range(3):
        desk.cycle()
    assert not desk.task("p").nominated
    assert len(removals()) == (1 if arrived else 2)
    desk.modify(free).cycle()
    nominated["metadata"]["labels"] = {"by": "others"}
    desk.modify(nominated).cycle()  # somebody nominates it anew
    assert len(removals()) == (2 if arrived else 3)


@pytest.mark.parametrize("anew", [False, True])
def test_a_nomination_that_was_taken_off_before_the_watch_told_of_it_is_none_unless_it_was_written_anew(anew):
    desk = builders.Desk().feed(builders.node("n1"), builders.group("g", 2), builders.pod("p", "g", cpu="1")).apply()
    pods = desk.cache.publisher.pods
    report = TaskReport(desk.task("p"), "Unschedulable", "it waits", "n1")
    pods.publish(report, desk.now)
    pods.clear_nomination(desk.task("p"))
    if anew:
        pods.publish(report, desk.now)
    echo = builders.pod("p", "g", cpu="1")
    echo["status"]["nominatedNodeName"] = "n1"
    desk.modify(echo).apply()
    assert desk.task("p").nominated == ("n1" if anew else "")


def test_a_pod_that_is_to_get_the_node_of_which_a_nomination_was_taken_off_is_nominated_there():
    desk = builders.Desk().feed(builders.node("n1"), builders.group("g", 2))
    nominated = builders.pod("p", "g", cpu="1")
    nominated["status"]["nominatedNodeName"] = "n1"
    desk.feed(nominated).apply()
    desk.cache.publisher.pods.clear_nomination(desk.task("p"))
    late = {**nominated, "metadata": {**nominated["metadata"], "labels": {"seen": "late"}}}
    desk.modify(late).apply()
    assert desk.task("p").pod.status.nominated_node_name == ""
    desk.cache.publisher.pods.expect(desk.task("p"), "n1")
    desk.modify(nominated).apply()
    assert desk.task("p").pod.status.nominated_node_name == "n1"


def test_zeros_of_a_queue_that_never_arrived_are_written_again():
    desk = builders.Desk()
    held = builders.queue("default")
    held["status"] = {"state": "Open", "allocated": {"cpu": "4"}, "running": 1}
    desk.modify(held).cycle()
    (emptied,) = [patch for patch in desk.world.patches("Queue") if patch.name == "default"]
    assert emptied.body["status"]["allocated"]["cpu"] == "0"
    desk.settle(emptied, "unavailable").cycle()
    desk.cycle()
    again = [patch for patch in desk.world.patches("Queue") if patch.name == "default"]
    assert [patch.body for patch in again] == [emptied.body] * 2


def test_an_answer_about_an_object_that_is_gone_leaves_nothing_to_be_repeated():
    desk = builders.Desk()
    lonely = builders.pod("p", "g", cpu="1")
    desk.feed(builders.group("g"), lonely).cycle()
    patches = desk.world.of(Patch)
    assert {patch.kind.name for patch in patches} >= {"Pod", "PodGroup"}
    desk.delete(lonely, builders.group("g"), builders.queue("default"))
    for patch in patches:
        desk.settle(patch, "notfound")
    desk.cycle()
    assert desk.cache.publisher.next_wake() is None


def test_a_nomination_that_is_over_does_not_come_back_with_the_next_change_of_its_pod():
    """Its removal is refused, and the pod still says it; the room is for others all the same."""

    def waiting(label):
        pod = builders.pod("p", "g", cpu="2", labels={"x": label}, nodeSelector={"no": "where"})
        pod["status"]["nominatedNodeName"] = "n1"
        return pod

    desk = builders.Desk(PREEMPTING).feed(builders.node("n1", cpu="3"), builders.group("g"), waiting("0"))
    for _ in range(65):
        desk.cycle()
    assert not desk.scheduler.reservations.holds
    desk.settle(desk.world.of(Patch)[-1], "refused").modify(waiting("1")).cycle()
    assert not desk.scheduler.reservations.holds
    desk.feed(builders.group("r"), builders.pod("r", "r", cpu="2")).cycle()
    assert desk.world.binds == {"r": "n1"}
