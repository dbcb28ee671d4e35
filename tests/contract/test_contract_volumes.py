"""Volumes before pods."""

from __future__ import annotations

import pytest
from contract_objects import claim, code, pod, storage_class, uid, volume

from pumice.api import kinds
from pumice.cache import effects
from pumice.model.volumes import VolumeDecision

CLAIM, VOLUME = kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME


def pod_with(harness, *claims):
    manifest = pod(harness)
    manifest["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return manifest


def bind(harness, *decisions, patience=10.0):
    return effects.Bind(
        namespace=harness.namespace,
        name="p",
        uid=uid(harness, kinds.POD, "p"),
        node="n1",
        volumes=decisions,
        volume_patience=int(patience * 1e6),
    )


def decision(harness, name="c", chosen="", of=None):
    known = uid(harness, CLAIM, name) if of is None else of
    return VolumeDecision(namespace=harness.namespace, claim=name, uid=known, volume=chosen)


def test_a_chosen_volume_is_claimed_and_the_pod_bound_when_the_claim_is(harness):
    name = f"v-{harness.namespace}"
    harness.apply(claim(harness), volume(name), pod_with(harness, "c"))
    (outcome,) = harness.perform(bind(harness, decision(harness, chosen=name)), control_volumes=[("c", name)])
    assert code(outcome) is None
    reference = harness.find(VOLUME, name)["spec"]["claimRef"]
    assert (reference["name"], reference["uid"]) == ("c", uid(harness, CLAIM, "c"))
    assert harness.find(CLAIM, "c")["spec"]["volumeName"] == name
    assert harness.find(kinds.POD, "p")["spec"]["nodeName"] == "n1"


def test_a_claim_without_a_volume_is_given_the_node(harness):
    fast = f"fast-{harness.namespace}"
    harness.apply(storage_class(fast), claim(harness, storage_class=fast), pod_with(harness, "c"))
    (outcome,) = harness.perform(bind(harness, decision(harness)), control_volumes=[("c", f"made-{harness.namespace}")])
    found = harness.find(CLAIM, "c")
    assert code(outcome) is None
    assert found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
    assert found["spec"]["volumeName"]
    assert harness.find(kinds.POD, "p")["spec"]["nodeName"] == "n1"


def test_a_claim_that_is_bound_already_is_no_hindrance(harness):
    name = f"v-{harness.namespace}"
    harness.apply(claim(harness), volume(name), pod_with(harness, "c"))
    wanted = decision(harness, chosen=name)
    harness.perform(bind(harness, wanted), control_volumes=[("c", name)])
    (outcome,) = harness.perform(bind(harness, wanted))
    assert code(outcome) is None


def test_a_volume_that_another_claim_holds_is_a_conflict_and_the_pod_stays_pending(harness):
    name = f"v-{harness.namespace}"
    taken = volume(name)
    taken["spec"]["claimRef"] = {"namespace": harness.namespace, "name": "other", "uid": "x"}
    harness.apply(claim(harness), taken, pod_with(harness, "c"))
    (outcome,) = harness.perform(bind(harness, decision(harness, chosen=name)))
    assert code(outcome) == "conflict"
    assert "other" in outcome.failure.message
    assert not harness.find(kinds.POD, "p")["spec"].get("nodeName")


def test_a_claim_that_was_replaced_is_a_conflict(harness):
    name = f"v-{harness.namespace}"
    harness.apply(claim(harness), volume(name), pod_with(harness, "c"))
    (outcome,) = harness.perform(bind(harness, decision(harness, chosen=name, of="another")))
    assert code(outcome) == "conflict"
    assert not harness.find(VOLUME, name)["spec"].get("claimRef")


@pytest.mark.parametrize("chosen", [True, False])
def test_without_a_volume_controller_the_bind_fails_in_time_and_leaves_no_trace(kube, chosen):
    name = f"v-{kube.namespace}"
    kube.apply(claim(kube), volume(name), pod_with(kube, "c"))
    wanted = decision(kube, chosen=name if chosen else "")
    (outcome,) = kube.perform(bind(kube, wanted, patience=0.3))
    assert code(outcome) == "unavailable"
    assert "0.3 s" in outcome.failure.message
    assert not kube.find(VOLUME, name)["spec"].get("claimRef")
    assert not kube.find(VOLUME, name)["metadata"].get("annotations")
    assert not kube.find(CLAIM, "c")["metadata"].get("annotations")
    assert not kube.find(kinds.POD, "p")["spec"].get("nodeName")
