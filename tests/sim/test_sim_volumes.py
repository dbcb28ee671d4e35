"""Before a pod is bound its claims are bound as decided; what cannot be done fails the bind and names the object."""

from __future__ import annotations

import pytest
from sim_objects import cluster, node, pod, stored

from pumice.cache import effects
from pumice.model.volumes import VolumeDecision
from pumice.sim import faults

ZONE = "topology.kubernetes.io/zone"


def storage_class(name="c", provisioner="d"):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name="data", cls="c", **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"storageClassName": cls, "resources": {"requests": {"storage": "5Gi"}}, **spec},
    }


def volume(name="v", **spec):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"storageClassName": "c", "capacity": {"storage": "8Gi"}, **spec},
    }


def csi_node(name="n1", **driver):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": "d", "nodeID": name, **driver}]},
    }


def bind(simulated, *decisions, uid=None):
    made = [
        VolumeDecision(
            namespace="a",
            claim=name,
            uid=stored(simulated, f"persistentvolumeclaim/a/{name}")["metadata"]["uid"] if uid is None else uid,
            volume=chosen,
        )
        for name, chosen in decisions
    ]
    pod_uid = stored(simulated, "pod/a/p")["metadata"]["uid"]
    simulated.send(effects.Bind(namespace="a", name="p", uid=pod_uid, node="n1", volumes=tuple(made)))
    simulated.settle()


def is_bound(simulated):
    return bool(stored(simulated, "pod/a/p")["spec"].get("nodeName"))


def test_a_chosen_volume_is_claimed_and_both_sides_are_bound():
    simulated, _ = cluster(pod(), node(), storage_class(), claim(), volume())
    bind(simulated, ("data", "v"))
    pvc, pv = stored(simulated, "persistentvolumeclaim/a/data"), stored(simulated, "persistentvolume/v")
    assert pvc["spec"]["volumeName"] == "v"
    assert pvc["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    assert pvc["status"] == {"phase": "Bound", "capacity": {"storage": "8Gi"}}
    assert pv["spec"]["claimRef"]["uid"] == pvc["metadata"]["uid"]
    assert pv["status"]["phase"] == "Bound"
    assert is_bound(simulated)


def test_a_volume_is_made_for_the_node_and_reaches_its_topology():
    site = node("n1")
    site["metadata"]["labels"] = {ZONE: "z1"}
    simulated, _ = cluster(pod(), site, csi_node(topologyKeys=[ZONE]), storage_class(), claim())
    bind(simulated, ("data", ""))
    pvc = stored(simulated, "persistentvolumeclaim/a/data")
    pv = stored(simulated, f"persistentvolume/{pvc['spec']['volumeName']}")
    assert pvc["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert pv["spec"]["csi"]["driver"] == "d"
    assert pv["spec"]["capacity"] == {"storage": "5Gi"}
    (term,) = pv["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["z1"]}]
    assert is_bound(simulated)


def test_a_new_volume_is_taken_off_the_room_that_its_driver_states():
    def capacity(name, zone, **more):
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": name, "namespace": "kube-system"},
            "storageClassName": "c",
            "capacity": "10Gi",
            "nodeTopology": {"matchLabels": {ZONE: zone}},
            **more,
        }

    site = node("n1")
    site["metadata"]["labels"] = {ZONE: "z1"}
    bad = capacity("bad", "z1", capacity="much")
    simulated, _ = cluster(pod(), site, storage_class(), claim(), capacity("x", "z1"), capacity("y", "z2"), bad)
    bind(simulated, ("data", ""))
    left = {n: stored(simulated, f"csistoragecapacity/kube-system/{n}")["capacity"] for n in ("x", "y", "bad")}
    assert left == {"x": "5Gi", "y": "10Gi", "bad": "much"}


def test_a_decision_that_is_carried_out_already_changes_nothing():
    simulated, _ = cluster(pod(), node(), storage_class(), claim(volumeName="v"), volume())
    bind(simulated, ("data", "v"))
    assert is_bound(simulated)


FAILURES = [
    ([claim(), volume(claimRef={"namespace": "a", "name": "other"})], ("data", "v"), "conflict", "claimed by a/other"),
    ([claim()], ("data", "v"), "notfound", "persistentvolume/v not found"),
    ([claim(volumeName="w"), volume()], ("data", "v"), "conflict", "bound to volume w, not v"),
    ([claim(cls="none")], ("data", ""), "refused", "storage class none makes no volumes"),
    ([claim(cls="static"), storage_class("static", "kubernetes.io/no-provisioner")], ("data", ""), "refused", "static"),
]


@pytest.mark.parametrize(("objects", "decision", "code", "text"), FAILURES)
def test_what_cannot_be_done_fails_the_bind_and_names_the_object(objects, decision, code, text):
    simulated, mirror = cluster(pod(), node(), storage_class(), *objects)
    bind(simulated, decision)
    (outcome,) = mirror.outcomes
    assert (outcome.failure.code, is_bound(simulated)) == (code, False)
    assert text in outcome.failure.message
    assert simulated.counts.binds == 0


def test_a_claim_that_was_replaced_is_not_the_one_that_was_decided_for():
    simulated, mirror = cluster(pod(), node(), storage_class(), claim(), volume())
    bind(simulated, ("data", "v"), uid="older")
    assert mirror.failures() == ["conflict"]
    assert "volumeName" not in stored(simulated, "persistentvolumeclaim/a/data")["spec"]


def test_a_bind_that_fails_after_its_volumes_leaves_them_bound():
    simulated, mirror = cluster(pod(), node(), storage_class(), claim(), volume())
    simulated.fail(faults.Fault(verb="bind", object="pod/a/p", times=1, error="conflict"))
    bind(simulated, ("data", "v"))
    assert mirror.failures() == ["conflict"]
    assert stored(simulated, "persistentvolumeclaim/a/data")["spec"]["volumeName"] == "v"


def test_phases_of_volumes_and_claims_are_filled_in_unless_given():
    given = volume("w")
    given["status"] = {"phase": "Released"}
    simulated, _ = cluster(claim(), claim("held", volumeName="v"), volume(), given)
    phases = {
        reference: stored(simulated, reference)["status"]["phase"]
        for reference in (
            "persistentvolumeclaim/a/data",
            "persistentvolumeclaim/a/held",
            "persistentvolume/v",
            "persistentvolume/w",
        )
    }
    assert list(phases.values()) == ["Pending", "Bound", "Available", "Released"]
