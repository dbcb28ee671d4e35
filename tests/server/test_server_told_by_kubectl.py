"""What `kubectl get` and `kubectl describe` show of groups that wait and of one that runs, with the scheduler on a real API server."""

from __future__ import annotations

import re

import pytest
import yaml
from server_process import ROOT, Process, gang, node, phase, wait_for

pytestmark = pytest.mark.kube

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
LIMITED = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "small"},
    "spec": {"weight": 1, "capability": {"cpu": "1"}},
}


@pytest.fixture
def server(empty_api_server):
    """An API server with our kinds, a node of four cores, and a small queue."""
    empty_api_server.crds(ROOT / "deploy" / "crds")
    node(empty_api_server, "n1")
    empty_api_server.kubectl("apply", "-f", "-", input=yaml.safe_dump(LIMITED))
    return empty_api_server


def row(server, namespace, name):
    """The cells of `kubectl get podgroup`, empty ones too, by the places of the heads."""
    head, line = server.kubectl("get", "podgroup", name, "-n", namespace).splitlines()
    starts = [found.start() for found in re.finditer(r"\S+", head)]
    ends = [*starts[1:], None]
    return {head[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends, strict=True)}


def reads(server, *what):
    """What `kubectl describe` prints, on one line."""
    return " ".join(server.kubectl("describe", *what).split())


def test_kubectl_tells_why_a_group_waits_and_no_longer_says_so_when_it_runs(server, namespace, tmp_path):
    gang(server, namespace, "late", 2, cpu="3")
    gang(server, namespace, "barred", 2, queue="small", minResources={"cpu": "2"})
    gang(server, namespace, "empty", 0, minimum=3)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    with Process(server, "--leader-elect=false", f"--scheduler-conf={policy}") as scheduler:
        scheduler.deciding()
        wait_for(lambda: "queue small" in row(server, namespace, "barred")["REASON"], scheduler)
        wait_for(lambda: "1 of the 2 pods that it needs" in row(server, namespace, "late")["REASON"], scheduler)
        wait_for(lambda: phase(server, namespace, "empty") == "Inqueue", scheduler)
        assert row(server, namespace, "empty")["REASON"] == ""
        why = "not let in: proportion: queue small: minResources exceed its room: cpu 2 + 0 held + 0 let in, limit 1"
        wait_for(lambda: why in reads(server, "podgroup", "barred", "-n", namespace), scheduler)
        wait_for(lambda: why in reads(server, "pod", "barred-0", "-n", namespace), scheduler)
        assert "1/2 tasks in gang unschedulable" in reads(server, "podgroup", "late", "-n", namespace)
        node(server, "n2")
        wait_for(lambda: phase(server, namespace, "late") == "Running", scheduler)
        wait_for(lambda: row(server, namespace, "late")["REASON"] == "", scheduler)
        told = reads(server, "podgroup", "late", "-n", namespace)
        assert re.search(r"Message: the group is Running Reason: Status: False .*Type: Unschedulable", told), told
