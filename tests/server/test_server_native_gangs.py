"""Gangs by PodGroup of scheduling.k8s.io on a real API server that serves them, and on one that does not."""

from __future__ import annotations

import pytest
from server_process import PODS, ROOT, Process, node, placed, wait_for

pytestmark = pytest.mark.kube

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups"
MERGE = {"content_type": "application/merge-patch+json"}


def member(server, namespace, name, group, cpu="1"):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": "volcano", "containers": [container], "schedulingGroup": {"podGroupName": group}}
    return server.call("POST", PODS.format(namespace), {"metadata": {"name": name}, "spec": spec})


def group(server, namespace, name, count, **spec):
    body = {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": count}}, **spec}}
    return server.call("POST", GROUPS.format(namespace), body)


def scheduled(server, namespace, name):
    found = server.call("GET", f"{GROUPS.format(namespace)}/{name}")
    stated = {each["type"]: each for each in found.get("status", {}).get("conditions", ())}
    return stated.get("PodGroupScheduled", {})


@pytest.fixture
def server(gated_api_server):
    gated_api_server.empty()
    gated_api_server.crds(ROOT / "deploy" / "crds")
    for name in ("n1", "n2"):
        node(gated_api_server, name)
    return gated_api_server


def test_gangs_start_whole_wait_with_a_reason_and_go_with_their_group(server):
    namespace = server.new_namespace()
    group(server, namespace, "fits", 3)
    group(server, namespace, "large", 3)
    group(server, namespace, "short", 2)
    for number in range(3):
        member(server, namespace, f"fits-{number}", "fits")
        member(server, namespace, f"large-{number}", "large", cpu="3")
    member(server, namespace, "short-0", "short")
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        wait_for(lambda: scheduled(server, namespace, "fits").get("status") == "True", scheduler)
        assert sorted(placed(server, namespace)) == ["fits-0", "fits-1", "fits-2"]
        assert scheduled(server, namespace, "fits")["reason"] == "Scheduled"
        wait_for(lambda: scheduled(server, namespace, "large").get("reason") == "Unschedulable", scheduler)
        wait_for(lambda: "message" in scheduled(server, namespace, "short"), scheduler)
        assert scheduled(server, namespace, "short")["message"].startswith("waiting for 1 more pods of the gang")
        member(server, namespace, "short-1", "short")
        wait_for(lambda: scheduled(server, namespace, "short").get("status") == "True", scheduler)
        assert server.call("GET", "/apis/scheduling.volcano.sh/v1beta1/podgroups")["items"] == []
        # Deleted and kept by its finalizer: nobody more starts.
        server.call("DELETE", f"{GROUPS.format(namespace)}/fits")
        member(server, namespace, "fits-3", "fits")
        told = lambda: server.call("GET", f"{PODS.format(namespace)}/fits-3")["status"].get("conditions") or [{}]  # noqa: E731
        wait_for(lambda: "being deleted" in told()[0].get("message", ""), scheduler)
        assert "fits-3" not in placed(server, namespace)
        assert scheduler.stop() == 0


def test_where_the_kind_is_not_served_pods_are_ordinary_ones(empty_api_server):
    server = empty_api_server
    server.crds(ROOT / "deploy" / "crds")
    node(server, "n1")
    namespace = server.new_namespace()
    assert "schedulingGroup" not in member(server, namespace, "p", "g")["spec"]
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        wait_for(lambda: list(placed(server, namespace)) == ["p"], scheduler)
        assert scheduler.stop() == 0
