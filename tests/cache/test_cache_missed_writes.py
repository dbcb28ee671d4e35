"""What was written and did not arrive is written again; failures count in a row, and what nobody has to know is not written."""

from __future__ import annotations

import pytest

from builders import GANG, SECOND, Desk, group, node, pod, queue
from pumice.api import kinds
from pumice.cache import retry_pauses
from pumice.cache.effects import Evict, Note, Patch
from pumice.cache.options import Options
from pumice.framework.closing import TaskReport
from pumice.model.volumes import Reservation, VolumeDecision

NATIVE = {
    "apiVersion": kinds.NATIVE_POD_GROUP.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "a", "uid": "native.g"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
}
OF_NATIVE = {"schedulingGroup": {"podGroupName": "g"}}


def waiting(native=False):
    """A desk at which a group waits for room."""
    desk = Desk().feed(node("n1", cpu="1"))
    desk.feed(NATIVE if native else group("g"), pod("p", "" if native else "g", cpu="2", **OF_NATIVE if native else {}))
    desk.cycle()
    return desk


WRITTEN = {
    "group": (waiting, lambda each: each.kind is kinds.POD_GROUP),
    "native group": (lambda: waiting(native=True), lambda each: each.kind is kinds.NATIVE_POD_GROUP),
    "pod": (waiting, lambda each: each.kind is kinds.POD),
}


@pytest.mark.parametrize(("made", "is_meant"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_write_that_goes_well_ends_the_row_of_failures(made, is_meant):
    """The second failure in a row costs a pause, so the next one after a success costs none."""
    desk = made()
    publisher = desk.cache.publisher

    def fails(code):
        (*_, last) = [each for each in desk.world.of(Patch) if is_meant(each)]
        desk.settle(last, code)
        desk.cycle(seconds=0)

    fails("unavailable")
    fails("unavailable")
    assert publisher.next_wake() == desk.now + retry_pauses.delay(2, "unavailable")
    desk.now += SECOND
    desk.cycle()
    fails(None)
    assert publisher.next_wake() is None
    before = len([each for each in desk.world.of(Patch) if is_meant(each)])
    fails("unavailable")
    assert len([each for each in desk.world.of(Patch) if is_meant(each)]) > before


def test_a_nomination_that_did_not_arrive_is_written_again():
    desk = Desk().feed(node("n1"), group("g", 2), pod("p", "g", cpu="1")).apply()
    report = TaskReport(desk.task("p"), "Unschedulable", "it waits for room on n1", "n1")

    def nominated():
        desk.cache.publisher.pods.publish(report, desk.now)
        return [each.body["status"].get("nominatedNodeName") for each in desk.world.patches("Pod")]

    assert nominated() == ["n1"]
    assert nominated() == ["n1"]
    desk.settle(desk.world.patches("Pod")[-1], "unavailable").apply()
    assert desk.task("p").nominated == ""
    assert nominated() == ["n1", "n1"]


def test_a_node_that_could_not_be_written_on_a_pod_before_its_bind_is_missed_by_nobody():
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1")).apply()
    desk.cache.publisher.pods.expect(desk.task("p"), "n1")
    desk.settle(desk.world.patches("Pod")[-1], "unavailable")
    desk.cycle()
    assert desk.scheduler.failures == []
    assert desk.world.binds == {"p": "n1"}


def test_a_condition_that_says_something_else_dates_from_when_its_status_changed():
    desk = waiting(native=True)
    desk.now += 100 * SECOND
    desk.modify(node("n1", cpu="8", cordoned=True)).cycle()
    desk.now += 100 * SECOND
    desk.modify(node("n1", cpu="8")).cycle()
    desk.modify(pod("p", cpu="2", node="n1", **OF_NATIVE)).cycle()
    sent = [each.body["status"]["conditions"] for each in desk.world.of(Patch) if each.kind is kinds.NATIVE_POD_GROUP]
    stated = [(each["status"], each["lastTransitionTime"]) for several in sent for each in several]
    first, later = "2026-01-01T00:00:00Z", "2026-01-01T00:03:23Z"
    assert stated == [("False", first), ("False", first), ("True", later)]


def test_numbers_of_a_group_of_kubernetes_own_are_written_anew_where_they_are_to_be():
    desk = Desk(options=Options(renews_numbers=True)).feed(node("n1", cpu="4"), group("o"))
    desk.feed(*(pod(f"o{i}", "o", cpu="1", node="n1") for i in range(2)))
    desk.feed(NATIVE, pod("p", cpu="4", **OF_NATIVE)).cycle()
    desk.delete(pod("o0", "o")).cycle()
    desk.now = desk.cache.next_wake()
    desk.cycle()
    messages = [
        each.body["status"]["conditions"][0]["message"].partition(";")[0]
        for each in desk.world.of(Patch)
        if each.kind is kinds.NATIVE_POD_GROUP
    ]
    assert messages == [f"no node has 4 cpu free: the freest of 1, n1, has {free} cpu" for free in (2, 3)]


@pytest.mark.parametrize("wishes", [{}, {"networkTopology": {"mode": "soft"}}], ids=["nothing", "a place"])
@pytest.mark.parametrize("seen_starting", [True, False])
def test_a_group_that_waits_again_for_the_same_reason_after_it_ran_is_warned_again(seen_starting, wishes):
    desk = Desk().feed(group("g", 1, phase="Inqueue", **wishes), pod("p", "g", cpu="2"), node("n1", cpu="2"))
    told = []
    for _ in range(2):
        other = pod("other", cpu="1", node="n1")
        desk.feed(other).cycle()
        desk.cycle()
        desk.delete(other)
        if seen_starting:
            desk.cycle()
        desk.modify(pod("p", "g", cpu="2", node="n1")).cycle()
        assert desk.cluster.jobs["a/g"].phase == "Running"
        desk.delete(pod("p", "g")).feed(pod("p", "g", cpu="2", uid="another"))
        told += [each.message for each in desk.world.of(Note) if (each.name, each.reason) == ("g", "Unschedulable")]
        desk.world.effects.clear()
    assert len(told) == 2
    assert told[0] == told[1]


def test_a_group_that_starts_at_once_is_told_too_that_its_wish_is_not_heeded():
    desk = Desk().feed(node("n1"), group("g", networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    desk.feed(pod("p", "g", cpu="1")).cycle()
    assert desk.world.binds == {"p": "n1"}
    assert [each.reason for each in desk.world.of(Note) if each.name == "g" and "is not heeded" in each.message]


def test_a_group_is_told_once_why_it_waits_and_nothing_once_it_waits_no_more():
    desk = waiting().feed(group("o", networkTopology={"mode": "soft"}), pod("o", "o", cpu="1"))
    desk.cycle()
    desk.feed(pod("another", "g", cpu="2")).cycle()
    desk.modify(pod("o", "o", cpu="1", node="n1")).cycle()
    told = [each.name for each in desk.world.of(Note) if (each.type, each.reason) == ("Warning", "Unschedulable")]
    assert told == ["g"]
    assert all(message for _, _, message in desk.world.notes)


def test_a_native_group_is_told_under_its_own_kind_and_that_it_is_to_stay_together_is_heeded_without_a_plugin():
    together = {**NATIVE["spec"], "schedulingConstraints": {"topology": [{"key": "zone"}]}}
    desk = Desk().feed(node("n1", cpu="1", labels={"zone": "z"}), {**NATIVE, "spec": together})
    desk.feed(pod("p", cpu="2", **OF_NATIVE)).cycle()
    told = [each for each in desk.world.of(Note) if each.name == "g"]
    assert {each.kind for each in told} == {kinds.NATIVE_POD_GROUP}
    assert [each.reason for each in told if each.type == "Warning"] == ["Unschedulable"]


@pytest.mark.parametrize("wishes", [{}, {"networkTopology": {"mode": "soft"}}], ids=["nothing", "a place"])
def test_a_group_that_was_let_in_and_is_kept_out_again_is_told_why_again(wishes):
    limited = GANG.replace("{name: gang}", "{name: gang}, {name: capacity}")
    desk = Desk(limited).feed(node("n1"))
    asked = {"minResources": {"cpu": "4"}, "queue": "q", **wishes}
    for capability in ("2", "8", "2"):
        desk.modify(queue("q", capability={"cpu": capability}), group("g", 1, phase="Pending", **asked))
        for _ in range(2):
            desk.cycle()
        for each in desk.world.patches("PodGroup"):
            desk.settle(each)
        desk.world.effects[:] = desk.apply().world.of(Note)
    told = [each for each in desk.world.of(Note) if each.name == "g" and each.type == "Normal"]
    assert len(told) == 2


@pytest.mark.parametrize("case", ["shadow", "gone"])
def test_no_event_tells_of_an_eviction_a_group_that_exists_for_nobody(case):
    desk = Desk().feed(node("n1"))
    desk.cache.follow(kube_batch=case == "shadow", now=desk.now)
    desk.feed(pod("p", "" if case == "shadow" else "g", cpu="1", node="n1")).apply()
    assert desk.task("p").job is not None
    desk.cache.evict(desk.task("p"), "somebody else")
    assert [each.kind for each in desk.world.of(Note)] == [kinds.POD]
    assert len(desk.world.of(Evict)) == 1


@pytest.mark.parametrize("made", ["shadow", "none"])
def test_a_group_that_exists_for_nobody_is_not_told_why_it_is_kept_out(made):
    desk = Desk().feed(node("n1"))
    desk.cache.follow(kube_batch=made == "shadow", now=desk.now)
    job = desk.feed(pod("p", "" if made == "shadow" else "g", cpu="1")).apply().task("p").job
    session = desk.session()
    session.findings.notice(job, "there is no room")
    desk.cache.publish(session)
    assert [each for each in desk.world.of(Note) if each.kind is kinds.POD_GROUP] == []


def test_a_namespace_that_is_a_queue_has_no_status():
    desk = Desk(options=Options(enable_namespace_as_queue=True), queues=())
    desk.feed(node("n1"), group("g"), pod("p", "g", cpu="1", node="n1")).cycle()
    assert "a" in desk.cluster.queues
    assert desk.world.patches("Queue") == []


@pytest.mark.parametrize("by", ["another scheduler", "us"])
def test_a_pod_that_got_its_node_is_not_told_that_its_group_is_missing(by):
    desk = Desk().feed(node("n1"), pod("p", "g", cpu="1")).apply()
    if by == "us":
        desk.feed(group("g")).cycle()
        desk.delete(group("g"))
    desk.modify(pod("p", "g", cpu="1", node="n1")).apply()
    desk.now += 60 * SECOND
    desk.apply()
    assert [each for each in desk.world.patches("Pod") if "conditions" in each.body["status"]] == []


@pytest.mark.parametrize("waits", [False, True])
def test_which_node_a_pod_is_to_get_is_written_on_it_if_its_bind_has_to_wait_for_volumes(waits):
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1")).apply()
    session = desk.session()
    statement = session.statement()
    statement.allocate([desk.task("p")], [desk.node("n1")])
    decision = VolumeDecision(namespace="a", claim="c", uid="c", volume="v")
    if waits:
        desk.cluster.volumes.reserve(desk.task("p").uid, Reservation("n1", (decision,)))
    statement.commit()
    assert desk.world.binds == {"p": "n1"}
    told = [each.body["status"].get("nominatedNodeName") for each in desk.world.patches("Pod")]
    assert told == (["n1"] if waits else [])


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "its PodGroup a/g does not exist; create it or correct the annotation scheduling.k8s.io/group-name"),
        (OF_NATIVE, "its PodGroup a/g of scheduling.k8s.io does not exist"),
        (
            {"workloadRef": {"name": "w", "podGroup": "g"}},
            "it names its group by spec.workloadRef (a/w/g), which Kubernetes 1.36 replaced by spec.schedulingGroup; only that is served",
        ),
    ],
    ids=["volcano", "native", "older"],
)
def test_a_pod_whose_group_is_missing_is_told_what_would_help(spec, text):
    desk = Desk().feed(pod("p", "" if spec else "g", cpu="1", **spec)).apply()
    desk.now += 10 * SECOND
    desk.apply()
    assert [each.message for each in desk.world.of(Note) if each.name == "p"] == [text]
