"""Pods with claims for devices on a real API server; the driver is played by whoever writes the slices, the controller of claims by the test."""

from __future__ import annotations

import pytest
from server_process import PODS, ROOT, Process, node, placed, wait_for

pytestmark = pytest.mark.kube

RESOURCES = "/apis/resource.k8s.io/v1"
CLAIMS = RESOURCES + "/namespaces/{}/resourceclaims"
POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
ATTRIBUTES = {"model": {"string": "a100"}}


def offer(server, namespace, node_name, *devices):
    """Offer devices of a node, as its driver does; each test has one of its own, since claims of others keep their devices."""
    listed = [{"name": name, "attributes": ATTRIBUTES} for name in devices]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": f"{namespace}.example.com", "nodeName": node_name, "pool": pool, "devices": listed}
    server.call("POST", f"{RESOURCES}/resourceslices", {"metadata": {"name": f"{node_name}-gpus"}, "spec": spec})


def claim(server, namespace, name, count=1):
    exactly = {"deviceClassName": "gpu", "count": count}
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    server.call("POST", CLAIMS.format(namespace), {"metadata": {"name": name}, "spec": spec})


def pod(server, namespace, name, *claims, group=""):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "volcano", "containers": [container]}
    spec["resourceClaims"] = [{"name": f"g{i}", "resourceClaimName": each} for i, each in enumerate(claims)]
    metadata = {"name": name, "annotations": {"scheduling.k8s.io/group-name": group} if group else {}}
    return server.call("POST", PODS.format(namespace), {"metadata": metadata, "spec": spec})


def status(server, namespace, name):
    return server.call("GET", f"{CLAIMS.format(namespace)}/{name}").get("status", {})


def devices(server, namespace, name):
    allocation = status(server, namespace, name).get("allocation") or {"devices": {}}
    return [(each["pool"], each["device"]) for each in allocation["devices"].get("results", ())]


def reserved(server, namespace, name):
    return sorted(each["name"] for each in status(server, namespace, name).get("reservedFor", ()))


@pytest.fixture
def server(empty_api_server):
    empty_api_server.crds(ROOT / "deploy" / "crds")
    for kind in ("resourceslices", "deviceclasses"):
        empty_api_server.call("DELETE", f"{RESOURCES}/{kind}")
    for name in ("n1", "n2"):
        node(empty_api_server, name)
    empty_api_server.call("POST", f"{RESOURCES}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    yield empty_api_server
    for kind in ("resourceslices", "deviceclasses"):
        empty_api_server.call("DELETE", f"{RESOURCES}/{kind}")


def test_claims_are_given_devices_and_reserved_before_their_pods_are_bound(server):
    namespace = server.new_namespace()
    offer(server, namespace, "n2", "gpu0", "gpu1", "gpu2")
    claim(server, namespace, "single")
    claim(server, namespace, "shared", count=2)
    groups = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    server.call("POST", groups, {**kind, "metadata": {"name": "g"}, "spec": {"minMember": 2}})
    pod(server, namespace, "alone", "single")
    for number in range(2):
        pod(server, namespace, f"g-{number}", "shared", group="g")
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        wait_for(lambda: len(placed(server, namespace)) == 3, scheduler)
        assert set(placed(server, namespace).values()) == {"n2"}
        given = devices(server, namespace, "single") + devices(server, namespace, "shared")
        assert sorted(given) == [("n2", "gpu0"), ("n2", "gpu1"), ("n2", "gpu2")]
        assert reserved(server, namespace, "single") == ["alone"]
        assert reserved(server, namespace, "shared") == ["g-0", "g-1"]
        found = server.call("GET", f"{CLAIMS.format(namespace)}/single")
        assert found["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        term = found["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]
        assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
        # All devices are given: the next one waits, with a reason, until a driver offers more.
        claim(server, namespace, "late")
        pod(server, namespace, "waits", "late")
        told = lambda: server.call("GET", f"{PODS.format(namespace)}/waits")["status"].get("conditions") or [{}]  # noqa: E731
        wait_for(lambda: told()[0].get("reason") == "Unschedulable", scheduler)
        assert devices(server, namespace, "late") == []
        offer(server, namespace, "n1", "gpu0")
        wait_for(lambda: placed(server, namespace).get("waits") == "n1", scheduler)
        assert devices(server, namespace, "late") == [("n1", "gpu0")]
        assert scheduler.stop() == 0


def test_a_scheduler_that_comes_anew_finds_who_has_which_device(server):
    namespace = server.new_namespace()
    offer(server, namespace, "n1", "gpu0", "gpu1")
    claim(server, namespace, "first")
    pod(server, namespace, "one", "first")
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        wait_for(lambda: list(placed(server, namespace)) == ["one"], scheduler)
        assert scheduler.stop() == 0
    claim(server, namespace, "second")
    pod(server, namespace, "two", "second")
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        wait_for(lambda: len(placed(server, namespace)) == 2, scheduler)
        assert scheduler.stop() == 0
    assert devices(server, namespace, "first") != devices(server, namespace, "second")


def test_a_pod_that_asks_for_devices_by_the_name_of_a_resource_has_a_claim_made_for_it(server, tmp_path):
    namespace = server.new_namespace()
    offer(server, namespace, "n1", "gpu0", "gpu1")
    spec = {"extendedResourceName": "example.com/gpu"}
    server.call("POST", f"{RESOURCES}/deviceclasses", {"metadata": {"name": "named"}, "spec": spec})
    amounts = {"example.com/gpu": "2"}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", **amounts}, "limits": amounts}}
    body = {"metadata": {"name": "p"}, "spec": {"schedulerName": "volcano", "containers": [container]}}
    server.call("POST", PODS.format(namespace), body)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    with Process(server, "--leader-elect=false", f"--scheduler-conf={policy}") as scheduler:
        scheduler.deciding()
        wait_for(lambda: list(placed(server, namespace)) == ["p"], scheduler)
        assert scheduler.stop() == 0
    (made,) = server.call("GET", CLAIMS.format(namespace))["items"]
    name = made["metadata"]["name"]
    assert name.startswith("p-extended-resources-")
    assert sorted(devices(server, namespace, name)) == [("n1", "gpu0"), ("n1", "gpu1")]
    assert reserved(server, namespace, name) == ["p"]
    told = server.call("GET", f"{PODS.format(namespace)}/p")["status"]["extendedResourceClaimStatus"]
    assert told["resourceClaimName"] == name
    assert told["requestMappings"][0]["resourceName"] == "example.com/gpu"
