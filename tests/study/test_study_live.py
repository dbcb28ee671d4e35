"""A live cluster is read with the user's own rights, and nothing is ever written to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pumice.api import kinds, names
from pumice.cli.program import program
from pumice.framework import registry
from pumice.kube.calls.transport import Transport
from pumice.study import explanation, live
from pumice.study.state import StudyError

ROOT = Path(__file__).parents[2]
KNOWN = registry.installed()
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "llama"},
    "spec": {"minMember": 2, "queue": "default"},
}


def node(name, cpu):
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(index):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}}
    annotations = {"scheduling.k8s.io/group-name": "llama"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"llama-{index}", "annotations": annotations},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


@pytest.fixture
def waiting(empty_api_server):
    """A gang of two on one node with room for one, scheduled by nobody."""
    server = empty_api_server
    server.crds(ROOT / "deploy" / "crds")
    space = server.new_namespace()
    server.call("POST", "/api/v1/nodes", node("n1", "4"))
    untainted = {"spec": {"taints": None}}
    server.call("PATCH", "/api/v1/nodes/n1", untainted, content_type="application/merge-patch+json")
    queue = {"apiVersion": GROUP["apiVersion"], "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    server.call("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", queue)
    server.call("POST", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{space}/podgroups", GROUP)
    for index in range(2):
        server.call("POST", f"/api/v1/namespaces/{space}/pods", pod(index))
    return server, space


@pytest.fixture
def requests(monkeypatch):
    """Record every request that leaves, its method and its path."""
    seen = []
    exchange = Transport.exchange

    async def recorded(self, request, limit):
        seen.append((request.method, request.path))
        return await exchange(self, request, limit)

    monkeypatch.setattr(Transport, "exchange", recorded)
    return seen


def asked(server, *arguments):
    return CliRunner().invoke(program, [*arguments, "--kubeconfig", str(server.kubeconfig)])


def test_a_cluster_without_our_scheduler_is_explained_and_only_read(waiting, requests):
    server, space = waiting
    result = asked(server, "explain", "job", "llama", "-n", space, "-o", "json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["explanation"]["gang"]["fit"] == 1
    assert answer["search"]["smallest"] == "lower its minMember from 2 to 1"
    assert "add 1 more node like n1 (cpu 4)" in [trial["change"] for trial in answer["search"]["enough"]]
    assert {method for method, _ in requests} == {"GET"}
    lists = [path for _, path in requests if "limit=" in path and "fieldSelector" not in path]
    assert lists
    assert [path for path in set(lists) if lists.count(path) > 1] == []


def test_who_serves_the_pods_says_on_its_lease_whose_pods_it_serves_beside_them(waiting):
    server, space = waiting
    for name, serves, renewed in (
        ("old", "volcano", "2026-01-01T00:00:00.000000Z"),
        ("ours", "volcano,default-scheduler", "2026-01-02T00:00:00.000000Z"),
        ("other", "else", "2026-01-03T00:00:00.000000Z"),
    ):
        metadata = {"name": name, "labels": {names.LEASE_OF_SCHEDULER: "true"}, "annotations": {names.LEASE_SERVES: serves}}  # fmt: skip
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        lease["spec"] = {"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": renewed}
        server.call("POST", f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases", lease)
    result = asked(server, "explain", "job", "llama", "-n", space, "-o", "json", "--no-search")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["schedulers"] == ["volcano", "default-scheduler"]
    state = live.read(live.Access(kubeconfig=str(server.kubeconfig)))
    assert state.served[0] == ("else",)
    assert state.scheduler_names() == ("volcano", "default-scheduler")


def test_what_would_be_is_asked_of_a_live_cluster_that_is_only_read(waiting, requests, tmp_path):
    server, space = waiting
    more = tmp_path / "node.yaml"
    more.write_text(yaml.safe_dump(node("n2", "4")), encoding="utf-8")
    result = asked(server, "what-if", str(more), "-o", "json", "--cycles", "2")
    assert result.exit_code == 0, result.output
    (job,) = json.loads(result.stdout)["jobs"]
    assert (job["job"], job["before"]["standing"], job["after"]["placed"]) == (f"{space}/llama", "waits", 2)
    assert {method for method, _ in requests} == {"GET"}


def test_who_may_not_list_everything_gets_what_is_written_and_the_missing_right(waiting, tmp_path):
    server, space = waiting
    readable = "pods,podgroups.scheduling.volcano.sh"
    server.kubectl("create", "role", "reader", "-n", space, "--verb=get,list", f"--resource={readable}")
    server.kubectl("create", "rolebinding", "reader", "-n", space, "--role=reader", "--user=ann")
    given = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
    for user in given["users"]:
        user["user"]["as"] = "ann"
    file = tmp_path / "ann.yaml"
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    state = live.read(live.Access(kubeconfig=str(file)), namespace=space)
    request = explanation.Request(what="job", name="llama", namespace=space)
    answer = explanation.answer(state, request, KNOWN)
    assert answer.explanation is None
    assert set(answer.missing_rights) >= {
        "list nodes",
        "list pods",
        "list podgroups.scheduling.volcano.sh",
        "list queues.scheduling.volcano.sh",
    }
    assert answer.refused


def test_what_was_read_is_not_written_down_whole(waiting):
    """The event loop writes the result of its main task down when it takes its signal handler back: seconds for a large cluster."""
    server, _ = waiting
    state = live.read(live.Access(kubeconfig=str(server.kubeconfig)))
    assert repr(state) == f"State({state.source}, {len(state.objects)} objects)"


def test_progress_is_told_while_kinds_are_read(waiting):
    server, _ = waiting
    told = []
    state = live.read(live.Access(kubeconfig=str(server.kubeconfig)), lambda kind, count: told.append((kind, count)))
    assert ("pods", 2) in told
    assert ("nodes", 1) in told
    assert len(list(state.of(kinds.POD))) == 2


def test_a_warning_that_no_condition_holds_is_shown_beside_the_explanation(waiting):
    server, space = waiting
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "refused", "namespace": space},
        "involvedObject": {"kind": "Pod", "namespace": space, "name": "llama-0"},
        "type": "Warning",
        "reason": "FailedBinding",
        "message": "the webhook said no",
    }
    server.call("POST", f"/api/v1/namespaces/{space}/events", event)
    result = asked(server, "explain", "pod", f"{space}/llama-0", "--no-search")
    assert f"pod {space}/llama-0: Event Warning, FailedBinding: the webhook said no" in result.output


@pytest.mark.parametrize("named", ["missing.yaml", "/dev/zero", "folder", "large.yaml", "text\x00"])
def test_configuration_that_a_kubeconfig_names_is_read_only_if_it_is_one(tmp_path, named):
    (tmp_path / "folder").mkdir()
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(live.MOST_POLICY + 1)
    with pytest.raises(
        StudyError, match=r"the kubeconfig names it as the scheduler.s configuration, --config another$"
    ):
        live.named_policy(str(tmp_path / named))
