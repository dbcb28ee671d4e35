"""Which volume a claim gets, case by case: one that is meant for it, the smallest that fits, or one that is made; and what becomes of a volume whose claim is gone."""

from __future__ import annotations

import pytest

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.controllers import volumes
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed

NOW = requests.Moment(1_767_225_600_000_000)
GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def claim(size="5Gi", *, notes=None, status=None, going=False, name="c", **spec):
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": "2", "annotations": notes or {}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": metadata | (GONE if going else {}), "spec": spec, "status": status or {}}


def volume(name="v", size="5Gi", *, labels=None, going=False, status=None, meant=None, **spec):
    metadata = {"name": name, "uid": f"u-{name}", "resourceVersion": "3", "labels": labels or {}}
    spec = {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "capacity": {"storage": size}, **spec}
    if meant is not None:
        spec["claimRef"] = {"namespace": "a", "name": "c"} | ({"uid": meant} if meant else {})
    return {"metadata": metadata | (GONE if going else {}), "spec": spec, "status": status or {}}


def storage_class(name="fast", **more):
    return {"metadata": {"name": name, "uid": f"u-{name}"}, "provisioner": "x.io/p", **more}


def looked_at(controller, name, *, claims=(), found=(), classes=()):
    observed = Observed()
    for kind, objects in ((volumes.CLAIM, claims), (volumes.VOLUME, found), (kinds.STORAGE_CLASS, classes)):
        for each in objects:
            observed.feed(kind, "ADDED", each)
    home = "a" if controller.kind is volumes.CLAIM else ""
    return [step.request for step in controller.reconcile(home, name, observed, NOW).steps]


def chosen(wanted, *found, **more):
    """Give the volume that a claim is joined with."""
    requested = looked_at(volumes.Claims(), "c", claims=[wanted], found=found, **more)
    return next(
        (each.body["spec"]["volumeName"] for each in requested if "volumeName" in each.body.get("spec", {})), None
    )


BLOCK = {"volumeMode": "Block"}
TAKEN = {"claimRef": {"namespace": "b", "name": "other", "uid": "u"}}
SLOW = {"storageClassName": "slow"}


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        ({}, {}, True),
        ({"size": "5Gi"}, {"size": "4Gi"}, False),
        ({"size": "5Gi"}, {"size": "6Gi"}, True),
        ({"size": "nonsense"}, {}, True),
        ({"size": "nonsense"}, {"size": "0"}, True),
        ({}, {"size": "nonsense"}, False),
        ({"accessModes": ["ReadWriteMany"]}, {}, False),
        ({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}, {}, True),
        ({}, {"accessModes": ["ReadOnlyMany"]}, False),
        (BLOCK, {}, False),
        ({}, BLOCK, False),
        (BLOCK, BLOCK, True),
        (SLOW, {}, False),
        ({}, SLOW, False),
        (SLOW, SLOW, True),
        ({}, {"storageClassName": ""}, True),
        ({"selector": {"matchLabels": {"disk": "ssd"}}}, {}, False),
        ({"selector": {"matchLabels": {"disk": "ssd"}}}, {"labels": {"disk": "ssd"}}, True),
        ({}, TAKEN, False),
        ({}, {"going": True}, False),
    ],
)
def test_a_volume_fits_that_is_free_and_large_enough_and_of_the_class_the_modes_and_the_labels(wanted, offered, fits):
    assert chosen(claim(**wanted), volume(**offered)) == ("v" if fits else None)


def test_the_smallest_that_fits_is_taken_and_before_it_one_that_is_meant_for_the_claim():
    found = [volume("large", "9Gi"), volume("b", "6Gi"), volume("a", "6Gi"), volume("small", "1Gi")]
    assert chosen(claim(), *found) == "a"
    assert chosen(claim(), *found, volume("mine", "1Gi", meant="")) == "mine"
    assert chosen(claim(), *found, volume("mine", "1Gi", meant="u-c")) == "mine"
    assert chosen(claim(), *found, volume("mine", "1Gi", meant="u-earlier")) == "a"
    assert chosen(claim(), *found, volume("mine", "1Gi", meant="", going=True)) == "a"
    assert chosen(claim(name="d"), *found, volume("mine", meant="")) is None  # it is not there
    assert chosen(claim(going=True), *found) is None


@pytest.mark.parametrize("by", [{"storageClassName": "fast"}, {"notes": {names.OLDER_STORAGE_CLASS: "fast"}}])
def test_a_class_that_waits_for_the_first_pod_gets_nothing_before_a_node_is_chosen(by):
    free = volume(storageClassName=by.get("storageClassName", ""))
    waiting, at_once = storage_class(volumeBindingMode="WaitForFirstConsumer"), storage_class()
    assert chosen(claim(**by), free, classes=[at_once]) == "v"
    assert looked_at(volumes.Claims(), "c", claims=[claim(**by)], found=[free], classes=[waiting]) == []
    placed = claim(**{**by, "notes": {**by.get("notes", {}), names.SELECTED_NODE: "n"}})
    (made,) = looked_at(volumes.Claims(), "c", claims=[placed], classes=[waiting])
    assert made.manifest["metadata"]["name"] == "pvc-u-c"


def test_a_volume_is_made_for_a_claim_whose_class_has_a_provisioner():
    wanted = claim(storageClassName="fast", volumeMode="Block")
    (made,) = looked_at(volumes.Claims(), "c", claims=[wanted], classes=[storage_class()])
    assert made.manifest["metadata"] == {
        "name": "pvc-u-c",
        "annotations": {"pv.kubernetes.io/provisioned-by": "x.io/p"},
    }
    assert made.manifest["spec"] == {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": "a",
            "name": "c",
            "uid": "u-c",
        },
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": "fast",
        "volumeMode": "Block",
        "csi": {"driver": "x.io/p", "volumeHandle": "pvc-u-c"},
    }
    (kept,) = looked_at(volumes.Claims(), "c", claims=[wanted], classes=[storage_class(reclaimPolicy="Retain")])
    assert kept.manifest["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    for classes in ([], [storage_class(provisioner="")], [storage_class(provisioner=names.NO_PROVISIONER)]):
        assert looked_at(volumes.Claims(), "c", claims=[wanted], classes=classes) == []
    assert looked_at(volumes.Claims(), "c", claims=[claim()], classes=[storage_class("None")]) == []


DONE = {names.BIND_COMPLETED: "yes"}
STATUS = {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}


@pytest.mark.parametrize(
    ("wanted", "found", "writes"),
    [
        (claim(), volume(), ["v", "c", "c/status"]),
        (claim(), volume(meant="u-c"), ["c", "c/status"]),
        (claim(volumeName="v"), volume(), ["v", "c", "c/status"]),
        (claim(volumeName="v", notes=DONE), volume(meant="u-c"), ["c/status"]),
        (claim(volumeName="v", notes=DONE, status=STATUS), volume(meant="u-c"), []),
        (claim(volumeName="v"), volume(meant="u-c"), ["c", "c/status"]),
        (claim(notes=DONE), volume(meant="u-c"), ["c", "c/status"]),
        (claim(volumeName="v"), volume(meant="u-earlier"), []),
        (claim(volumeName="w"), volume(), []),
    ],
)
def test_a_binding_is_written_to_the_volume_then_to_the_claim_and_what_is_done_is_left_out(wanted, found, writes):
    requested = looked_at(volumes.Claims(), "c", claims=[wanted], found=[found])
    assert [f"{each.name}/{each.subresource}".rstrip("/") for each in requested] == writes
    versions = [each.body["metadata"]["resourceVersion"] for each in requested if not each.subresource]
    assert versions == [{"v": "3", "c": "2"}[each] for each in writes if "/" not in each]
    for each in requested:
        if each.subresource:
            assert each.body == {"status": STATUS}
        elif each.name == "v":
            assert each.body["spec"]["claimRef"]["uid"] == "u-c"
            assert each.body["metadata"]["annotations"] == {names.BOUND_BY_CONTROLLER: "yes"}
        else:
            by_us = not wanted["spec"].get("volumeName")
            assert (names.BOUND_BY_CONTROLLER in each.body["metadata"]["annotations"]) == by_us


@pytest.mark.parametrize(
    ("found", "claims", "phase"),
    [
        (volume(), [], "Available"),
        (volume(meant=""), [claim()], "Available"),
        (volume(meant="u-c"), [claim()], "Bound"),
        (volume(meant="u-earlier"), [claim()], "Released"),
        (volume(meant="u-c"), [], "Released"),
        (volume(meant="u-c", persistentVolumeReclaimPolicy="Delete"), [], "deleted"),
        (volume(meant="u-c", persistentVolumeReclaimPolicy="Delete"), [claim()], "Bound"),
        (volume(going=True), [], None),
        (volume(status={"phase": "Available"}), [], None),
    ],
)
def test_a_volume_is_free_bound_or_released_and_one_that_is_not_to_outlive_its_claim_is_deleted(found, claims, phase):
    requested = looked_at(volumes.Volumes(), "v", claims=claims, found=[found])
    said = ["deleted" if isinstance(each, requests.Delete) else each.body["status"]["phase"] for each in requested]
    assert said == ([] if phase is None else [phase])
    assert all(isinstance(each, requests.Delete | effects.Patch) for each in requested)
    assert looked_at(volumes.Volumes(), "w", claims=claims, found=[found]) == []


def test_a_volume_concerns_the_claim_that_it_is_for_and_a_free_one_and_a_class_all_that_wait():
    observed = Observed()
    for each in (claim(), claim(name="d"), claim(name="e", volumeName="v")):
        observed.feed(volumes.CLAIM, "ADDED", each)
    concerns = volumes.Claims().concerns
    assert list(concerns(volumes.VOLUME, volume(meant="x"), observed)) == [("a", "c")]
    for kind, each in ((volumes.VOLUME, volume()), (kinds.STORAGE_CLASS, storage_class())):
        assert list(concerns(kind, each, observed)) == [("a", "c"), ("a", "d")]
    assert list(volumes.Volumes().concerns(volumes.CLAIM, claim(volumeName="v"), observed)) == [("", "v")]
    assert list(volumes.Volumes().concerns(volumes.CLAIM, claim(), observed)) == []
