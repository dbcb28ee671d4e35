"""What is written before binds: a party leaves whole or not at all, and what is not needed is taken back until that has arrived."""

from __future__ import annotations

import json

import pytest

from builders import SECOND, Desk, group, node, pod
from pumice.cache import retry_pauses
from pumice.cache.effects import Bind, Prepare, TakeBack
from pumice.model.preparations import ClaimGrant, NodeLock

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
LOCKING = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: deviceshare, arguments: {deviceshare.GPUSharingEnable: true, deviceshare.NodeLockEnable: true}}]
"""


def gpu_node(name, annotations=None):
    return node(
        name, cpu="64", annotations=annotations, **{"volcano.sh__gpu-memory": "32768", "volcano.sh__gpu-number": "4"}
    )


def asking(name, group_name="g", memory="1000"):
    made = pod(name, group_name, cpu="1")
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = {MEMORY: memory}
    resources["requests"] = {**resources.get("requests", {}), MEMORY: memory}
    return made


def gang(desk, size, name="g", nodes=("n1",)):
    desk.feed(*(gpu_node(each) for each in nodes), group(name, size))
    desk.feed(*(asking(f"{name}-{i}", name) for i in range(size)))
    desk.cycle()
    desk.cycle()
    return desk.world.of(Prepare)


def locks(effect):
    return [each for each in effect.preparations if isinstance(each, NodeLock)]


def pause(attempt):
    """Say how long something waits that failed so often in passing: twice as long with every failure."""
    return retry_pauses.FIRST_DELAY << (attempt - 1)


def test_a_bind_leaves_once_the_lock_is_written():
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    assert (prepare.name, prepare.node) == ("g-0", "n1")
    (lock,) = locks(prepare)
    assert (lock.node, lock.annotation) == ("n1", "gpu")
    assert desk.world.binds == {}
    desk.settle(prepare).cycle()
    assert desk.world.binds == {"g-0": "n1"}


def test_none_of_a_gang_is_bound_before_everything_is_written_for_all_of_them():
    desk = Desk(LOCKING)
    first, *others = gang(desk, 3)
    assert len({lock.stamp for each in (first, *others) for lock in locks(each)}) == 1
    for each in others:
        desk.settle(each).cycle()
    assert desk.world.binds == {}
    desk.settle(first).cycle()
    assert desk.world.binds == {"g-0": "n1", "g-1": "n1", "g-2": "n1"}


def test_if_one_lock_cannot_be_written_nobody_is_bound_and_all_is_taken_back():
    desk = Desk(LOCKING)
    first, second, third = gang(desk, 3)
    desk.settle(second).settle(first, "conflict", "node n1 is locked").apply()
    assert desk.world.binds == {}
    backs = desk.world.of(TakeBack)
    # One lock is shared by all of them, so the last that lets go of it gives it back.
    assert [each.preparations for each in backs] == [(locks(third)[0],)]
    assert [desk.task(f"g-{i}").status.name for i in range(3)] == ["PENDING"] * 3
    assert "node n1 is locked" in desk.task("g-1").refusal
    assert desk.cluster.with_bind.preparations == {}


def test_each_of_a_gang_that_cannot_leave_says_why_and_the_others_because_of_whom():
    desk = Desk(LOCKING)
    _, second, _ = gang(desk, 3)
    desk.settle(second, "conflict", "node n1 is locked").apply()
    others = "it leaves together with a/g-1: "
    assert [desk.task(f"g-{i}").refusal for i in range(3)] == [
        f"could not be prepared for node n1: {why}node n1 is locked" for why in (others, "", others)
    ]


def test_gangs_that_begin_at_the_same_moment_tell_their_locks_apart():
    desk = Desk(LOCKING).feed(gpu_node("n1"), gpu_node("n2"), gpu_node("n3"))
    for name in "ghi":
        desk.feed(group(name), asking(f"{name}-0", name))
    while len(desk.world.of(Prepare)) < 3:
        desk.cycle(seconds=0)
    assert len({lock.stamp for each in desk.world.of(Prepare) for lock in locks(each)}) == 3


@pytest.mark.parametrize("answered", [False, True])
def test_of_what_was_begun_for_a_pod_and_is_forgotten_nothing_is_due_and_nothing_taken_back(answered):
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    if answered:
        desk.settle(prepare).apply()
    preparing = desk.cache.assumptions.preparing
    preparing.forget(prepare.uid)
    assert not preparing.is_under_way(prepare.uid)
    assert preparing.next_wake() is None
    desk.delete(asking("g-0")).apply()
    assert desk.world.of(TakeBack) == []


@pytest.mark.parametrize("code", ["unavailable", "unknown"])
def test_what_failed_in_passing_is_written_again_a_few_times(code):
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    for attempt in range(1, 5):
        desk.settle(desk.world.of(Prepare)[-1], code).apply()
        assert desk.cache.next_wake() == desk.now + pause(attempt)
        desk.now += pause(attempt) - 1
        assert len(desk.apply().world.of(Prepare)) == attempt
        desk.now += 1
        assert len(desk.apply().world.of(Prepare)) == attempt + 1
        assert desk.world.of(Prepare)[-1] == prepare
    assert desk.world.of(TakeBack) == []
    desk.settle(desk.world.of(Prepare)[-1], code).apply()
    assert desk.task("g-0").status.name == "PENDING"
    assert len(desk.world.of(TakeBack)) == 1


def test_an_answer_that_stays_away_is_asked_for_again():
    desk = Desk(LOCKING)
    gang(desk, 1)
    desk.now += 31 * SECOND
    assert desk.cache.next_wake() <= desk.now
    desk.apply()
    assert len(desk.world.of(Prepare)) == 2
    assert desk.cache.next_wake() > desk.now


@pytest.mark.parametrize("code", ["refused", "notfound"])
def test_a_refused_bind_gives_its_lock_back_until_that_has_arrived(code):
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    desk.settle(prepare).apply()
    (bind,) = desk.world.of(Bind)
    desk.settle(bind, code).apply()
    (back,) = desk.world.of(TakeBack)
    assert back.preparations == prepare.preparations
    for attempt in range(1, 5):
        desk.settle(desk.world.of(TakeBack)[-1], "unknown").apply()
        assert desk.cache.next_wake() == desk.now + pause(attempt)
        assert f"attempt {attempt} failed, it will be repeated" in str(desk.cache.record.trace())
        desk.now += pause(attempt) - 1
        assert len(desk.apply().world.of(TakeBack)) == attempt
        desk.now += 1
        assert len(desk.apply().world.of(TakeBack)) == attempt + 1
    assert desk.world.of(TakeBack)[-1] == back
    again = len(desk.world.of(TakeBack))
    desk.settle(desk.world.of(TakeBack)[-1]).apply()
    desk.now += 60 * SECOND
    desk.apply()
    assert len(desk.world.of(TakeBack)) == again


def test_a_bind_that_failed_in_passing_is_sent_again_and_keeps_its_lock():
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    desk.settle(prepare).apply()
    (bind,) = desk.world.of(Bind)
    desk.settle(bind, "unavailable").apply()
    desk.now += SECOND
    desk.apply()
    assert len(desk.world.of(Bind)) == 2
    assert desk.world.of(TakeBack) == []


def test_once_a_pod_is_on_its_node_the_lock_is_left_to_the_device_plugin():
    desk = Desk(LOCKING)
    first, second = gang(desk, 2)
    desk.settle(first).settle(second).apply()
    one, other = desk.world.of(Bind)
    there = asking("g-0")
    there["spec"]["nodeName"] = "n1"
    desk.modify(there).settle(one).settle(other, "refused").apply()
    assert desk.world.of(TakeBack) == []
    assert desk.task("g-1").status.name == "PENDING"


def test_a_pod_that_goes_while_its_gang_is_prepared_keeps_nobody_waiting():
    desk = Desk(LOCKING)
    first, second = gang(desk, 2)
    desk.settle(first).delete(asking("g-1")).apply()
    assert desk.task("g-0").status.name == "PENDING"
    desk.settle(second).apply()
    assert desk.world.binds == {}
    assert desk.task("g-0").status.name == "PENDING"
    assert len(desk.world.of(TakeBack)) == 1


def going(name):
    return {**asking(name), "metadata": {**asking(name)["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def elsewhere(name):
    return {**asking(name), "spec": {**asking(name)["spec"], "nodeName": "n9"}}


@pytest.mark.parametrize(
    "change", [going, elsewhere, lambda _: asking("g-1", memory="-1")], ids=["goes", "elsewhere", "bad"]
)
@pytest.mark.parametrize("when", ["at once", "with the last answer"])
def test_a_gang_of_which_one_cannot_leave_any_more_stays_whole_and_gives_back_what_was_written(change, when):
    desk = Desk(LOCKING)
    first, second = gang(desk, 2)
    desk.settle(first).modify(change("g-1"))
    if when == "at once":
        desk.apply()
    desk.settle(second).apply()
    assert desk.world.binds == {}
    assert desk.task("g-0").status.name == "PENDING"
    assert len(desk.world.of(TakeBack)) == 1


def test_nothing_is_due_about_a_gang_that_could_not_leave_once_all_is_taken_back():
    desk = Desk(LOCKING)
    first, second = gang(desk, 2)
    desk.settle(first).settle(second).modify(going("g-1")).apply()
    (back,) = desk.world.of(TakeBack)
    assert desk.cache.assumptions.next_wake() is not None
    desk.settle(back).apply()
    assert desk.cache.assumptions.next_wake() is None


def test_whoever_is_seen_on_another_node_keeps_nobody_waiting_and_leaves_no_lock():
    desk = Desk(LOCKING)
    gang(desk, 2)
    desk.modify(elsewhere("g-1")).apply()
    assert desk.task("g-0").status.name == "PENDING"
    assert len(desk.world.of(TakeBack)) == 1
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    desk.settle(prepare).apply()
    assert desk.world.binds == {"g-0": "n1"}
    desk.modify(elsewhere("g-0")).apply()
    assert [each.preparations for each in desk.world.of(TakeBack)] == [prepare.preparations]


def test_what_is_taken_back_is_sent_again_if_no_answer_comes_and_once_only():
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    desk.settle(prepare, "conflict").apply()
    for count in (2, 3):
        desk.now += 31 * SECOND
        for _ in range(3):
            desk.apply()
        assert len(desk.world.of(TakeBack)) == count


def test_nobody_is_asked_for_a_pod_whose_bind_has_not_left():
    desk = Desk(LOCKING)
    gang(desk, 1)
    for _ in range(4):
        desk.now += 40 * SECOND
        desk.apply()
    assert desk.world.reads == []


def test_binds_whose_ground_has_shifted_do_not_leave():
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    cordoned = gpu_node("n1")
    cordoned["spec"]["unschedulable"] = True
    desk.modify(cordoned).settle(prepare).apply()
    assert desk.world.binds == {}
    assert len(desk.world.of(TakeBack)) == 1
    assert "does not hold any more" in desk.task("g-0").refusal


def test_a_locked_node_takes_no_other_pod_with_cards_and_everybody_else():
    desk = Desk(LOCKING)
    young = "2025-12-31T23:58:00Z"
    desk.feed(
        gpu_node("n1", {"gpu": young}),
        group("g", 1),
        asking("g-0"),
        group("plain", 1),
        pod("plain-0", "plain", cpu="1"),
    )
    desk.cycle()
    record = desk.cycle()
    assert desk.world.binds == {"plain-0": "n1"}
    assert "1 node(s) were locked while their device plugin serves another pod" in record.explain("a/g")
    desk.now += 180 * SECOND
    desk.cycle()
    assert [each.name for each in desk.world.of(Prepare)] == ["g-0"]


@pytest.mark.parametrize(
    "text", ["", "nonsense", "2025-12-31T23:54:00Z", "2027-01-01T00:00:00Z", "2025-12-31T23:50:00Z,a,p"]
)
def test_a_lock_that_is_old_or_says_no_time_holds_nobody(text):
    desk = Desk(LOCKING)
    desk.feed(gpu_node("n1", {"gpu": text}), group("g", 1), asking("g-0"))
    desk.cycle()
    desk.cycle()
    assert [each.name for each in desk.world.of(Prepare)] == ["g-0"]


def test_two_jobs_do_not_lock_one_node_at_once():
    desk = Desk(LOCKING)
    desk.feed(gpu_node("n1"), gpu_node("n2"), group("g", 1), group("h", 1), group("i", 1))
    desk.feed(asking("g-0", "g"), asking("h-0", "h"), asking("i-0", "i"))
    desk.cycle()
    desk.cycle()
    desk.cycle()
    assert sorted(each.node for each in desk.world.of(Prepare)) == ["n1", "n2"]
    assert "2 node(s) were locked while" in desk.cycle().explain("a/i")


def test_members_that_share_a_claim_all_say_which_devices_it_gets():
    desk = Desk(LOCKING)
    desk.feed(gpu_node("n1"), group("g", 2), pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu="1")).apply()
    chosen = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
    for name, allocation in (("g-0", None), ("g-1", chosen)):
        task = desk.task(name)
        claim = ClaimGrant(namespace="a", claim="shared", uid="u", pod=name, pod_uid=task.uid, allocation=allocation)
        desk.cluster.with_bind.prepare(task.uid, [claim])
    desk.cycle()
    desk.cycle()
    wanted = desk.world.of(Prepare)
    assert [json.dumps(each.preparations[0].allocation) for each in wanted] == [json.dumps(chosen)] * 2


def test_what_is_wanted_again_is_not_taken_back_later():
    desk = Desk(LOCKING)
    (prepare,) = gang(desk, 1)
    task = desk.task("g-0")
    claim, other = (ClaimGrant(namespace="a", claim=name, uid="u", pod="g-0", pod_uid=task.uid) for name in "cd")
    preparing = desk.cache.assumptions.preparing
    preparing._written[task.uid] = Prepare(  # noqa: SLF001  what a claim that was asked for meanwhile leaves
        namespace="a", name="g-0", uid=task.uid, node="n1", preparations=(*prepare.preparations, claim, other)
    )
    desk.settle(prepare, "conflict").apply()
    (back,) = desk.world.of(TakeBack)
    assert claim in back.preparations
    desk.settle(back, "unavailable").apply()
    bind = Bind(namespace="a", name="g-0", uid=task.uid, node="n1")
    preparing.begin([bind], {task.uid: (claim,)}, desk.now)
    desk.now += 60 * SECOND
    desk.apply()
    assert desk.world.of(TakeBack)[-1].preparations == (*prepare.preparations, other)
