"""`pumice controllers` as a process of its own on a real API server, and beside the scheduler."""

from __future__ import annotations

import pytest
from server_process import ROOT, Controllers, Process, node, placed, pod, wait_for

import elections

pytestmark = pytest.mark.kube


@pytest.fixture
def server(empty_api_server):
    empty_api_server.crds(ROOT / "deploy" / "crds")
    node(empty_api_server, "n1")
    return empty_api_server


@pytest.fixture
def lock(server, namespace):
    return elections.flags(namespace)


def groups(server, namespace):
    found = server.call("GET", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups")["items"]
    return [each["metadata"]["name"] for each in found]


def group_makers(server, namespace):
    """Give who made the groups, as the API server saw them."""
    found = server.call("GET", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups")["items"]
    return [each["metadata"]["managedFields"][0]["manager"] for each in found]


def test_pods_are_grouped_by_the_controllers_while_they_lead_and_by_the_scheduler_when_they_are_gone(
    server, namespace, lock
):
    with Process(server, *lock) as scheduler:
        scheduler.deciding()
        pod(server, namespace, "before")
        wait_for(lambda: "before" in placed(server, namespace), scheduler)
        with Controllers(server, *elections.flags(namespace, lasts=30)) as controllers:
            controllers.deciding()
            wait_for(lambda: controllers.get("health", "/readyz?verbose")[0] == 200, controllers)
            pod(server, namespace, "during")
            wait_for(lambda: "during" in placed(server, namespace), controllers)
            controllers.kill()
        pod(server, namespace, "after")
        wait_for(lambda: "after" in placed(server, namespace), scheduler)
        assert len(groups(server, namespace)) == 3
        assert scheduler.stop() == 0


def test_a_second_process_stands_by_and_takes_over(server, namespace, lock):
    with Controllers(server, *lock) as first:
        first.deciding()
        with Controllers(server, *lock) as second:
            wait_for(lambda: "standing by" in second.log, second)
            pod(server, namespace, "a")
            wait_for(lambda: len(groups(server, namespace)) == 1, first)
            assert first.stop() == 0
            second.deciding()
            pod(server, namespace, "b")
            wait_for(lambda: len(groups(server, namespace)) == 2, second)
            assert second.stop() == 0


def test_two_that_run_the_same_controllers_under_two_leases_are_one_too_many(server, namespace, lock):
    with Controllers(server, *lock) as first:
        first.deciding()
        with Controllers(server, *lock, "--leader-elect-resource-name=another") as second:
            assert second.wait() == 1
            assert "choose others for this one with --controllers" in second.log


def test_the_scheduler_runs_controllers_in_its_own_process(server, namespace, lock):
    with Process(server, *lock, "--controllers") as scheduler:
        scheduler.deciding()
        wait_for(lambda: "controllers at work" in scheduler.log, scheduler)
        wait_for(lambda: "pumice_controllers_leading 1.0" in scheduler.get("metrics", "/metrics")[1], scheduler)
        pod(server, namespace, "a")
        wait_for(lambda: "a" in placed(server, namespace), scheduler)
        leases = server.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")["items"]
        assert {each["metadata"]["name"] for each in leases} == {"volcano", "vc-controller-manager"}
        assert scheduler.stop() == 0
    leases = server.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")["items"]
    assert [each["spec"]["holderIdentity"] for each in leases] == ["", ""]


def test_every_order_that_a_job_was_given_stays_to_be_read(server, namespace, lock):
    batch, bus = (f"/apis/{group}.volcano.sh/v1alpha1/namespaces/{namespace}" for group in ("batch", "bus"))
    task = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    if not any(each["metadata"]["name"] == "default" for each in queues(server)):
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
        server.call("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", queue)
    made = server.call("POST", f"{batch}/jobs", {**kind, "metadata": {"name": "j"}, "spec": {"tasks": [task]}})
    target = {**kind, "name": "j", "uid": made["metadata"]["uid"]}
    with Controllers(server, *lock) as controllers:
        controllers.deciding()
        for place, action in enumerate(("AbortJob", "ResumeJob", "TerminateJob")):
            command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": f"c{place}"}}
            server.call("POST", f"{bus}/commands", {**command, "action": action, "target": target})
            wait_for(lambda: not server.call("GET", f"{bus}/commands")["items"], controllers)
        wait_for(lambda: orders(server, namespace) == {"AbortJob", "ResumeJob", "TerminateJob"}, controllers)
        assert controllers.stop() == 0


def queues(server):
    return server.call("GET", "/apis/scheduling.volcano.sh/v1beta1/queues")["items"]


def orders(server, namespace):
    told = server.call("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return {each["message"].split(" command ")[1].split(",")[0] for each in told if each["reason"] == "CommandIssued"}
