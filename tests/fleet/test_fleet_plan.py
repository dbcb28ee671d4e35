"""What simulated nodes offer, and plans that are refused."""

from __future__ import annotations

import pytest

from pumice.fleet import plan


def test_names_sort_by_number():
    names = plan.Plan(count=12, prefix="n").names()
    assert names[:2] == ["n-00", "n-01"]
    assert names == sorted(names)


def test_nodes_are_spread_over_zones_and_marked_as_simulated():
    wanted = plan.Plan(count=4, zones=2, labels={"pool": "a"}, resources={"nvidia.com/gpu": "8"})
    nodes = [wanted.node(index, 0) for index in range(4)]
    assert [node["metadata"]["labels"][plan.ZONE] for node in nodes] == ["zone-0", "zone-1", "zone-0", "zone-1"]
    assert nodes[0]["metadata"]["labels"][plan.SIMULATED] == "true"
    assert nodes[0]["metadata"]["labels"]["pool"] == "a"
    assert nodes[0]["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_a_node_says_what_a_kubelet_says_of_its_own():
    node = plan.Plan(count=300, prefix="n").node(299, 0)
    labels, status = node["metadata"]["labels"], node["status"]
    assert labels["kubernetes.io/hostname"] == "n-299"
    for stage in ("", "beta."):
        assert (labels[f"{stage}kubernetes.io/os"], labels[f"{stage}kubernetes.io/arch"]) == ("linux", "amd64")
    assert set(status["capacity"]) == {"cpu", "memory", "pods", "ephemeral-storage"}
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert (status["nodeInfo"]["operatingSystem"], status["nodeInfo"]["architecture"]) == ("linux", "amd64")
    assert [each["address"] for each in status["addresses"]] == ["10.10.1.44", "n-299"]
    larger = plan.Plan(count=1, resources={"ephemeral-storage": "1Ti"})
    assert larger.offered()["ephemeral-storage"] == "1Ti"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"count": 0}, "--count is 0"),
        ({"count": 100_001}, "--count is 100001"),
        ({"count": 2, "zones": 3}, "--zones is 3"),
        ({"count": 1, "cpu": "many"}, "cpu: "),
        ({"count": 1, "resources": {"x.y/z": "-1"}}, "x.y/z: -1 is negative"),
    ],
)
def test_a_plan_that_makes_no_sense_names_what_is_wrong(fields, message):
    with pytest.raises(plan.PlanError, match=message):
        plan.Plan(**fields).check()
