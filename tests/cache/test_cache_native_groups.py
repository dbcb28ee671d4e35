"""Groups of Kubernetes' own: what is written about them, in which order, and what becomes of gangs in random lives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import SECOND, Desk, node, pod
from containers import entries
from drawing import drawn
from pumice.api import kinds, names
from pumice.cache.effects import Evict, Note, Patch
from pumice.framework import configuration, registry
from pumice.model import group_meaning, native_groups
from pumice.scenario.stage import SimulatedStage
from pumice.scheduler import Options

KNOWN = registry.installed()
API = kinds.NATIVE_POD_GROUP.api_version


def group(name="g", count=2, **spec):
    policy = {"gang": {"minCount": count}}
    return {
        "apiVersion": API,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "a", "uid": f"native.{name}", "generation": 4},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def member(name, of="g", **more):
    made = pod(name, cpu="1", **more)
    made["spec"]["schedulingGroup"] = {"podGroupName": of}
    return made


def conditions(desk):
    return [each.body["status"]["conditions"] for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]


@pytest.mark.parametrize("answer", [None, "refused", "notfound", "unavailable"])
def test_a_group_that_goes_whole_is_marked_before_the_first_of_its_pods_goes(answer):
    desk = Desk()
    running = [member(f"g-{i}", node="n1") for i in range(3)]
    desk.feed(node("n1"), group(count=1, disruptionMode="PodGroup"), *running).apply()
    for number in range(3):
        desk.cache.evict(desk.task(f"g-{number}"), "somebody else")
    marks = [each for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]
    assert [each["type"] for mark in marks for each in mark.body["status"]["conditions"]] == ["DisruptionTarget"]
    assert desk.world.of(Evict) == []
    desk.settle(marks[0], answer).apply()
    assert sorted(desk.world.evictions) == ["g-0", "g-1", "g-2"]


def test_a_pod_of_a_group_that_gives_single_pods_goes_at_once():
    desk = Desk()
    desk.feed(node("n1"), group(count=1), member("g-0", node="n1")).apply()
    desk.cache.evict(desk.task("g-0"), "somebody else")
    assert desk.world.evictions == ["g-0"]
    assert conditions(desk) == []


def test_a_condition_is_written_once_with_the_generation_it_is_about():
    desk = Desk()
    desk.feed(node("n1", cpu="1"), group(), member("g-0"), member("g-1"))
    for _ in range(4):
        desk.cycle()
    ((stated,),) = conditions(desk)
    assert (stated["type"], stated["status"], stated["reason"]) == ("PodGroupScheduled", "False", "Unschedulable")
    assert stated["observedGeneration"] == 4


def test_what_was_written_before_a_restart_is_not_written_again():
    desk = Desk()
    said = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "message": ""}
    known = {**group(), "status": {"conditions": [said]}}
    desk.feed(node("n1"), known, member("g-0", node="n1"), member("g-1", node="n1"))
    desk.cycle()
    desk.delete(member("g-1")).feed(member("g-2"), member("g-3"))
    desk.cycle()
    assert conditions(desk) == []


def test_a_condition_that_did_not_arrive_is_written_again_with_the_whole_second_of_its_first_writing():
    desk = Desk()
    desk.now += 1_600_000
    desk.feed(node("n1", cpu="1"), group(), member("g-0"), member("g-1"))
    desk.cycle()
    for count in (1, 2):
        sent = [each for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]
        assert len(sent) == count
        desk.settle(sent[-1], "unavailable").apply()
    assert (
        desk.now < desk.cache.next_wake() <= desk.now + 60_000_000
    )  # the first failure costs no pause, the second does
    desk.now = desk.cache.next_wake()
    desk.apply()
    first, second, third = conditions(desk)
    assert first == second == third
    assert first[0]["lastTransitionTime"] == "2026-01-01T00:00:01Z"


def test_a_group_that_runs_starts_again_where_it_stood():
    desk = Desk().feed(node("n1"), group(count=2), member("g-0", node="n1"), member("g-1", node="n1")).apply()
    assert desk.cluster.jobs["a/g@scheduling.k8s.io"].status.phase == "Running"
    desk = Desk().feed(node("n1"), group(count=2), member("g-0", node="n1"), member("g-1")).apply()
    assert desk.cluster.jobs["a/g@scheduling.k8s.io"].status.phase == "Inqueue"


def test_a_group_that_was_let_in_stays_so_when_a_pod_joins_it():
    desk = Desk().feed(node("n1", cpu="1"), group(), member("g-0"), member("g-1"))
    desk.cycle()
    job = desk.task("g-0").job
    assert job.phase == "Inqueue"
    desk.feed(member("g-2")).apply()
    assert job.phase == "Inqueue"


def test_what_is_wrong_with_a_group_is_told_until_it_is_right_or_gone():
    wrong = group(count=0)
    desk = Desk().feed(wrong, member("g-0")).apply()
    key = "a/g@scheduling.k8s.io"
    assert "minCount" in str(desk.cache.record.problems(key))
    desk.modify(group(count=1)).apply()
    assert desk.cache.record.problems(key) == {}
    desk.modify(wrong).apply()
    assert desk.cache.record.problems(key)
    desk.delete(wrong).apply()
    assert desk.cache.record.problems(key) == {}


def test_the_queue_of_a_group_follows_the_annotations_of_its_namespace():
    def namespace(name, queue):
        told = {"annotations": {names.QUEUE_NAME: queue}} if queue else {}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": f"n.{name}", **told}}

    desk = Desk().feed(group(), member("g-0")).apply()
    for queue, event in (("q", "ADDED"), ("r", "MODIFIED")):
        desk.feed(namespace("a", queue), namespace("b", "other"), event=event).apply()
        assert desk.task("g-0").job.queue == queue


def test_the_minimum_room_of_a_group_follows_the_pods_that_go():
    desk = Desk().feed(group(), member("g-0"), member("g-1")).apply()
    assert desk.task("g-0").job.group.spec.minimum is not None
    desk.delete(member("g-1")).apply()
    assert desk.task("g-0").job.group.spec.minimum is None


@pytest.mark.parametrize("end", ["goes", "gets a node", "is ours"])
def test_a_member_of_another_scheduler_is_named_as_long_as_it_has_no_node(end):
    def held():
        return desk.apply().task("g-0").job.held

    desk = Desk().feed(group(count=3), member("g-0"), member("x", scheduler="else"), member("y", scheduler="else"))
    told = "waiting for 2 more pods of the gang, those of other schedulers count once they have a node: "
    assert held() == f"{told}x (else), y (else)"
    if end == "goes":
        desk.delete(member("x", scheduler="else"))
    else:
        desk.modify(member("x") if end == "is ours" else member("x", scheduler="else", node="n1"))
    left = 2 if end == "goes" else 1
    assert held() == f"{told.replace('for 2', f'for {left}')}y (else)"
    desk.delete(member("y", scheduler="else"))
    assert held() == f"waiting for {left} more pods of the gang"


def test_a_pod_that_names_groups_of_both_apis_is_told_once_which_counts_and_its_successor_too():
    both = member("p", annotations={names.GROUP_NAME: "v"})
    desk = Desk().feed(both).apply()
    desk.modify({**both, "metadata": {**both["metadata"], "labels": {"any": "change"}}}).apply()

    def told():
        return [message for name, reason, message in desk.world.notes if reason == "SchedulingGroupNotHeeded"]

    (text,) = told()
    assert text.startswith("spec.schedulingGroup.podGroupName g is not heeded")
    desk.delete(both).feed(both).apply()
    assert told() == [text] * 2


@pytest.mark.parametrize("wrong", [group(count=0), {**group(), "spec": "x"}], ids=["senseless", "unreadable"])
def test_a_group_says_itself_what_is_wrong_with_it_and_no_longer_once_it_is_right(wrong):
    desk = Desk().feed(node("n1", cpu="1"), wrong, member("g-0"), member("g-1"))
    for _ in range(3):
        desk.cycle()
    ((stated,),) = conditions(desk)
    assert (stated["type"], stated["status"], stated["reason"]) == ("PodGroupScheduled", "False", "SchedulerError")
    problem = stated["message"]
    assert desk.cache.record.explain("a/g@scheduling.k8s.io").startswith(
        f"a/g@scheduling.k8s.io: the PodGroup is invalid: {problem}"
    )
    desk.modify(group())
    for _ in range(3):
        desk.cycle()
    assert [each["reason"] for several in conditions(desk) for each in several] == ["SchedulerError", "Unschedulable"]


def test_a_group_that_breaks_us_costs_the_next_nothing(monkeypatch):
    described = group_meaning.described

    def broken(found, *more):
        if found.metadata.name == "g":
            raise RuntimeError("no such luck")
        return described(found, *more)

    monkeypatch.setattr(group_meaning, "described", broken)
    desk = Desk().feed(node("n1"), group(count=1), group("h", 1), member("g-0"), member("h-0", "h"))
    record = desk.cycle()
    assert desk.world.binds == {"h-0": "n1"}
    assert "PodGroup a/g@scheduling.k8s.io could not be described: RuntimeError: no such luck" in str(record.trace())
    assert [str(failure) for failure in desk.scheduler.failures] == ["no such luck"]


def test_a_status_is_merged_by_the_types_of_its_conditions_and_nobody_waits_for_it():
    desk = Desk().feed(node("n1", cpu="1"), group(), member("g-0"), member("g-1"))
    desk.cycle()
    (patch,) = [each for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]
    assert (patch.namespace, patch.name, patch.uid) == ("a", "g", "native.g")
    assert (patch.subresource, patch.strategic, patch.reports) == ("status", True, True)


def test_a_group_that_was_scheduled_once_is_never_said_not_to_be():
    said = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "message": ""}
    known = {**group(), "status": {"conditions": [said]}}
    desk = Desk().feed(node("n1", cpu="1"), known, member("g-0"), member("g-1"))
    for _ in range(3):
        desk.cycle()
    assert desk.world.binds == {}
    assert conditions(desk) == []


@pytest.mark.parametrize(("code", "told"), [("refused", 1), ("notfound", 1), ("unavailable", 0), ("conflict", 0)])
def test_a_status_that_is_refused_is_told_once_and_one_that_failed_in_passing_is_not(code, told):
    desk = Desk().feed(node("n1", cpu="1"), group(), member("g-0"), member("g-1"))
    desk.cycle()
    for _ in range(2):
        (*_, last) = [each for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]
        desk.settle(last, code, "no such luck").apply()
        assert "a/g@scheduling.k8s.io: no such luck; it will be written again" in str(desk.cache.record.trace())
    text = "the condition PodGroupScheduled could not be written: no such luck"
    notes = [(each.kind, each.uid, each.message) for each in desk.world.of(Note) if each.reason == "StatusNotWritten"]
    assert notes == [(kinds.NATIVE_POD_GROUP, "native.g", text)] * told


@pytest.mark.parametrize("gone", ["group", "pods"])
def test_what_could_not_be_written_of_a_group_is_not_written_once_it_or_its_pods_are_gone(gone):
    desk = Desk().feed(node("n1", cpu="1"), group(), member("g-0"), member("g-1"))
    desk.cycle()
    for _ in range(2):
        (*_, last) = [each for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]
        desk.settle(last, "unavailable").apply()
    native = desk.cache.publisher.native
    desk.now = native.next_wake()
    before = len(conditions(desk))
    desk.delete(*([group()] if gone == "group" else [member("g-0"), member("g-1")])).apply()
    assert native.next_wake() is None
    desk.apply()
    assert len(conditions(desk)) == before
    kept = entries(native, beyond=(desk.cache, desk.cluster))
    assert not [path for path, size in kept.items() if size and "retry_pauses" in path]


def whole():
    desk = Desk()
    running = [member(f"g-{i}", node="n1") for i in range(3)]
    desk.feed(node("n1"), group(count=1, disruptionMode="PodGroup"), *running).apply()
    desk.cache.evict(desk.task("g-0"), "somebody else")
    (mark,) = [each for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]
    return desk, mark


def test_a_pod_of_a_group_that_is_marked_goes_at_once():
    desk, mark = whole()
    desk.settle(mark).apply()
    for number in (1, 2):
        desk.cache.evict(desk.task(f"g-{number}"), "somebody else")
    assert desk.world.evictions == ["g-0", "g-1", "g-2"]
    assert len(conditions(desk)) == 1


def test_a_pod_goes_though_its_group_is_gone_before_it_was_marked():
    desk, _ = whole()
    assert desk.world.evictions == []
    desk.delete(group()).apply()
    assert desk.world.evictions == ["g-0"]


def test_pods_whose_group_is_deleted_while_they_wait_are_told_so_and_nothing_else_is_said_of_it():
    desk = Desk().feed(node("n1", cpu="1"), group(), member("g-0"), member("g-1"))
    desk.cycle()
    desk.delete(group()).apply()
    assert desk.cache.record.explain("a/g@scheduling.k8s.io") == ""
    for seconds in (9, 1):
        desk.now += seconds * SECOND
        desk.apply()
        told = {name for name, _, message in desk.world.notes if "its PodGroup a/g of scheduling.k8s.io" in message}
        assert told == ({"g-0", "g-1"} if seconds == 1 else set())


OWNED = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]


@pytest.mark.parametrize(
    ("annotation", "native", "expected"),
    [
        ("", "", ""),
        ("v", "", "a/v"),
        ("", "g", "a/g@scheduling.k8s.io"),
        ("v", "g", "a/v"),
        ("podgroup-u", "g", "a/g@scheduling.k8s.io"),
        ("podgroup-a.p", "g", "a/g@scheduling.k8s.io"),
        ("podgroup-other", "g", "a/podgroup-other"),
        ("podgroup-u", "", "a/podgroup-u"),
    ],
)
def test_which_group_counts(annotation, native, expected):
    made = pod("p", annotation)
    made["metadata"]["ownerReferences"] = OWNED
    if native:
        made["spec"]["schedulingGroup"] = {"podGroupName": native}
    desk = Desk().feed(made).apply()
    assert desk.task("p").job_key == expected
    assert native_groups.is_native(expected) is expected.endswith("@scheduling.k8s.io")


# -- random lives ----------------------------------------------------------------------------------------------

steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("group"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("drop pod"), st.integers(0, 2), st.integers(0, 5)),
        st.tuples(st.just("drop group"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("node"), st.just(0), st.integers(1, 4)),
    ),
    min_size=4,
    max_size=24,
)


@given(steps)
@settings(max_examples=drawn(40), deadline=None)
def test_no_gang_starts_in_part_and_no_condition_takes_back_what_it_said(told):
    stage = SimulatedStage(configuration.default(KNOWN.catalog()), Options(), KNOWN)
    stage.apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": _offers(3)}])
    stage.connect()
    pods, groups, nodes, before = {}, {}, 1, {}
    for number, (what, which, size) in enumerate(told):
        name = f"g{which}"
        if what == "pod":
            made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", "namespace": "a"}}
            container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": str(size)}}}
            spec = {"schedulerName": "volcano", "containers": [container], "schedulingGroup": {"podGroupName": name}}
            stage.apply([{**made, "spec": spec}])
            pods[f"p{number}"] = name
        elif what == "group" and name not in groups:
            stage.apply([{**group(name, size), "metadata": {"name": name, "namespace": "a"}}])
            groups[name] = size
        elif what == "drop group" and groups.pop(name, None):
            stage.delete([f"podgroup/a/{name}"], None)
            before.pop(name, None)
        elif what == "drop pod" and (mine := [each for each in pods if pods[each] == name]):
            stage.delete([f"pod/a/{mine[size % len(mine)]}"], None)
            del pods[mine[size % len(mine)]]
        elif what == "node":
            nodes += 1
            stage.apply(
                [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{nodes}"}, "status": _offers(size)}]
            )
        bound = _bound(stage)
        stage.cycle(1_000_000)
        _check(stage, pods, groups, bound, before)


def _offers(cpu):
    return {"allocatable": {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}}


def _bound(stage):
    return {each["metadata"]["name"] for each in stage.cluster.store.scan(kinds.POD) if each["spec"].get("nodeName")}


def _check(stage, pods, groups, before, said):
    """Hold what a cycle did against the rules: who started, with whom, and what the group says."""
    now = _bound(stage)
    for name in {pods[each] for each in now - before if each in pods}:
        assert name in groups, "a pod started without its group"
        placed = sum(1 for each in now if pods.get(each) == name)
        assert placed >= groups[name], f"{placed} of {name} run, its minimum is {groups[name]}"
    for found in stage.cluster.store.scan(kinds.NATIVE_POD_GROUP):
        name = found["metadata"]["name"]
        stated = (found.get("status") or {}).get("conditions") or []
        status = next((each["status"] for each in stated), "")
        assert said.get(name) != "True" or status == "True", "it was scheduled, and is said not to be"
        said[name] = status
