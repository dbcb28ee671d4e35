"""Of what is gone nothing is kept, and nothing is due: neither for an object that comes under the same name, nor for ever."""

from __future__ import annotations

import pytest

from builders import SECOND, Desk, group, metadata, node, pod, queue
from containers import entries
from pumice.api import kinds
from pumice.cache.effects import Bind, Evict, Note, Patch
from pumice.cache.options import Options

NATIVE = {
    "apiVersion": kinds.NATIVE_POD_GROUP.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "a", "uid": "native.g"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}


def kept(desk):
    """Count what the parts of the cache hold for themselves, of queues nothing: these stay."""
    cache = desk.cache
    parts = (cache.assumptions, cache.publisher, cache.pods, cache.native_groups, cache.shadows)
    beyond = (cache, desk.cluster, desk.world, cache.options, cache.record, cache.claims, cache.objects)
    found = entries(*parts, beyond=beyond)
    return {path: size for path, size in found.items() if size and not path.startswith("Publisher._paces._queues.")}


def answer(desk, code):
    """Answer everything that was sent and is about no queue, and forget it."""
    sent = [each for each in desk.world.of(Bind, Patch, Evict) if getattr(each, "kind", None) is not kinds.QUEUE]
    for each in sent:
        desk.settle(each, code)
    desk.world.effects.clear()
    return desk


@pytest.mark.parametrize("native", [False, True], ids=["volcano", "native"])
def test_nothing_is_kept_of_a_group_and_its_pods_once_they_are_gone_whatever_failed_meanwhile(native):
    desk = Desk().feed(node("n1", cpu="4"))
    desk.cycle()
    before = kept(desk)
    more = {"schedulingGroup": {"podGroupName": "g"}} if native else {}
    name = "" if native else "g"
    pods = [
        pod("p", name, cpu="2", **more),
        pod("q", name, cpu="8", **more),
        pod("r", name, cpu="1", node="n1", **more),
    ]
    pods[1]["status"]["nominatedNodeName"] = "n1"
    desk.feed(NATIVE if native else group("g", 2), *pods).cycle()
    assert desk.world.binds
    for code in ("unavailable", "unavailable", "refused"):
        answer(desk, code).cycle()
    desk.cache.evict(desk.task("r"), "somebody else")
    desk.cache.publisher.pods.clear_nomination(desk.task("q"))
    desk.cache.take_gate_off(desk.task("q"))
    for code in ("unavailable", "refused"):
        answer(desk, code).cycle()
    assert len(kept(desk)) > len(before)
    desk.delete(*pods, NATIVE if native else group("g", 2)).cycle()
    assert kept(desk) == before


def test_nothing_is_kept_of_a_native_group_with_which_something_was_wrong():
    wrong = {**NATIVE, "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}}
    desk = Desk().apply()
    before = kept(desk)
    member = pod("p", cpu="1", schedulingGroup={"podGroupName": "g"})
    desk.feed(wrong, member).apply()
    assert kept(desk) != before
    desk.delete(wrong, member).apply()
    assert kept(desk) == before


def test_nothing_is_due_about_pods_that_are_gone():
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1", node="n1"), pod("q", "g", cpu="1"))
    desk.cycle()
    desk.cache.evict(desk.task("p"), "somebody else")
    assert desk.cache.assumptions.next_wake() is not None
    desk.delete(pod("p", "g"), pod("q", "g")).apply()
    assert desk.cache.assumptions.next_wake() is None


@pytest.mark.parametrize("made", [group("g", 2), NATIVE], ids=["volcano", "native"])
def test_a_group_that_comes_anew_under_the_same_name_is_told_anew_why_it_waits(made):
    of = {"schedulingGroup": {"podGroupName": "g"}} if made is NATIVE else {}
    pods = [pod(f"g-{i}", "" if of else "g", cpu="9", **of) for i in range(2)]
    desk = Desk().feed(node("n1"), made, *pods)
    for _ in range(2):
        desk.cycle()
    desk.delete(made).cycle()
    desk.feed({**made, "metadata": {**made["metadata"], "uid": "another"}})
    for _ in range(2):
        desk.cycle()
    told = [each for each in desk.world.of(Note) if each.kind.name == "PodGroup" and each.reason == "Unschedulable"]
    first, second = ([each.message for each in told if each.uid == uid] for uid in (made["metadata"]["uid"], "another"))
    assert first == second != []


def test_pods_of_a_native_group_that_is_gone_wait_for_another():
    of = {"schedulingGroup": {"podGroupName": "g"}}
    desk = Desk().feed(node("n1"), NATIVE, pod("g-0", cpu="1", **of)).apply()
    desk.delete(NATIVE).feed(pod("g-1", cpu="1", **of))
    for _ in range(3):
        desk.cycle()
    assert desk.world.binds == {}


def test_a_group_is_written_in_the_version_in_which_it_was_read_last():
    desk, older = Desk(), {**group("g"), "apiVersion": kinds.INCUBATOR_POD_GROUP.api_version}
    desk.cache.feed(kinds.INCUBATOR_POD_GROUP, "ADDED", older)
    desk.cycle()
    desk.modify(group("g"), node("n1")).feed(pod("p", "g", cpu="1", node="n1"))
    desk.cycle()
    assert [each.kind for each in desk.world.patches("PodGroup")] == [kinds.INCUBATOR_POD_GROUP, kinds.POD_GROUP]


def test_an_eviction_that_was_given_up_is_over():
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1", node="n1")).apply()
    desk.cache.is_given_up = lambda _cluster, _victim: True
    desk.cache.evict(desk.task("p"), "somebody else")
    desk.settle(desk.world.of(Evict)[-1], "refused").apply()
    given_up, sent = desk.task("p").eviction_refused, len(desk.world.of(Evict))
    assert given_up == desk.now
    for _ in range(3):
        desk.now += 40 * SECOND
        desk.apply()
    assert desk.task("p").eviction_refused == given_up
    assert len(desk.world.of(Evict)) == sent
    assert desk.cache.assumptions.next_wake() is None


def test_what_a_queue_was_told_is_remembered_though_nothing_is_wrong_with_it_otherwise():
    manifest = queue("q", capability={"cpu": "4"}, guarantee={"resource": {"cpu": "5"}})
    desk = Desk().feed(manifest).apply()
    desk.modify({**manifest, "metadata": {**manifest["metadata"], "labels": {"a": "b"}}}).apply()
    assert len([each for each in desk.world.of(Note) if each.name == "q"]) == 1


def test_nobody_is_woken_for_a_pod_that_waited_for_its_group_and_is_gone_though_nobody_looked():
    desk = Desk().feed(pod("p", "missing", cpu="1")).apply()
    assert desk.cache.next_wake() is not None
    desk.delete(pod("p", "missing"))
    desk.cache.apply(desk.now, standby=True)
    assert desk.cache.next_wake() is None


def test_of_queues_and_budgets_that_are_gone_nothing_is_kept():
    desk = Desk().apply()
    before = entries(desk.cache.publisher, beyond=(desk.cache, desk.cluster, desk.world))
    older = {**queue("q"), "apiVersion": kinds.INCUBATOR_QUEUE.api_version}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata("b", "a"), "spec": {}}
    desk.feed(older, budget).cycle()
    desk.cluster.disruptions["a/b"] = ("1", 1)
    desk.delete(older, budget)
    desk.now += 2 * SECOND
    desk.apply()
    assert desk.cluster.disruptions == {}
    assert entries(desk.cache.publisher, beyond=(desk.cache, desk.cluster, desk.world)) == before


def test_a_pod_that_is_gone_is_waited_with_for_its_group_no_longer():
    desk = Desk()
    before = kept(desk)
    owned = {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": True}]}
    pods = [pod(name, cpu="1") for name in "pq"]
    for each in pods:
        each["metadata"] |= owned
    desk.feed(*pods).apply()
    assert kept(desk) != before
    desk.delete(pods[0]).apply()
    both = kept(desk)
    desk.feed(pods[0]).delete(pods[0]).apply()
    assert kept(desk) == both
    desk.delete(pods[1]).apply()
    assert kept(desk) == before


def test_an_object_that_comes_anew_is_told_anew_what_is_wrong_with_it():
    manifest = queue("q", capability={"cpu": "4"}, guarantee={"resource": {"cpu": "5"}})
    desk = Desk().feed(manifest).apply()
    for _ in range(2):
        desk.delete(manifest).feed(manifest).apply()
    assert len([each for each in desk.world.of(Note) if each.name == "q"]) == 3


def test_no_status_is_owed_to_a_group_that_is_gone():
    desk = Desk(options=Options(reason_patience=SECOND)).feed(node("n1", cpu="4"))
    desk.cycle()
    before = kept(desk)
    desk.feed(group("g", 2), pod("p", "g", cpu="1"), pod("q", "g", cpu="1")).cycle(seconds=0)
    assert desk.cache.publisher.is_writing("a/g")
    desk.delete(group("g", 2), pod("p", "g"), pod("q", "g")).apply()
    assert kept(desk) == before


def test_a_queue_is_written_in_the_version_in_which_it_was_read_last():
    older = {**queue("q"), "apiVersion": kinds.INCUBATOR_QUEUE.api_version}
    desk = Desk().feed(older, node("n1"), group("g", queue="q"), pod("p", "g", cpu="1", node="n1"))
    desk.cycle(seconds=2)
    desk.modify(queue("q")).delete(pod("p", "g")).cycle()
    written = [each.kind for each in desk.world.patches("Queue") if each.name == "q"]
    assert written == [kinds.INCUBATOR_QUEUE, kinds.QUEUE]


def test_nothing_is_wrong_any_more_with_a_node_that_is_not_selected():
    desk = Desk(options=Options(node_selector=("pool:batch",)))
    desk.feed(node("n1", cpu="-1", labels={"pool": "batch"})).apply()
    assert desk.cache.record.problems("")
    desk.modify(node("n1", cpu="-1", labels={"pool": "web"})).apply()
    assert desk.cache.record.problems("") == {}


def hyper_node(name, member, uid):
    spec = {"tier": 2, "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": member}}}]}
    made = {"apiVersion": kinds.HYPER_NODE.api_version, "kind": "HyperNode", "spec": spec}
    return {**made, "metadata": metadata(name, uid=uid)}


def test_a_hyper_node_in_place_of_another_is_told_what_is_wrong_with_it():
    desk = Desk().feed(hyper_node("a", "b", "a1"), hyper_node("b", "a", "b1")).apply()
    told = {each.uid: each.message for each in desk.world.of(Note) if each.kind is kinds.HYPER_NODE}
    assert told
    for uid in told:
        old = hyper_node("ab"[uid == "b1"], "ab"[uid == "a1"], uid)
        desk.delete(old).feed({**old, "metadata": {**old["metadata"], "uid": f"new {uid}"}})
    desk.apply()
    again = {each.uid: each.message for each in desk.world.of(Note) if each.uid.startswith("new ")}
    assert again == {f"new {uid}": message for uid, message in told.items()}


def test_a_native_group_in_place_of_another_says_for_itself_why_it_waits():
    of = {"schedulingGroup": {"podGroupName": "g"}}
    desk = Desk().feed(node("n1"), NATIVE, *(pod(f"g-{i}", cpu="9", **of) for i in range(2)))
    desk.cycle()
    desk.modify({**NATIVE, "metadata": {**NATIVE["metadata"], "uid": "another"}})
    for _ in range(2):
        desk.cycle()
    said = [each for each in desk.world.of(Patch, Note) if each.kind is kinds.NATIVE_POD_GROUP]
    for kind, times in ((Patch, 1), (Note, 2)):
        assert [each.uid for each in said if isinstance(each, kind)] == ["native.g"] * times + ["another"] * times


def test_of_a_bind_that_has_arrived_nothing_is_kept_though_it_failed_before():
    found = []
    for failures in range(3):
        desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
        desk.cycle()
        for _ in range(failures):
            desk.settle(desk.world.of(Bind)[-1], "unavailable").apply()
            desk.now += SECOND
            desk.apply()
        assert len(desk.world.of(Bind)) == failures + 1
        desk.settle(desk.world.of(Bind)[-1]).modify(pod("p", "g", cpu="1", node="n1")).apply()
        found.append({path for path in kept(desk) if path.startswith("Assumptions.")})
    assert found[1:] == found[:1] * 2


def test_of_a_group_that_is_gone_nothing_is_said_any_more_though_its_pods_are_there():
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="99"))
    desk.cycle()
    assert "Inqueue" in desk.cache.record.explain("a/g")
    desk.delete(group("g")).apply()
    assert desk.cache.record.explain("a/g") == ""


def test_a_job_without_a_group_is_forgotten_with_its_last_pod():
    desk = Desk().feed(pod("p", "g", cpu="1")).apply()
    desk.now += 10 * SECOND
    assert "does not exist" in desk.apply().cache.record.explain("a/g")
    desk.delete(pod("p", "g")).apply()
    assert desk.cache.record.explain("a/g") == ""


def test_nobody_is_woken_for_the_numbers_of_a_group_in_memory_that_is_gone():
    desk = Desk(options=Options(renews_numbers=True)).feed(node("n1", cpu="8"))
    desk.cache.follow(kube_batch=True, now=desk.now)
    others = [pod(f"o{number}", cpu="3", node="n1") for number in range(2)]
    desk.feed(*others, pod("p", cpu="8")).cycle()
    desk.delete(others[0]).cycle()
    assert desk.cache.publisher.next_wake() is not None
    desk.delete(pod("p")).apply()
    assert desk.cache.publisher.next_wake() is None
