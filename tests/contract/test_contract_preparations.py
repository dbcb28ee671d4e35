"""What is written before a bind: locks of nodes, and claims for devices."""

from __future__ import annotations

import pytest
from contract_objects import code, pod, uid

from pumice.api import kinds, timestamp
from pumice.cache import effects
from pumice.model.preparations import ClaimGrant, ExtendedClaimStatus, NewClaim, NodeLock

STAMP = "2026-01-01T00:00:00.000001Z"


def node(harness, **annotations):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n-{harness.namespace}", "annotations": annotations},
    }


def lock(harness, stamp=STAMP):
    return NodeLock(node=f"n-{harness.namespace}", annotation="gpu", stamp=stamp)


def prepare(harness, *preparations):
    known = uid(harness, kinds.POD, "p")
    return effects.Prepare(
        namespace=harness.namespace, name="p", uid=known, node=f"n-{harness.namespace}", preparations=preparations
    )


def take_back(harness, *preparations):
    known = uid(harness, kinds.POD, "p")
    return effects.TakeBack(namespace=harness.namespace, name="p", uid=known, preparations=preparations)


def annotation(harness):
    return (harness.find(kinds.NODE, f"n-{harness.namespace}")["metadata"].get("annotations") or {}).get("gpu")


def test_a_node_is_locked_and_locking_it_again_changes_nothing(harness):
    harness.apply(node(harness), pod(harness))
    (outcome,) = harness.perform(prepare(harness, lock(harness)))
    assert code(outcome) is None
    assert annotation(harness) == STAMP
    version = harness.find(kinds.NODE, f"n-{harness.namespace}")["metadata"]["resourceVersion"]
    (again,) = harness.perform(prepare(harness, lock(harness)))
    assert code(again) is None
    assert harness.find(kinds.NODE, f"n-{harness.namespace}")["metadata"]["resourceVersion"] == version


def test_a_young_lock_of_somebody_else_stands(harness):
    other = timestamp.format_timestamp(harness.now() - 60_000_000)
    harness.apply(node(harness, gpu=other), pod(harness))
    (outcome,) = harness.perform(prepare(harness, lock(harness)))
    assert code(outcome) == "conflict"
    assert other in outcome.failure.message
    assert annotation(harness) == other


@pytest.mark.parametrize("old", ["2020-01-01T00:00:00Z", "nonsense"])
def test_an_old_lock_is_taken_over(harness, old):
    harness.apply(node(harness, gpu=old), pod(harness))
    (outcome,) = harness.perform(prepare(harness, lock(harness)))
    assert code(outcome) is None
    assert annotation(harness) == STAMP


def test_a_lock_is_taken_back_and_one_of_somebody_else_is_left(harness):
    harness.apply(node(harness), pod(harness))
    harness.perform(prepare(harness, lock(harness)))
    (other,) = harness.perform(take_back(harness, lock(harness, "2026-01-01T00:00:00.000002Z")))
    assert code(other) is None
    assert annotation(harness) == STAMP
    (mine,) = harness.perform(take_back(harness, lock(harness)))
    assert code(mine) is None
    assert annotation(harness) is None
    (again,) = harness.perform(take_back(harness, lock(harness)))
    assert code(again) is None


def test_a_node_that_is_gone_cannot_be_locked_and_has_nothing_to_take_back(harness):
    harness.apply(pod(harness))
    forth, back = harness.perform(prepare(harness, lock(harness)), take_back(harness, lock(harness)))
    assert code(forth) == "notfound"
    assert code(back) is None


def test_two_pods_that_leave_together_share_a_lock(harness):
    harness.apply(node(harness), pod(harness), pod(harness, "q"))
    known = uid(harness, kinds.POD, "q")
    other = effects.Prepare(
        namespace=harness.namespace, name="q", uid=known, node=f"n-{harness.namespace}", preparations=(lock(harness),)
    )
    outcomes = harness.perform(prepare(harness, lock(harness)), other)
    assert [code(each) for each in outcomes] == [None, None]


# ---- claims for devices

CLAIM = kinds.RESOURCE_CLAIM
FINALIZER = "resource.kubernetes.io/delete-protection"


def claim(harness, name="c", **metadata):
    return {
        "apiVersion": CLAIM.api_version,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": harness.namespace, **metadata},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
    }


def given(device="x"):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    results = [{"request": "r", "driver": "d.example.com", "pool": "p", "device": device}]
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}


def reservation(harness, name="c", *, of=None, who="p", **fields):
    return ClaimGrant(
        namespace=harness.namespace,
        claim=name,
        uid=uid(harness, CLAIM, name) if of is None else of,
        pod=who,
        pod_uid=uid(harness, kinds.POD, who),
        **{"allocation": given(), **fields},
    )


def consumers(harness, name="c"):
    return [each["name"] for each in harness.find(CLAIM, name).get("status", {}).get("reservedFor") or ()]


def test_a_claim_is_protected_allocated_and_reserved_and_the_answer_shows_it(harness):
    harness.apply(claim(harness), pod(harness))
    (outcome,) = harness.perform(prepare(harness, reservation(harness)))
    assert code(outcome) is None
    found = harness.find(CLAIM, "c")
    assert FINALIZER in found["metadata"]["finalizers"]
    assert found["status"]["allocation"]["devices"]["results"][0]["device"] == "x"
    assert found["status"]["allocation"]["nodeSelector"] == given()["nodeSelector"]
    assert found["status"]["allocation"]["allocationTimestamp"]
    assert found["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": uid(harness, kinds.POD, "p")}]
    (shown,) = outcome.object["claims"]
    assert shown["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    (again,) = harness.perform(prepare(harness, reservation(harness)))
    assert code(again) is None
    assert harness.find(CLAIM, "c")["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]


def test_a_claim_that_has_its_devices_is_reserved_for_one_pod_more(harness):
    harness.apply(claim(harness), pod(harness), pod(harness, "q"))
    harness.perform(prepare(harness, reservation(harness)))
    other = reservation(harness, who="q")
    effect = effects.Prepare(namespace=harness.namespace, name="q", uid=other.pod_uid, node="n1", preparations=(other,))
    (outcome,) = harness.perform(effect)
    assert code(outcome) is None
    assert sorted(consumers(harness)) == ["p", "q"]


def test_members_that_share_a_claim_are_all_reserved_at_once(harness):
    pods = [f"p{number}" for number in range(8)]
    harness.apply(claim(harness), *(pod(harness, name) for name in pods))
    wanted = [
        effects.Prepare(
            namespace=harness.namespace,
            name=name,
            uid=uid(harness, kinds.POD, name),
            node="n1",
            preparations=(reservation(harness, who=name),),
        )
        for name in pods
    ]
    assert [code(each) for each in harness.perform(*wanted)] == [None] * len(pods)
    assert sorted(consumers(harness)) == pods


def test_a_claim_that_got_other_devices_meanwhile_is_a_conflict_and_nothing_is_changed(harness):
    harness.apply(claim(harness), pod(harness), pod(harness, "q"))
    harness.perform(prepare(harness, reservation(harness)))
    other = reservation(harness, who="q", allocation=given("y"))
    effect = effects.Prepare(namespace=harness.namespace, name="q", uid=other.pod_uid, node="n1", preparations=(other,))
    (outcome,) = harness.perform(effect)
    assert code(outcome) == "conflict"
    assert outcome.failure.message == f"claim {harness.namespace}/c got allocated elsewhere in the meantime"
    assert consumers(harness) == ["p"]
    assert outcome.object["claims"][0]["status"]["allocation"]["devices"]["results"][0]["device"] == "x"


def test_a_claim_that_lost_its_devices_is_a_conflict_for_whoever_relied_on_them(harness):
    harness.apply(claim(harness), pod(harness))
    (outcome,) = harness.perform(prepare(harness, reservation(harness, allocation=None)))
    assert code(outcome) == "conflict"
    assert "lost its devices" in outcome.failure.message


@pytest.mark.parametrize("kind", ["gone", "replaced", "going"])
def test_a_claim_that_is_not_there_any_more_fails_the_bind(harness, kind):
    harness.apply(pod(harness))
    if kind != "gone":
        harness.apply(claim(harness, finalizers=["example.com/keep"]))
    if kind == "going":
        wanted = reservation(harness)
        harness.delete(CLAIM, "c")
    else:
        wanted = reservation(harness, of="another")
    (outcome,) = harness.perform(prepare(harness, wanted))
    assert code(outcome) == ("notfound" if kind == "gone" else "conflict")


def test_a_reservation_is_taken_back_and_the_devices_stay(harness):
    harness.apply(claim(harness), pod(harness), pod(harness, "q"))
    wanted = reservation(harness)
    harness.perform(prepare(harness, wanted))
    other = reservation(harness, who="q")
    harness.perform(
        effects.Prepare(namespace=harness.namespace, name="q", uid=other.pod_uid, node="n1", preparations=(other,))
    )
    (outcome,) = harness.perform(take_back(harness, wanted))
    assert code(outcome) is None
    assert consumers(harness) == ["q"]
    assert harness.find(CLAIM, "c")["status"]["allocation"]["devices"]["results"][0]["device"] == "x"
    (again,) = harness.perform(take_back(harness, wanted))
    assert code(again) is None


def test_what_is_written_before_the_step_that_fails_stays_and_can_be_taken_back(harness):
    harness.apply(claim(harness), claim(harness, "d"), pod(harness))
    first, missing = reservation(harness), reservation(harness, "d", of="another")
    (outcome,) = harness.perform(prepare(harness, first, missing))
    assert code(outcome) == "conflict"
    assert consumers(harness) == ["p"]
    (back,) = harness.perform(take_back(harness, first, missing))
    assert code(back) is None
    assert consumers(harness) == []


def test_a_claim_is_made_for_a_pod_told_to_it_and_deleted_when_it_is_taken_back(harness):
    asking = pod(harness)
    amounts = {"example.com/gpu": "1"}
    asking["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    harness.apply(asking)
    known = uid(harness, kinds.POD, "p")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": known, "controller": True}
    manifest = claim(harness, "p-extended-resources-x", ownerReferences=[owner])
    made = NewClaim(
        namespace=harness.namespace, claim="p-extended-resources-x", pod="p", pod_uid=known, manifest=manifest
    )
    reserved = reservation(harness, "p-extended-resources-x", of="")
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
    status = {"resourceClaimName": "p-extended-resources-x", "requestMappings": [mapping]}
    told = ExtendedClaimStatus(namespace=harness.namespace, pod="p", pod_uid=known, status=status)
    (outcome,) = harness.perform(prepare(harness, made, reserved, told))
    assert outcome.failure is None
    assert consumers(harness, "p-extended-resources-x") == ["p"]
    assert harness.find(kinds.POD, "p")["status"]["extendedResourceClaimStatus"] == status
    (again,) = harness.perform(prepare(harness, made, reserved, told))
    assert code(again) is None
    (back,) = harness.perform(take_back(harness, made, reserved, told))
    assert code(back) is None
    assert harness.find(CLAIM, "p-extended-resources-x") is None
    (twice,) = harness.perform(take_back(harness, made, reserved, told))
    assert code(twice) is None
