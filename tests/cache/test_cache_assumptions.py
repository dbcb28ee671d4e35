"""Binds that were sent: what is not sent at all, when an unanswered one is asked about, and what a read of the pod says."""

from __future__ import annotations

import pytest

from builders import SECOND, Desk, group, node, pod
from pumice.cache.effects import Bind, Read
from pumice.cache.retry_pauses import FIRST_DELAY
from pumice.model.devices.decisions import ClaimReservation
from pumice.model.statuses import Status
from pumice.model.volumes import Reservation, VolumeDecision

NOBODY_DECIDES = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}]\n'
NOT_DECIDED = "nothing could be decided"


def waiting():
    return Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1"))


def sent(**reservation):
    """A desk that has sent the bind of a pod, before which volumes may have been decided."""
    desk = waiting().apply()
    session = desk.session()
    statement = session.statement()
    statement.allocate([desk.task("p")], [desk.node("n1")])
    if reservation:
        desk.cluster.volumes.reserve(desk.task("p").uid, Reservation("n1", **reservation))
    statement.commit()
    assert desk.world.binds == {"p": "n1"}
    return desk


@pytest.mark.parametrize("where", ["", "n9"], ids=["no node", "a node that is gone"])
def test_a_pod_whose_node_has_left_is_not_bound(where):
    desk = Desk().feed(group("g"), pod("p", "g", cpu="1", node=where)).apply()
    refused = desk.cache.bind([desk.task("p")])
    assert refused == {desk.task("p").uid: "its node has left the cluster"}
    assert desk.world.binds == {}


@pytest.mark.parametrize("kind", ["volumes", "devices"])
def test_a_pod_for_whose_claims_nothing_could_be_decided_is_not_bound(kind):
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1", node="n1")).apply()
    made = {"volumes": Reservation, "devices": ClaimReservation}[kind]("n1", problem=NOT_DECIDED)
    task = desk.task("p")
    getattr(desk.cluster, kind).reserve(task.uid, made)
    assert desk.cache.bind([task]) == {task.uid: NOT_DECIDED}
    assert desk.world.binds == {}


@pytest.mark.parametrize("patience", [0, 600 * SECOND])
def test_a_bind_is_asked_about_half_a_minute_after_its_volumes_should_be_there(patience):
    decision = VolumeDecision(namespace="a", claim="c", uid="c", volume="v")
    desk = sent(decisions=(decision,), patience=patience)
    due = desk.now + 30 * SECOND + patience
    desk.now = due - 1
    assert desk.apply().world.reads == []
    assert desk.cache.assumptions.next_wake() == due
    desk.now = due
    assert desk.apply().world.reads == ["p"]


ANSWERS = {"nothing": {}, "no answer": {"code": "unavailable"}}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_read_that_shows_nothing_is_made_again_after_a_second(answer):
    desk = sent()
    desk.settle(desk.world.of(Bind)[-1], "unknown").apply()
    desk.settle(desk.world.of(Read)[-1], **answer).apply()
    assert desk.cache.failures == []
    assert desk.cache.assumptions.next_wake() == desk.now + SECOND
    desk.now += SECOND - 1
    assert desk.apply().world.reads == ["p"]
    desk.now += 1
    assert desk.apply().world.reads == ["p", "p"]
    assert desk.task("p").status == Status.BINDING


def test_a_bind_that_a_read_shows_not_to_have_arrived_is_sent_again():
    desk = sent()
    desk.settle(desk.world.of(Bind)[-1], "unknown").apply()
    desk.settle(desk.world.of(Read)[-1], read=pod("p", "g", cpu="1")).apply()
    assert "p: the bind did not arrive (attempt 1)" in desk.cache.record.explain("a/g")
    assert len(desk.world.of(Bind)) == 2


@pytest.mark.parametrize("shown", [{"node": "n1"}, {"containers": 5}], ids=["bound", "not to be read"])
def test_of_a_pod_that_is_bound_or_cannot_be_read_a_read_says_nothing_about_its_bind(shown):
    desk = sent()
    desk.settle(desk.world.of(Bind)[-1], "unknown").apply()
    desk.settle(desk.world.of(Read)[-1], read=pod("p", "g", **{"cpu": "1", **shown})).apply()
    desk.now += 60 * SECOND
    desk.apply()
    assert "did not arrive" not in desk.cache.record.explain("a/g")
    assert len(desk.world.of(Bind)) == 1


def test_a_read_that_is_late_does_not_count_as_another_failure_of_a_bind_that_waits_to_be_repeated():
    desk = sent()
    bind = desk.world.of(Bind)[-1]
    desk.settle(bind, "unknown").apply()
    for code in ("unavailable", "unavailable"):
        desk.settle(desk.world.of(Bind)[-1], code).apply()
    due = desk.cache.assumptions.next_wake()
    assert due == desk.now + 2 * FIRST_DELAY
    desk.settle(desk.world.of(Read)[-1], read=pod("p", "g", cpu="1")).apply()
    assert desk.cache.assumptions.next_wake() == due
    assert "attempt 3" not in desk.cache.record.explain("a/g")
    for now, binds in ((due - 1, 2), (due, 3)):
        desk.now = now
        assert len(desk.apply().world.of(Bind)) == binds


@pytest.mark.parametrize("end", ["arrived", "gone"])
def test_what_travels_with_a_bind_is_forgotten_with_it(end):
    desk = waiting().apply()
    desk.cluster.with_bind.stamp(desk.task("p").uid, {"a": "b"})
    desk.cycle()
    assert [each.annotations for each in desk.world.of(Bind)] == [{"a": "b"}]
    if end == "arrived":
        desk.modify(pod("p", "g", cpu="1", node="n1")).apply()
    else:
        desk.delete(pod("p", "g")).apply()
    assert desk.cluster.with_bind.stamps == {}


def test_nobody_is_woken_for_the_bind_of_a_pod_that_is_gone_though_nobody_looked():
    desk = sent().delete(pod("p", "g"))
    desk.cache.apply(desk.now, standby=True)
    assert desk.cache.assumptions.next_wake() is None


CLAIMS = {
    "volumes": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
    "devices": {"resourceClaims": [{"name": "v", "resourceClaimName": "c"}]},
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_what_was_decided_for_the_claims_of_a_pod_stays_when_it_changes_while_its_bind_is_under_way(kind):
    desk = Desk(NOBODY_DECIDES).feed(node("n1"), group("g"), pod("p", "g", cpu="1", **CLAIMS[kind])).apply()
    statement = desk.session().statement()
    statement.allocate([desk.task("p")], [desk.node("n1")])
    reservations, uid = getattr(desk.cluster, kind), desk.task("p").uid
    made = {"volumes": Reservation, "devices": ClaimReservation}[kind]("n1")
    reservations.reserve(uid, made)
    statement.commit()
    desk.modify(pod("p", "g", cpu="1", annotations={"by": "others"}, **CLAIMS[kind])).apply()
    assert desk.task("p").status == Status.BINDING
    assert reservations.reservations == {uid: made}
