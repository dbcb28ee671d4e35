from __future__ import annotations

import asyncio

import pytest
from kube_fakes import FakeApi, conflict, not_found, pod

from pumice.api import kinds
from pumice.cache import effects
from pumice.kube import errors
from pumice.kube.writes import evicting

NOW = 1_767_225_600_500_000
EFFECT = effects.Evict(namespace="a", name="p", uid="uid-p", reason="preempt", grace_seconds=7)


def cluster(**metadata):
    api = FakeApi()
    api.add(kinds.POD, pod(**metadata))
    return api


def evict(api, effect=EFFECT):
    return asyncio.run(evicting.ApiEvictor(api, lambda: NOW).evict(effect))


def test_the_pod_is_told_why_and_then_deleted_with_its_grace():
    api = cluster()
    manifest = api.find(kinds.POD, "a", "p")
    assert evict(api).failure is None
    stamp = {"message": "preempt", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    assert manifest["status"]["conditions"] == [
        {"type": "Ready", "status": "False", "reason": "Evict", **stamp},
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", **stamp},
    ]
    assert api.calls == [("patch", "pods", "p", "status"), ("delete", "pods", "p", 7)]


def test_a_pod_that_is_going_already_is_not_deleted_again():
    api = cluster(deletionTimestamp="2026-01-01T00:00:00Z")
    assert evict(api).failure is None
    assert api.verbs() == ["patch"]


def test_another_pod_of_that_name_is_not_found_and_not_touched():
    api = cluster(uid="another")
    outcome = evict(api)
    assert outcome.failure.code == "notfound"
    assert "uid-p" in outcome.failure.message
    assert "status" not in api.find(kinds.POD, "a", "p")


def test_a_pod_that_is_replaced_half_way_is_not_found():
    api = cluster()
    api.fail["delete"] = [conflict("the UID in the precondition does not match")]
    assert evict(api).failure.code == "notfound"


@pytest.mark.parametrize("verb", ["patch", "delete"])
@pytest.mark.parametrize("error", [not_found(), errors.UnknownOutcomeError("cut"), errors.ApiError(500, "", "no")])
def test_other_failures_are_told_as_they_are(verb, error):
    api = cluster()
    api.fail[verb] = [error]
    with pytest.raises(type(error)):
        evict(api)
