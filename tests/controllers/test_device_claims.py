"""Claims for devices: made from templates, let go with the pods that used them."""

from __future__ import annotations

import pytest

from pumice.api import kinds
from pumice.controllers import device_claims
from pumice.controllers.queueing import observed
from pumice.sim.cluster import SimulatedCluster
from pumice.sim.identity import Key

FINALIZER = "resource.kubernetes.io/delete-protection"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
GIVEN = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t", "namespace": "a"},
    "spec": {"metadata": {"labels": {"l": "1"}, "annotations": {"n": "2"}}, "spec": SPEC},
}


def pod(name="p", claims=({"name": "gpu", "resourceClaimTemplateName": "t"},), **status):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "image": "x"}],
            "resourceClaims": list(claims),
        },
        "status": status,
    }


def claim(name="c", **fields):
    metadata = {"name": name, "namespace": "a", "finalizers": [FINALIZER]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": SPEC, **fields}


def reserved(cluster, *pods):
    consumers = [{"resource": "pods", "name": name, "uid": uid(cluster, name)} for name in pods]
    return {"allocation": GIVEN, "reservedFor": consumers}


def uid(cluster, name):
    return cluster.store.peek(Key(kinds.POD, "a", name))["metadata"]["uid"]


def found(cluster, name="c"):
    return cluster.store.find(Key(kinds.RESOURCE_CLAIM, "a", name))


def settled(*manifests):
    cluster = SimulatedCluster()
    cluster.apply(list(manifests))
    cluster.settle()
    return cluster


def made(cluster):
    return list(cluster.store.scan(kinds.RESOURCE_CLAIM))


def test_a_claim_is_made_from_a_template_and_the_pod_is_told_its_name():
    cluster = settled(TEMPLATE, pod())
    (one,) = made(cluster)
    metadata = one["metadata"]
    assert metadata["name"].startswith("p-gpu-")
    assert len(metadata["name"]) == len("p-gpu-") + 5
    assert metadata["generateName"] == "p-gpu-"
    assert metadata["annotations"] == {"n": "2", "resource.kubernetes.io/pod-claim-name": "gpu"}
    assert metadata["labels"] == {"l": "1"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid(cluster, "p")}
    assert metadata["ownerReferences"] == [{**owner, "controller": True, "blockOwnerDeletion": True}]
    assert one["spec"] == SPEC
    status = cluster.store.peek(Key(kinds.POD, "a", "p"))["status"]
    assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": metadata["name"]}]
    cluster.settle()
    assert made(cluster) == [one]


def test_names_are_cut_and_stay_within_63_characters():
    cluster = settled(TEMPLATE, pod("p" * 60))
    (one,) = made(cluster)
    assert len(one["metadata"]["name"]) == 63


def test_a_template_that_is_missing_is_told_and_waited_for():
    cluster = settled(pod(), claim("other"))
    assert [each["metadata"]["name"] for each in made(cluster)] == ["other"]
    (told,) = [each.note for each in cluster.events if each.note.reason == "FailedResourceClaimCreation"]
    assert 'resourceclaimtemplate "t" not found' in told.message
    cluster.apply([TEMPLATE])
    cluster.settle()
    assert any(each["metadata"]["name"].startswith("p-gpu-") for each in made(cluster))


def test_a_pod_that_ends_leaves_its_claims_and_the_last_one_frees_the_devices():
    mine = [{"name": "gpu", "resourceClaimName": "c"}]
    cluster = settled(pod("p", mine, phase="Running"), pod("q", mine, phase="Running"))
    cluster.apply([claim(status=reserved(cluster, "p", "q"))])
    cluster.settle()
    assert len(found(cluster)["status"]["reservedFor"]) == 2
    cluster.merge([{"kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "status": {"phase": "Succeeded"}}])
    cluster.settle()
    status = found(cluster)["status"]
    assert [each["name"] for each in status["reservedFor"]] == ["q"]
    assert status["allocation"] == GIVEN
    cluster.delete(["pod/a/q"])
    cluster.settle()
    left = found(cluster)
    assert not left["status"].get("reservedFor")
    assert not left["status"].get("allocation")
    assert not left["metadata"].get("finalizers")


def test_a_claim_that_was_only_left_allocated_keeps_its_devices_until_it_is_deleted():
    cluster = settled(claim(status={"allocation": GIVEN}))
    assert found(cluster)["status"]["allocation"] == GIVEN
    cluster.store.delete(Key(kinds.RESOURCE_CLAIM, "a", "c"))
    cluster.settle()
    assert found(cluster) is None


@pytest.mark.parametrize("finalizers", [[], ["of.others"], [FINALIZER], ["of.others", FINALIZER]])
def test_of_a_claim_that_goes_and_that_nobody_uses_only_what_it_has_is_taken_away(finalizers):
    going = claim(status={"allocation": GIVEN})
    going["metadata"] |= {"uid": "c", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}
    known = observed.Observed()
    known.feed(kinds.RESOURCE_CLAIM, "ADDED", going)
    steps = device_claims.Claims().reconcile("a", "c", known, None).steps
    written = [(each.request.subresource, each.request.body) for each in steps]
    if FINALIZER not in finalizers:
        assert written == []
        return
    (_, freed), (_, released) = written
    assert freed["status"] == {"allocation": None, "devices": None}
    assert released == {"metadata": {"finalizers": finalizers[:-1] or None}}


def test_a_pod_that_goes_without_having_had_a_node_is_done_with_its_claims():
    mine = [{"name": "gpu", "resourceClaimName": "c"}]
    waiting = pod("p", mine)
    waiting["metadata"]["finalizers"] = ["example.com/keep"]
    cluster = settled(waiting)
    cluster.apply([claim(status=reserved(cluster, "p"))])
    cluster.store.delete(Key(kinds.POD, "a", "p"))
    cluster.settle()
    assert not found(cluster)["status"].get("reservedFor")


@pytest.mark.parametrize(
    "consumer",
    [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups"},
        {"apiGroup": "example.com", "resource": "pods"},
        {"resource": "services"},
    ],
)
def test_a_consumer_that_is_no_pod_is_not_judged(consumer):
    other = {**consumer, "name": "g", "uid": "u"}
    cluster = settled(claim(status={"allocation": GIVEN, "reservedFor": [other]}))
    assert found(cluster)["status"]["reservedFor"] == [other]


@pytest.mark.parametrize(
    ("owner", "concerned"),
    [
        ({"kind": "Pod", "name": "p", "controller": True}, [("a", "p")]),
        ({"kind": "Pod", "name": "p", "controller": False}, []),
        ({"kind": "Job", "name": "p", "controller": True}, []),
        (None, []),
    ],
)
def test_a_claim_concerns_the_pod_that_controls_it(owner, concerned):
    given = claim()
    if owner is not None:
        given["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "uid": "u", **owner}]
    found = device_claims.PodClaims().concerns(kinds.RESOURCE_CLAIM, given, observed.Observed([]))
    assert list(found) == concerned


@pytest.mark.parametrize(
    ("entry", "waits"),
    [
        ({"name": "gpu", "resourceClaimTemplateName": "t"}, True),
        ({"name": "gpu", "resourceClaimTemplateName": "other"}, False),
        ({"name": "gpu", "resourceClaimName": "t"}, False),
        ({"name": 7, "resourceClaimTemplateName": "t"}, False),
        ({"resourceClaimTemplateName": "t"}, False),
        ("gpu", False),
    ],
)
def test_a_template_concerns_the_pods_of_its_namespace_that_name_it_and_can_be_read(entry, waits):
    known = observed.Observed([])
    for namespace in ("a", "b"):
        waiting = pod(claims=[entry])
        waiting["metadata"] = {**waiting["metadata"], "namespace": namespace, "uid": namespace, "resourceVersion": "1"}
        known.feed(kinds.POD, "ADDED", waiting)
    found = device_claims.PodClaims().concerns(kinds.RESOURCE_CLAIM_TEMPLATE, TEMPLATE, known)
    assert list(found) == [("a", "p")] * waits


def test_another_pod_of_the_same_name_does_not_inherit_a_reservation():
    stale = {"resource": "pods", "name": "p", "uid": "of-another"}
    cluster = settled(
        pod("p", [{"name": "gpu", "resourceClaimName": "c"}]),
        claim(status={"allocation": GIVEN, "reservedFor": [stale]}),
    )
    assert not found(cluster)["status"].get("reservedFor")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_claims_from_templates_go_with_the_pod_that_ended(phase):
    cluster = settled(TEMPLATE, pod())
    (one,) = made(cluster)
    cluster.merge([{"kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "status": {"phase": phase}}])
    cluster.settle()
    assert found(cluster, one["metadata"]["name"]) is None


def test_claims_from_templates_are_collected_with_a_pod_that_is_deleted():
    cluster = settled(TEMPLATE, pod())
    cluster.delete(["pod/a/p"])
    cluster.settle()
    assert made(cluster) == []


def test_a_claim_of_that_name_which_is_somebody_elses_is_left_alone_and_told_of():
    cluster = SimulatedCluster()
    cluster.apply([pod()])
    name = device_claims.name_of(cluster.store.peek(Key(kinds.POD, "a", "p")), "gpu")
    cluster.apply([TEMPLATE, claim(name)])
    cluster.settle()
    assert "ownerReferences" not in found(cluster, name)["metadata"]
    assert any("not owned by the pod" in each.note.message for each in cluster.events)


# ---- one look


def looked(controller, name, *objects):
    known = observed.Observed()
    for kind, manifest in objects:
        known.feed(kind, "ADDED", manifest)
    return controller.reconcile("a", name, known, None)


def running(*, going=False, node="n", phase="Running", uid="u-p"):
    made = pod(phase=phase)
    made["metadata"] |= {"uid": uid} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})
    made["spec"] |= {"nodeName": node} if node else {}
    return made


def claim_of(made, owner="u-p"):
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
    found = claim(device_claims.name_of(made, "gpu"))
    found["metadata"] |= {"uid": "c", "resourceVersion": "7", "ownerReferences": [reference]}
    return found


@pytest.mark.parametrize(
    ("going", "node", "phase", "ended"),
    [
        (False, "n", "Running", False),
        (True, "n", "Running", False),
        (False, "", "Pending", False),
        (True, "", "Pending", True),
        (False, "n", "Succeeded", True),
        (False, "n", "Failed", True),
    ],
)
def test_a_pod_has_ended_or_will_never_begin(going, node, phase, ended):
    made = running(going=going, node=node, phase=phase)
    assert bool(device_claims.is_finished(made)) is ended
    steps = looked(device_claims.PodClaims(), "p", (kinds.POD, made), (kinds.RESOURCE_CLAIM_TEMPLATE, TEMPLATE)).steps
    assert bool(steps) is not (going or ended)


@pytest.mark.parametrize(("owner", "told"), [("u-p", False), ("another", True)])
def test_a_claim_that_is_there_is_named_if_it_is_the_pods_own(owner, told):
    made = running()
    there = claim_of(made, owner)
    plan = looked(
        device_claims.PodClaims(),
        "p",
        (kinds.POD, made),
        (kinds.RESOURCE_CLAIM, there),
        (kinds.RESOURCE_CLAIM_TEMPLATE, TEMPLATE),
    )
    listed = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": there["metadata"]["name"]}]}
    assert [step.request.body for step in plan.steps] == ([] if told else [{"status": listed}])
    assert [reason for _, reason, _ in plan.notes] == ["FailedResourceClaimCreation"] * told


def test_a_pod_concerns_every_claim_that_it_names():
    made = pod(
        claims=[{"name": "a", "resourceClaimName": "x"}, "odd"],
        resourceClaimStatuses=[{"name": "b", "resourceClaimName": "y"}, {"name": "c"}],
        extendedResourceClaimStatus={"resourceClaimName": "z"},
    )
    found = device_claims.Claims().concerns(kinds.POD, made, observed.Observed())
    assert found == [("a", "x"), ("a", "y"), ("a", "z")]


def test_who_is_left_is_written_against_the_version_that_was_read():
    made = running(phase="Succeeded")
    used = claim_of(made)
    used["status"] = {"allocation": GIVEN, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u-p"}]}
    steps = looked(
        device_claims.Claims(), used["metadata"]["name"], (kinds.POD, made), (kinds.RESOURCE_CLAIM, used)
    ).steps
    assert steps[0].request.body["metadata"] == {"resourceVersion": "7"}
