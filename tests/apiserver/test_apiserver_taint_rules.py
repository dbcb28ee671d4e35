"""DeviceTaintRules are served beside the kinds that every API server serves."""

import pytest

from pumice.apiserver import cluster, requests, resources, statuses
from pumice.sim.store import ObjectStore


@pytest.fixture
def create():
    uids = iter(f"uid-{number}" for number in range(10_000))
    made = cluster.Cluster(ObjectStore(lambda: 1_000_000, uids.__next__, resources.has_generation), lambda: 1_000_000)
    made.start()
    target = requests.Target(resource=made.registry.of_kind("resource.k8s.io/v1beta2", "DeviceTaintRule"))

    def write(**spec):
        body = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
        return made.writing.create(
            target, {**body, "spec": spec}, requests.Options(manager="test", validation="Strict"), []
        )

    return write


def test_a_rule_is_stored_as_it_was_written(create):
    taint = {"key": "example.com/repair", "value": "now", "effect": "NoExecute"}
    stored = create(deviceSelector={"driver": "gpu.example.com", "pool": "p", "device": "g0"}, taint=taint)
    assert stored["spec"]["deviceSelector"] == {"driver": "gpu.example.com", "pool": "p", "device": "g0"}
    assert stored["spec"]["taint"] == {**taint, "timeAdded": "1970-01-01T00:00:01Z"}
    assert stored["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"taint": {"key": "not good!", "effect": "NoExecute"}}, "spec.taint.key"),
        ({"taint": {"key": "k", "effect": "Sometimes"}}, "spec.taint.effect"),
        ({"taint": {"key": "k"}}, "spec.taint.effect"),
        ({"deviceSelector": {"driver": "NO"}, "taint": {"key": "k", "effect": "None"}}, "spec.deviceSelector.driver"),
        ({"deviceSelector": {"devices": "x"}, "taint": {"key": "k", "effect": "None"}}, "spec.deviceSelector.devices"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_its_field(create, spec, field):
    with pytest.raises(statuses.Problem, match=field.replace(".", r"\.")):
        create(**spec)
