"""What is written about groups: what a group is told, what is read while a write is on its way, and what a bind that fails leaves behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import SECOND, Desk, group, node, pod
from pumice.api import kinds
from pumice.api.scheduling import PodGroupCondition, PodGroupStatus
from pumice.cache import assumptions
from pumice.cache.effects import Bind, Note, Patch
from pumice.cache.options import Options
from pumice.framework.closing import JobReport


def told(desk, kind, reason):
    """Give what events of one reason say about objects of a kind."""
    return [note.message for note in desk.world.of(Note) if note.kind is kind and note.reason == reason]


def native(name, count):
    return {
        "apiVersion": kinds.NATIVE_POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "a", "uid": f"native.{name}"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}},
    }


@pytest.mark.parametrize("kind", [kinds.POD_GROUP, kinds.NATIVE_POD_GROUP], ids=["volcano", "native"])
@pytest.mark.parametrize("room", [True, False])
def test_a_group_is_told_once_that_it_is_ready_and_only_if_it_is(kind, room):
    desk = Desk().feed(node("n1", cpu="2" if room else "1"))
    ours = kind is kinds.POD_GROUP
    members = [
        pod(f"g-{i}", "g" if ours else "", cpu="1", **({} if ours else {"schedulingGroup": {"podGroupName": "g"}}))
        for i in range(2)
    ]
    desk.feed(group("g", 2) if ours else native("g", 2), *members)
    for _ in range(4):
        desk.cycle()
        for each in desk.world.of(Bind):
            running = next(m for m in members if m["metadata"]["name"] == each.name)
            desk.modify({**running, "spec": {**running["spec"], "nodeName": each.node}, "status": {"phase": "Running"}})
    assert told(desk, kind, "Scheduled") == ["pod group is ready"] * room


def test_a_group_that_waits_is_warned_of_every_other_reason_and_of_none_twice():
    desk = Desk().feed(group("g", 1), pod("g-0", "g", cpu="2"), node("n1", cpu="2"), pod("x", cpu="1", node="n1"))
    for _ in range(3):
        desk.cycle(seconds=60)
    assert len(told(desk, kinds.POD_GROUP, "Unschedulable")) == 1
    desk.modify(node("n1", cpu="2", cordoned=True))
    for _ in range(3):
        desk.cycle(seconds=60)
    warnings = told(desk, kinds.POD_GROUP, "Unschedulable")
    assert len(warnings) == len(set(warnings)) > 1


def status_patches(desk):
    return [each for each in desk.world.of(Patch) if each.kind is kinds.POD_GROUP]


@pytest.mark.parametrize("answered", [False, True])
def test_what_is_read_while_a_status_is_on_its_way_is_older_than_it(answered):
    desk = Desk().feed(node("n1", cpu="1"), group("g", 1), pod("g-0", "g", cpu="2"))
    desk.cycle(seconds=60)
    (patch,) = status_patches(desk)
    assert patch.body["status"]["phase"] == "Inqueue"
    if answered:
        desk.settle(patch).apply()
    # Somebody else's write arrives; only one that comes after ours was answered says how the group stands.
    desk.modify(group("g", 1, phase="Pending", annotations={"changed": "yes"})).apply()
    assert desk.cluster.jobs["a/g"].status.phase == ("Pending" if answered else "Inqueue")


def test_what_somebody_wrote_after_our_status_counts_and_is_written_again():
    waits = group("g", 1)
    waits["metadata"]["resourceVersion"] = "5"
    desk = Desk().feed(node("n1", cpu="1"), waits, pod("g-0", "g", cpu="2"))
    desk.cycle(seconds=60)
    (patch,) = status_patches(desk)
    other = group("g", 1, phase="Pending")
    other["metadata"]["resourceVersion"] = "7"
    desk.modify(other).cycle(seconds=60)
    assert len(status_patches(desk)) == 1
    desk.settle(patch, read={"metadata": {"resourceVersion": "6"}}).cycle()
    assert [each.body["status"]["phase"] for each in status_patches(desk)] == ["Inqueue", "Inqueue"]


CONDITIONS = st.builds(
    PodGroupCondition,
    type=st.sampled_from(["Unschedulable", "Scheduled", "StartForecast"]),
    status=st.sampled_from(["True", "False"]),
    message=st.sampled_from(["one", "two", "three"]),
)


@given(st.lists(CONDITIONS, max_size=3), st.sampled_from(["", "a warning"]))
def test_a_group_of_kubernetes_own_is_told_what_keeps_it_waiting_now(conditions, warning):
    desk = Desk().feed(native("g", 2), pod("g-0", cpu="1", schedulingGroup={"podGroupName": "g"})).apply()
    job = desk.task("g-0").job
    status = PodGroupStatus(phase="Inqueue", conditions=tuple(conditions))
    report = JobReport(status, "", entered=False, moved=False, changed=True, warning=warning)
    desk.cache.publisher.native.publish(job, report, desk.now)
    holding = [each.message for each in conditions if (each.type, each.status) == ("Unschedulable", "True")]
    expected = (holding or [warning])[0]
    written = [each.body["status"]["conditions"] for each in desk.world.of(Patch)]
    assert [(c["status"], c["reason"], c["message"]) for one in written for c in one] == (
        [("False", "Unschedulable", expected)] if expected else []
    )


def with_bind(fails=""):
    desk = Desk().feed(node("n1", cpu="64"), group("g", 1), pod("g-0", "g", cpu="1"))
    desk.cycle()
    (bind,) = desk.world.of(Bind)
    if fails:
        desk.settle(bind, fails, "the node is full").apply()
    return desk


@pytest.mark.parametrize("code", ["refused", "conflict", "unavailable"])
def test_a_bind_that_failed_is_told_on_the_pod_and_in_the_record(code):
    desk = with_bind(code)
    text = "failed to bind to node n1: the node is full"
    assert f"g-0: {text} (attempt 1)" in desk.cache.record.explain("a/g")
    ((stated,),) = [each.body["status"]["conditions"] for each in desk.world.patches("Pod")]
    assert (stated["type"], stated["status"], stated["reason"]) == ("PodScheduled", "False", "SchedulerError")
    assert stated["message"] == text
    assert told(desk, kinds.POD, "FailedScheduling") == [text]
    assert f"a/g-0: {text}" in str(desk.cache.record.trace())


@pytest.mark.parametrize("others_fare_better", [True, False])
def test_a_bind_that_fails_in_passing_is_given_up_only_if_others_keep_arriving(others_fare_better):
    """The first failure says nothing about others; each later one counts if somebody else was bound since the one before."""
    desk, failures = with_bind(), 0
    desk.feed(group("early", 1), pod("early-0", "early", cpu="1")).cycle()
    desk.settle(desk.world.of(Bind)[-1]).apply()
    for number in range(3 * assumptions.OUTRUN):
        if desk.task("g-0").status.name != "BINDING":
            break
        bind = [each for each in desk.world.of(Bind) if each.name == "g-0"][-1]
        failures += 1
        desk.settle(bind, "unavailable").apply()
        if others_fare_better:
            desk.feed(group(f"o{number}", 1), pod(f"o{number}-0", f"o{number}", cpu="1"))
            desk.cycle()
            desk.settle([each for each in desk.world.of(Bind) if each.name == f"o{number}-0"][-1]).apply()
        desk.now += 3600 * SECOND
        desk.apply()
    assert failures == (assumptions.OUTRUN + 1 if others_fare_better else 3 * assumptions.OUTRUN)


def test_of_a_group_that_runs_it_is_written_at_once_though_reasons_have_to_stand():
    desk = Desk(options=Options(reason_patience=SECOND)).feed(node("n1"), group("g"), pod("g-0", "g", node="n1"))
    desk.cycle()
    assert [each.body["status"]["phase"] for each in status_patches(desk)] == ["Running"]


@pytest.mark.parametrize("phase", ["Running", "Completed"])
def test_a_group_that_stays_as_it_is_says_no_more_that_it_is_ready(phase):
    desk = Desk().feed(node("n1"), group("g", 1, phase=phase))
    for number in range(2):
        desk.feed(pod(f"g-{number}", "g", node="n1", phase="Succeeded" if phase == "Completed" else "Running")).cycle()
    assert len(status_patches(desk)) == 2
    assert told(desk, kinds.POD_GROUP, "Scheduled") == []
