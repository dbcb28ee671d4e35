"""Pods leave devices that are tainted NoExecute: at once, when they have tolerated it long enough, or not at all."""

from __future__ import annotations

import pytest

from pumice.api import kinds
from pumice.controllers import device_taints
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Delete, Moment

NOW = 1_800_000_000_000_000
ADDED = "2027-01-15T08:00:00Z"  # that very second
TAINT = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": ADDED}


def named(name, namespace="", **body):
    metadata = {"name": name, "uid": f"u-{name}", "resourceVersion": "1"} | (
        {"namespace": namespace} if namespace else {}
    )
    return {"metadata": metadata, **body}  # fmt: skip


def slice_of(*taints, generation=1, name="s", device="g0"):
    pool = {"name": "p", "generation": generation}
    return kinds.RESOURCE_SLICE, named(name, spec={"driver": "d", "pool": pool, "devices": [{"name": device, "taints": list(taints)}]})  # fmt: skip


def rule(taint=TAINT, **selector):
    return kinds.DEVICE_TAINT_RULE, named("r", spec={"deviceSelector": selector, "taint": taint})


def claim(*tolerations, device="g0"):
    result = {"request": "r", "driver": "d", "pool": "p", "device": device, "tolerations": list(tolerations)}
    consumers = [{"resource": "pods", "name": "p", "uid": "u-p"}]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": consumers}
    return kinds.RESOURCE_CLAIM, named("c", "a", status=status)


def pod(**status):
    return kinds.POD, named("p", "a", spec={"nodeName": "n"}, status={"phase": "Running", **status})


def done(*objects, now=NOW):
    known = Observed()
    for kind, manifest in objects:
        known.feed(kind, "ADDED", manifest)
    controller = device_taints.TaintedClaims()
    for kind, manifest in objects:
        if kind in controller.watched:
            assert list(controller.concerns(kind, manifest, known)) == [("a", "c")]
    return controller.reconcile("a", "c", known, Moment(now))


@pytest.mark.parametrize(
    "objects",
    [
        (slice_of(TAINT), claim()),
        (slice_of(), rule(), claim()),
        (slice_of(), rule(driver="d", pool="p", device="g0"), claim()),
        (slice_of(TAINT), claim({"key": "k", "operator": "Equal", "value": "other"})),
        (slice_of(TAINT), claim({"operator": "Exists", "effect": "NoSchedule"})),
        (slice_of(TAINT), claim({"key": "other", "operator": "Exists"})),
        (slice_of(TAINT), claim({"operator": "Exists", "tolerationSeconds": 0})),
    ],
)
def test_a_pod_says_why_and_goes(objects):
    told, deleted = done(*objects, pod()).steps
    (condition,) = told.request.body["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "DeletionByDeviceTaintManager")
    assert condition["message"] == "Device Taint manager: device d/p/g0 is tainted k:NoExecute"
    assert told.request.body["metadata"] == {"resourceVersion": "1"}  # or a condition that came meanwhile would be lost
    assert told.request.subresource == "status"
    assert isinstance(deleted.request, Delete)
    assert (deleted.request.name, deleted.request.uid) == ("p", "u-p")


@pytest.mark.parametrize(
    "objects",
    [
        (slice_of(), claim()),
        (slice_of({**TAINT, "effect": "NoSchedule"}), claim()),
        (slice_of(TAINT, device="g1"), claim()),
        (slice_of(), rule(device="g1"), claim()),
        (slice_of(TAINT), claim({"key": "k", "operator": "Exists"})),
        (slice_of(TAINT), claim({"value": "v"})),
        (slice_of(TAINT), slice_of(generation=2, name="t"), claim()),
    ],
)
def test_a_pod_stays_where_nothing_drives_it_out(objects):
    found = done(*objects, pod())
    assert (found.steps, found.again) == ([], None)


def test_a_pod_stays_as_long_as_its_claim_tolerates_it():
    objects = (slice_of(TAINT), claim({"operator": "Exists", "tolerationSeconds": 30}), pod())
    waits = done(*objects)
    assert (waits.steps, waits.again) == ([], NOW + 30_000_000)
    assert len(done(*objects, now=NOW + 30_000_000).steps) == 2


@pytest.mark.parametrize("objects", [(), (pod(phase="Succeeded"),), ((kinds.POD, named("p", "b")),)])
def test_who_has_gone_or_ended_is_left_alone(objects):
    assert done(slice_of(TAINT), claim(), *objects).steps == []


def test_another_pod_of_the_name_is_left_alone():
    kind, other = pod()
    other["metadata"]["uid"] = "u-other"
    assert done(slice_of(TAINT), claim(), (kind, other)).steps == []


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        (slice_of(TAINT), True),
        (rule(driver="d"), True),
        (rule(pool="p"), True),
        ((kinds.RESOURCE_SLICE, named("s", spec={"driver": "other"})), False),
        (rule(driver="other"), False),
    ],
)
def test_slices_and_rules_of_another_driver_concern_no_claim(change, concerned):
    known = Observed()
    known.feed(kinds.RESOURCE_CLAIM, "ADDED", claim()[1])
    found = list(device_taints.TaintedClaims().concerns(*change, known))
    assert found == ([("a", "c")] if concerned else [])
