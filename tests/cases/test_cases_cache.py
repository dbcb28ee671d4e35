"""What the cache makes of events and outcomes: worked cases of cache.md that a scenario cannot time."""

from __future__ import annotations

import itertools

from builders import SECOND, Desk, group, node, pod
from pumice.cache.effects import Bind, Evict
from pumice.model.statuses import Status


def idle(desk, name="n1"):
    view = desk.cluster.nodes.view()
    return int(view.idle[desk.node(name).row, 0])


def placed(desk):
    """Run a cycle that sends the bind of pod `p` to node n1."""
    desk.feed(node("n1", cpu="4"), group("g"), pod("p", "g", cpu="2"))
    desk.cycle()
    assert desk.world.binds == {"p": "n1"}
    return desk


def test_case_5_an_update_without_a_node_does_not_undo_a_bind_under_way():
    desk = placed(Desk())
    desk.modify(pod("p", "g", cpu="2", labels={"changed": "yes"})).apply()
    assert (desk.task("p").status, idle(desk)) == (Status.BINDING, 2000)
    desk.modify(pod("p", "g", cpu="2", node="n1", phase="Pending")).apply()
    assert (desk.task("p").status, idle(desk)) == (Status.BOUND, 2000)


def test_case_4_pods_of_an_unknown_node_count_when_it_comes():
    desk = Desk().feed(pod("early", cpu="3", node="n9", scheduler="other")).apply()
    assert desk.cluster.nodes.count == 0
    desk.feed(node("n9", cpu="4")).apply()
    assert idle(desk, "n9") == 1000


def test_case_7_room_that_was_taken_before_the_cycle_is_not_promised_again():
    desk = Desk().feed(node("n1", cpu="4"), group("g"), pod("p", "g", cpu="2"))
    desk.feed(pod("foreign", cpu="3", node="n1", scheduler="other"))
    desk.cycle()
    assert not desk.world.binds
    assert desk.task("p").status == Status.PENDING


def test_case_8_a_bind_that_the_server_rejects_is_told_and_tried_again():
    desk = placed(Desk())
    desk.settle(desk.world.of(Bind)[0], "refused", "the server says no").apply()
    assert (desk.task("p").status, idle(desk)) == (Status.PENDING, 4000)
    (condition,) = desk.world.patches("Pod")[-1].body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulerError")
    assert "n1" in condition["message"]
    assert "the server says no" in condition["message"]
    desk.cycle()
    assert [effect.name for effect in desk.world.of(Bind)] == ["p", "p"]


def test_a_bind_that_keeps_failing_is_tried_less_and_less_often():
    desk = placed(Desk())
    tried = []
    for second in range(120):
        sent = desk.world.of(Bind)
        if len(sent) > len(tried):
            tried.append(second)
            desk.settle(sent[-1], "refused")
        desk.cycle()
    gaps = [after - before for before, after in itertools.pairwise(tried)]
    assert len(tried) < 25
    assert gaps[-1] > gaps[0]


def test_design_10_an_unknown_outcome_holds_its_room_until_the_pod_was_read():
    desk = placed(Desk())
    desk.settle(desk.world.of(Bind)[0], "unknown").apply()
    assert (desk.task("p").status, idle(desk)) == (Status.BINDING, 2000)
    assert desk.world.reads == ["p"]
    read = next(effect for effect in desk.world.effects if type(effect).__name__ == "Read")
    desk.settle(read, read=pod("p", "g", cpu="2", node="n1")).apply()
    assert desk.task("p").status == Status.RUNNING


def test_design_10_a_bind_that_did_not_arrive_is_sent_again():
    desk = placed(Desk())
    desk.settle(desk.world.of(Bind)[0], "unknown").apply()
    read = next(effect for effect in desk.world.effects if type(effect).__name__ == "Read")
    desk.settle(read, read=pod("p", "g", cpu="2")).apply()
    assert desk.task("p").status == Status.BINDING  # its room stays taken until then
    desk.cycle(seconds=5)
    assert len(desk.world.of(Bind)) == 2


def test_design_10_a_bind_that_nothing_confirms_is_looked_after():
    desk = placed(Desk())
    desk.settle(desk.world.of(Bind)[0])
    desk.now += 60 * SECOND
    desk.cycle()
    assert desk.world.reads == ["p"]  # the peer waits for ever (cache.md 13, pitfall 2)


def test_case_10_an_eviction_is_told_on_the_pod_and_on_its_group():
    desk = Desk().feed(node("n1"), group("g", 0), pod("v", "g", cpu="1", node="n1"))
    session = desk.session()
    statement = session.statement()
    statement.evict([desk.task("v")], "preempt")
    statement.commit()
    (effect,) = desk.world.of(Evict)
    assert (effect.name, effect.reason) == ("v", "preempt")
    assert desk.task("v").status == Status.EVICTING
    assert ("v", "Evict", "Pod is evicted, because of preempt") in desk.world.notes
    assert ("g", "Evict", "preempt") in desk.world.notes


def test_case_11_with_ours_30_an_eviction_is_repeated_until_the_pod_is_going():
    desk = Desk().feed(node("n1"), group("g", 0), pod("v", "g", cpu="1", node="n1"))
    statement = desk.session().statement()
    statement.evict([desk.task("v")], "preempt")
    statement.commit()
    desk.settle(desk.world.of(Evict)[0], "unavailable")
    for _ in range(3):
        desk.cycle()
    assert len(desk.world.of(Evict)) > 1
    desk.modify(pod("v", "g", cpu="1", node="n1", deleting=True)).apply()
    sent = len(desk.world.of(Evict))
    for _ in range(5):
        desk.cycle()
    assert len(desk.world.of(Evict)) == sent


def test_case_12_a_group_that_is_created_again_is_not_removed_by_the_end_of_its_predecessor():
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1", node="n1")).apply()
    desk.delete(group("g")).apply()
    assert desk.cluster.jobs["a/g"].group is None
    again = group("g")
    again["metadata"]["uid"] = "another"
    desk.feed(again).delete(pod("p", "g", cpu="1", node="n1")).apply()
    assert desk.cluster.jobs["a/g"].uid == "another"


def test_case_12_a_job_without_group_and_pods_is_forgotten():
    desk = Desk().feed(group("g"), pod("p", "g", cpu="1")).apply()
    desk.delete(group("g"), pod("p", "g", cpu="1")).apply()
    assert "a/g" not in desk.cluster.jobs


def test_case_3_a_foreign_pod_without_a_node_is_not_kept():
    desk = Desk().feed(pod("p", "g", cpu="1", scheduler="other")).apply()
    assert not desk.cluster.tasks


def test_case_2_a_foreign_pod_is_in_no_job_unless_it_carries_the_group_key():
    desk = Desk().feed(node("n1"), pod("p", cpu="2", node="n1", scheduler="other")).apply()
    assert idle(desk) == 6000
    assert desk.task("p").job is None
