"""The subresource `resize` of pods: what it changes, what it leaves alone and what it refuses, on both servers."""

from __future__ import annotations

import pytest

PODS = "/api/v1/namespaces/{}/pods"
STRATEGIC = {"content_type": "application/strategic-merge-patch+json"}
SIZE = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}


def container(name="c", resources=SIZE, **fields):
    return {"name": name, "image": "x", "resources": resources, **fields}


def made(server, spec=None):
    pods = PODS.format(server.new_namespace())
    server.call("POST", pods, {"metadata": {"name": "p"}, "spec": spec or {"containers": [container()]}})
    return f"{pods}/p"


def sized(part="containers", name="c", **resources):
    return {"spec": {part: [{"name": name, "resources": resources}]}}


def bound(server, path, **allocatable):
    node = f"n-{path.split('/')[4]}"
    offered = {"cpu": "4", "memory": "8Gi", "pods": "10", **allocatable}
    server.call("POST", "/api/v1/nodes", {"metadata": {"name": node}, "status": {"allocatable": offered}})
    server.call("POST", f"{path}/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}})


def test_a_resize_changes_amounts_and_nothing_else(server):
    path = made(server)
    wanted = sized(requests={"cpu": "1500m"})
    wanted["metadata"] = {"labels": {"a": "b"}}
    wanted["spec"]["nodeSelector"] = {"a": "b"}
    wanted["spec"]["containers"][0]["image"] = "y"
    found = server.call("PATCH", f"{path}/resize", wanted, **STRATEGIC)
    (only,) = found["spec"]["containers"]
    assert only["resources"] == {"requests": {"cpu": "1500m", "memory": "1Gi"}, "limits": SIZE["limits"]}
    assert (only["image"], found["metadata"]["generation"]) == ("x", 2)
    assert "labels" not in found["metadata"]
    assert "nodeSelector" not in found["spec"]
    assert "resize" in [entry.get("subresource") for entry in found["metadata"]["managedFields"]]


def test_a_resize_can_be_read_and_put(server):
    path = made(server)
    whole = server.call("GET", f"{path}/resize")
    whole["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1100m"
    assert server.call("PUT", f"{path}/resize", whole)["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1100m"  # fmt: skip


def test_sidecars_and_pods_as_a_whole_are_resized_too(server):
    sidecar = container("s", {"requests": {"cpu": "1"}}, restartPolicy="Always")
    path = made(server, {"containers": [container()], "initContainers": [sidecar]})
    server.call("PATCH", f"{path}/resize", sized("initContainers", "s", requests={"cpu": "2"}), **STRATEGIC)
    whole = {"spec": {"resources": {"requests": {"cpu": "4"}}}}
    found = server.call("PATCH", f"{path}/resize", whole, **STRATEGIC)["spec"]
    assert found["initContainers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert found["resources"] == {"requests": {"cpu": "4"}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (sized(requests={"cpu": "3"}), 'spec.containers[0].resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2'),
        (sized(limits={"cpu": None}), "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"),
        (sized(requests={"ephemeral-storage": "1Gi"}), "spec: Forbidden: only cpu and memory resources are mutable"),
        (sized(requests={"example.com/x": "1"}, limits={"example.com/x": "1"}), "spec: Forbidden: only cpu and memory resources are mutable"),
        (sized(requests={"cpu": "2", "memory": "2Gi"}), 'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing'),
        (sized(requests={"cpu": "-1"}), 'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
        ({"spec": {"containers": [{"name": "d", "image": "x"}]}}, "spec.containers: Forbidden: containers may not be added or removed on resize"),
    ],
)  # fmt: skip
def test_what_may_not_be_resized_is_refused_in_the_words_of_kubernetes(server, change, words):
    path = made(server)
    code, answer = server.answer("PATCH", f"{path}/resize", change, **STRATEGIC)
    assert (code, words in answer["message"]) == (422, True), answer["message"]
    assert server.call("GET", path)["metadata"]["generation"] == 1


def test_amounts_change_through_the_subresource_alone(server):
    path = made(server)
    assert server.answer("PATCH", path, sized(requests={"cpu": "1500m"}), **STRATEGIC)[0] == 422


def test_a_bound_pod_is_never_larger_than_its_node(server):
    path = made(server, {"containers": [container(resources={"requests": {"cpu": "1"}})]})
    bound(server, path)
    code, answer = server.answer("PATCH", f"{path}/resize", sized(requests={"cpu": "5"}), **STRATEGIC)
    assert code == 403
    assert "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000" in answer["message"]
    found = server.call("PATCH", f"{path}/resize", sized(requests={"cpu": "4"}), **STRATEGIC)
    assert found["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "4"}


def test_a_quota_counts_what_a_pod_grows_by(server):
    namespace = server.new_namespace()
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "3"}}}
    server.call("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    pods = PODS.format(namespace)
    spec = {"containers": [container(resources={"requests": {"cpu": "1"}})]}
    # A real server knows a quota once somebody has counted it.
    counted = {"status": {"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "0"}}}
    server.call("PATCH", f"/api/v1/namespaces/{namespace}/resourcequotas/q/status", counted, **STRATEGIC)
    server.call("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
    code, answer = server.answer("PATCH", f"{pods}/p/resize", sized(requests={"cpu": "4"}), **STRATEGIC)
    assert code == 403
    assert "exceeded quota: q, requested: requests.cpu=3, used: requests.cpu=1, limited: requests.cpu=3" in answer["message"]  # fmt: skip
    assert server.answer("PATCH", f"{pods}/p/resize", sized(requests={"cpu": "3"}), **STRATEGIC)[0] == 200
