"""Claims in the cache: devices count as given from the decision until it is known what the claim has, whatever fails on the way."""

from __future__ import annotations

import copy

import msgspec
import pytest

from builders import NOW, SECOND, Desk, group, node, pod
from containers import entries
from pumice.api import resource
from pumice.cache import claims
from pumice.cache.effects import Bind, Patch, Prepare, TakeBack
from pumice.model.devices import decisions
from pumice.model.preparations import ClaimGrant, ExtendedClaimStatus, NewClaim

DEVICE = ("d", "p", "x")
NOBODY_DECIDES = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}]\n'


def claim(version=1, *, allocation=None, consumers=(), uid="c-uid", conditions=()):
    status = {}
    if allocation:
        status["allocation"] = allocation
    if consumers:
        status["reservedFor"] = [{"resource": "pods", "name": each, "uid": f"a.{each}"} for each in consumers]
    if conditions:
        told = [{"type": each, "status": "True"} for each in conditions]
        status["devices"] = [{"driver": "d", "pool": "p", "device": "x", "conditions": told}]
    metadata = {"name": "c", "namespace": "a", "uid": uid, "resourceVersion": str(version)}
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def given(device="x", **more):
    return {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": device, **more}]}}


def asking(name):
    made = pod(name, "g", cpu="1")
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    return made


def decided(name, allocation=None, **fields):
    return decisions.ClaimDecision(
        namespace="a",
        claim="c",
        uid="c-uid",
        allocation=msgspec.convert(allocation or given(), resource.Allocation),
        consumer=resource.Consumer(resource="pods", name=name, uid=f"a.{name}"),
        **fields,
    )


def sent(size=1, allocation=None, before=None, **fields):
    """Let the pods of a gang be placed, as if a plugin had decided about their claim, and their binds be sent."""
    desk = Desk(NOBODY_DECIDES)
    desk.feed(node("n1"), before or claim(), group("g", size), *(asking(f"g-{i}") for i in range(size))).apply()
    tasks = [desk.task(f"g-{i}") for i in range(size)]
    session = desk.session()
    statement = session.statement()
    statement.allocate(tasks, [desk.node("n1")] * size)
    for task in tasks:
        reservation = decisions.ClaimReservation("n1", (decided(task.name, allocation, **fields),))
        desk.cluster.devices.reserve(task.uid, reservation)
    statement.commit()
    return desk


def shown(*manifests):
    return {"claims": [copy.deepcopy(each) for each in manifests]}


def is_used(desk):
    return DEVICE in desk.cluster.devices.uses


def test_what_was_decided_is_written_before_the_bind_and_counts_at_once():
    desk = sent()
    (prepare,) = desk.world.of(Prepare)
    (wanted,) = prepare.preparations
    assert (wanted.key, wanted.uid, wanted.pod_uid, wanted.allocation) == ("a/c", "c-uid", "a.g-0", given())
    assert is_used(desk)
    desk.settle(prepare, read=shown(claim(2, allocation=given(), consumers=["g-0"]))).apply()
    assert desk.world.binds == {"g-0": "n1"}
    assert desk.cluster.devices.claims["a/c"].status.allocation is not None


def test_a_claim_that_is_as_it_should_be_needs_no_write():
    desk = sent(before=claim(allocation=given(), consumers=["g-0"]))
    assert desk.world.of(Prepare) == []
    assert desk.world.binds == {"g-0": "n1"}


def test_a_pod_that_is_placed_anew_is_reserved_anew_though_the_old_reservation_still_shows():
    desk = sent()
    (prepare,) = desk.world.of(Prepare)
    desk.settle(prepare, read=shown(claim(2, allocation=given(), consumers=["g-0"]))).apply()
    (bind,) = desk.world.of(Bind)
    desk.settle(bind, "refused").apply()
    (back,) = desk.world.of(TakeBack)
    task = desk.task("g-0")
    statement = desk.session().statement()
    statement.allocate([task], [desk.node("n1")])
    desk.cluster.devices.reserve(task.uid, decisions.ClaimReservation("n1", (decided("g-0"),)))
    statement.commit()
    assert desk.world.effects[-1] == prepare
    assert back in desk.world.effects[:-1]
    assert len(desk.world.of(Bind)) == 1


def test_an_older_state_from_the_watch_does_not_undo_what_an_answer_has_shown():
    desk = sent()
    (prepare,) = desk.world.of(Prepare)
    desk.settle(prepare, read=shown(claim(5, allocation=given(), consumers=["g-0"]))).apply()
    desk.modify(claim(3)).apply()
    assert desk.cluster.devices.claims["a/c"].status.allocation is not None
    desk.modify(claim(6)).apply()
    assert desk.cluster.devices.claims["a/c"].status.allocation is None


def test_an_answer_does_not_bring_back_a_claim_that_was_deleted():
    desk = sent()
    (prepare,) = desk.world.of(Prepare)
    desk.delete(claim(7)).settle(prepare, read=shown(claim(5, allocation=given()))).apply()
    assert "a/c" not in desk.cluster.devices.claims


def test_an_answer_about_a_claim_that_another_has_replaced_says_nothing_of_the_other():
    desk = sent()
    (prepare,) = desk.world.of(Prepare)
    desk.delete(claim(7)).feed(claim(8, uid="another"))
    desk.settle(prepare, read=shown(claim(9, allocation=given()))).apply()
    known = desk.cluster.devices.claims["a/c"]
    assert (known.metadata.uid, known.status.allocation) == ("another", None)


@pytest.mark.parametrize("end", ["refused", "deleted"])
def test_devices_stay_given_until_it_is_known_what_the_claim_has(end):
    desk = sent()
    (prepare,) = desk.world.of(Prepare)
    if end == "refused":
        # The write may have arrived: nobody knows until what follows is answered.
        for _ in range(5):
            desk.settle(desk.world.of(Prepare)[-1], "unknown").apply()
            desk.now += 15 * SECOND
            desk.apply()
        assert desk.task("g-0").status.name == "PENDING"
    else:
        desk.delete(asking("g-0")).apply()
    assert is_used(desk)
    back = desk.world.of(TakeBack)[-1]
    assert back.preparations == prepare.preparations
    desk.settle(back, "unavailable").apply()
    assert is_used(desk)
    desk.now += 15 * SECOND
    desk.apply()
    desk.settle(desk.world.of(TakeBack)[-1], read=shown(claim(4, allocation=given()))).apply()
    assert is_used(desk)
    assert desk.cluster.devices.in_flight == {}
    desk.modify(claim(9)).apply()
    assert not is_used(desk)


def test_devices_that_were_never_written_are_free_once_that_is_known():
    desk = sent()
    (prepare,) = desk.world.of(Prepare)
    desk.settle(prepare, "conflict", read=shown(claim(1))).apply()
    (back,) = desk.world.of(TakeBack)
    desk.settle(back, read=shown(claim(1))).apply()
    assert not is_used(desk)
    assert desk.cluster.devices.in_flight == {}


def test_none_of_a_gang_that_shares_a_claim_is_bound_if_one_is_refused_and_all_are_taken_back():
    desk = sent(3)
    first, second, third = desk.world.of(Prepare)
    desk.settle(first).settle(second).settle(third, "conflict").apply()
    assert desk.world.binds == {}
    assert sorted(each.name for each in desk.world.of(TakeBack)) == ["g-0", "g-1", "g-2"]
    for back in desk.world.of(TakeBack):
        assert [type(each) for each in back.preparations] == [ClaimGrant]


def waiting_desk(allocated="2026-01-01T00:00:01Z"):
    allocation = given(bindingConditions=["Attached"], bindingFailureConditions=["Broken"])
    desk = sent(allocation=allocation)
    (prepare,) = desk.world.of(Prepare)
    written = {**allocation, "allocationTimestamp": allocated}
    desk.settle(prepare, read=shown(claim(2, allocation=written, consumers=["g-0"]))).apply()
    return desk, written


def test_a_pod_is_bound_once_the_conditions_of_its_devices_are_true():
    desk, written = waiting_desk()
    assert desk.world.binds == {}
    assert [note for note in desk.world.notes if note[1] == "BindingConditionsPending"]
    desk.modify(claim(3, allocation=written, consumers=["g-0"], conditions=["Attached"])).apply()
    assert desk.world.binds == {"g-0": "n1"}
    assert len([note for note in desk.world.notes if note[1] == "BindingConditionsPending"]) == 1


def test_what_devices_are_waited_for_is_told_once_however_often_it_is_looked_at():
    desk, written = waiting_desk()
    for version in range(3, 6):
        desk.modify(claim(version, allocation=written, consumers=["g-0"])).apply()
    assert desk.world.binds == {}
    assert [note[1] for note in desk.world.notes].count("BindingConditionsPending") == 1


def test_a_condition_that_says_it_failed_ends_the_wait():
    desk, written = waiting_desk()
    desk.modify(claim(3, allocation=written, consumers=["g-0"], conditions=["Broken"])).apply()
    assert desk.world.binds == {}
    assert "x: Broken" in desk.task("g-0").refusal
    assert len(desk.world.of(TakeBack)) == 1


@pytest.mark.parametrize("ready", [False, True])
def test_devices_are_waited_for_though_nothing_is_to_be_written_before_the_bind(ready):
    allocation = given(bindingConditions=["Attached"])
    written = claim(allocation=allocation, consumers=["g-0"], conditions=["Attached"] * ready)
    desk = sent(allocation=allocation, before=written).apply()
    assert desk.world.of(Prepare) == []
    assert desk.world.binds == ({"g-0": "n1"} if ready else {})


@pytest.mark.parametrize(
    ("allocated", "seconds"),
    [("2025-12-31T23:59:00Z", 540), ("2026-01-01T00:00:00Z", 600), ("2026-01-01T00:01:00Z", 600)],
)
def test_the_wait_ends_600_seconds_after_the_allocation_or_after_it_began(allocated, seconds):
    desk, _ = waiting_desk(allocated)
    end = NOW + seconds * SECOND
    assert desk.cache.next_wake() <= end
    desk.now = end - 1
    desk.apply()
    assert desk.world.of(TakeBack) == []
    desk.now = end
    desk.apply()
    assert "not ready in time" in desk.task("g-0").refusal
    assert len(desk.world.of(TakeBack)) == 1


def test_a_claim_that_is_deleted_while_its_devices_are_waited_for_ends_the_wait():
    desk, written = waiting_desk()
    desk.delete(claim(3, allocation=written)).apply()
    assert desk.world.binds == {}
    assert "claim a/c is gone" in desk.task("g-0").refusal


def test_a_claim_for_extended_resources_is_made_first_under_a_name_that_stays_the_same():
    made = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"generateName": "g-0-extended-resources-"},
    }
    mapping = {"containerName": "c", "resourceName": "v/gpu", "requestName": "container-0-request-0"}
    names = []
    for _ in range(2):
        desk = sent(made=made, mappings=(mapping,))
        (prepare,) = desk.world.of(Prepare)
        new, reserved, told = prepare.preparations
        assert (type(new), type(reserved), type(told)) == (NewClaim, ClaimGrant, ExtendedClaimStatus)
        assert new.manifest["metadata"]["name"] == new.claim == reserved.claim == told.status["resourceClaimName"]
        assert (reserved.uid, told.status["requestMappings"]) == ("", [mapping])
        names.append(new.claim)
    assert names[0] == names[1]
    assert names[0].startswith("g-0-extended-resources-")


def test_nothing_is_kept_of_what_was_prepared_for_a_pod_that_is_on_its_node():
    desk = sent()
    preparing = desk.cache.assumptions.preparing

    def kept():
        found = entries(preparing, beyond=(desk.cache, desk.cluster))
        return {path for path, size in found.items() if size}

    (prepare,) = desk.world.of(Prepare)
    assert kept()
    desk.settle(prepare, read=shown(claim(2, allocation=given(), consumers=["g-0"]))).apply()
    there = asking("g-0")
    there["spec"]["nodeName"] = "n1"
    desk.modify(there).apply()
    assert kept() == set()


# ---- claims that are freed


def test_a_claim_that_fits_nowhere_is_freed_once_against_the_version_that_was_judged():
    desk = Desk(NOBODY_DECIDES)
    desk.feed(node("n1"), claim(4, allocation=given())).apply()
    desk.cluster.devices.to_free["a/c"] = "no node passes"
    desk.cache.claims.free()
    (patch,) = desk.world.patches("ResourceClaim")
    assert patch.body == {
        "metadata": {"resourceVersion": "4"},
        "status": {"allocation": None, "reservedFor": None, "devices": None},
    }
    assert (patch.uid, patch.subresource) == ("c-uid", "status")
    assert desk.cluster.devices.to_free == {}
    desk.cluster.devices.to_free["a/c"] = "no node passes"
    desk.cache.claims.free()
    assert len(desk.world.of(Patch)) == len(desk.world.patches("ResourceClaim")) == 1
    desk.settle(patch, read=claim(5)).apply()
    assert ("c", "ResourceClaimDeallocated", "deallocation of ResourceClaim completed") in desk.world.notes
    assert not is_used(desk)


def test_a_claim_that_could_not_be_freed_is_tried_again_when_it_is_asked_for_again():
    desk = Desk(NOBODY_DECIDES)
    desk.feed(node("n1"), claim(4, allocation=given())).apply()
    for attempt in (1, 2):
        desk.cluster.devices.to_free["a/c"] = "no node passes"
        desk.cache.claims.free()
        assert len(desk.world.patches("ResourceClaim")) == attempt
        desk.settle(desk.world.patches("ResourceClaim")[-1], "conflict", "it has changed").apply()
        assert "claim a/c: its devices could not be taken back: it has changed" in str(desk.cache.record.trace())
    assert is_used(desk)
    assert desk.world.of(Bind) == []


def made_for(name):
    """A claim that was made for a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"a.{name}", "controller": True}
    found = claim(4)
    return {**found, "metadata": {**found["metadata"], "ownerReferences": [owner]}}


def delete(desk, uid="a.g-0"):
    """Let a plugin find the claim useless; give what is sent."""
    desk.cluster.devices.to_delete["a/c"] = uid
    desk.cache.claims.free()
    return desk.world.of(TakeBack)


def test_a_claim_that_an_attempt_has_left_is_deleted_once_and_again_if_that_failed_or_it_has_changed():
    desk = Desk(NOBODY_DECIDES).feed(node("n1"), made_for("g-0"), asking("g-0")).apply()
    for _ in range(2):
        (back,) = delete(desk)
    (unmade,) = back.preparations
    assert (back.name, back.uid) == ("g-0", "a.g-0")
    assert (type(unmade), unmade.namespace, unmade.claim, unmade.pod_uid) == (NewClaim, "a", "c", "a.g-0")
    said = "claim a/c asks for something else than pod a/g-0: it is deleted"
    assert str(desk.cache.record.trace()).count(said) == 1
    desk.settle(back).apply()
    assert len(delete(desk)) == 1
    before = desk.cluster.changed
    desk.settle(back, "unavailable").apply()
    assert desk.cluster.changed != before
    assert len(delete(desk)) == 2
    desk.modify({**made_for("g-0"), "metadata": {**made_for("g-0")["metadata"], "resourceVersion": "5"}}).apply()
    assert len(delete(desk)) == 3


@pytest.mark.parametrize("gone", ["claim", "pod"])
def test_a_claim_is_not_deleted_if_it_or_its_pod_is_gone_meanwhile(gone):
    desk = Desk(NOBODY_DECIDES).feed(node("n1"), made_for("g-0"), asking("g-0")).apply()
    desk.delete(made_for("g-0") if gone == "claim" else asking("g-0")).apply()
    assert delete(desk) == []


def test_why_devices_are_taken_back_is_in_the_record():
    desk = Desk(NOBODY_DECIDES).feed(node("n1"), claim(4, allocation=given())).apply()
    desk.cluster.devices.to_free["a/c"] = "no node passes"
    desk.cache.publish(desk.session())
    assert "claim a/c: its devices are taken back: no node passes" in str(desk.cache.record.trace())


def test_a_claim_that_lost_its_devices_is_waited_for():
    desk, _ = waiting_desk()
    desk.modify(claim(3, consumers=["g-0"])).apply()
    assert desk.world.binds == {}
    lacks = claims.unmet(desk.task("g-0"), desk.cluster.devices, NOW)
    assert lacks.waiting == ("claim a/c: its allocation",)
    assert lacks.until == NOW + 600 * SECOND
