"""`pumice nodes` against a real API server."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from testbed import waiting

pytestmark = pytest.mark.kube

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, annotations: {annotations}}}
spec: {{nodeName: fleet-1, containers: [{{name: c, image: x}}]}}
"""


def pumice(api_server, *arguments):
    command = [sys.executable, "-c", "from pumice.cli import main; main()", "nodes", "--kubeconfig"]
    return subprocess.Popen(
        [*command, str(api_server.kubeconfig), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def wait_for(what, wanted):
    waiting.until(lambda: what() == wanted, what, every=0.1)


def test_nodes_register_run_pods_and_leave(api_server, namespace):
    fleet = pumice(api_server, "--count", "3", "--prefix", "fleet", "--cpu", "4", "--heartbeat", "1")
    try:
        ready = 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}'
        wait_for(
            lambda: api_server.kubectl("get", "nodes", "-l", "pumice.dev/simulated=true", "-o", ready), "True True True"
        )
        taints = api_server.kubectl("get", "nodes", "fleet-0", "-o", "jsonpath={.spec.taints}")
        assert taints == ""
        for name, notes in (("stays", "{}"), ("ends", "{pumice.dev/run-time: 1s, pumice.dev/exit: failed}")):
            api_server.kubectl("apply", "-f", "-", input=POD.format(name=name, namespace=namespace, annotations=notes))

        def phases():
            return api_server.kubectl("get", "pods", "-n", namespace, "-o", "jsonpath={.items[*].status.phase}")

        wait_for(phases, "Failed Running")
        api_server.kubectl("delete", "pod", "-n", namespace, "stays", "--wait=false", "--grace-period=1")
        wait_for(phases, "Failed")
        leases = api_server.kubectl("get", "lease", "-n", "kube-node-lease", "-o", "jsonpath={.items[*].metadata.name}")
        assert "fleet-0" in leases
    finally:
        fleet.send_signal(signal.SIGTERM)
        printed, _ = fleet.communicate(timeout=waiting.PATIENCE)
    assert fleet.returncode == 0
    assert "3 nodes ready, fleet-0 … fleet-2: 3 new, 0 known" in printed
    removal = pumice(api_server, "--delete")
    assert "3 simulated nodes removed" in removal.communicate(timeout=waiting.PATIENCE)[0]


def test_a_real_node_is_never_adopted(api_server):
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: real-0}\n"
    api_server.kubectl("apply", "-f", "-", input=node)
    try:
        fleet = pumice(api_server, "--count", "1", "--prefix", "real")
        printed, _ = fleet.communicate(timeout=waiting.PATIENCE)
        assert fleet.returncode == 1
        assert "node real-0 exists and is not simulated" in printed
    finally:
        api_server.kubectl("delete", "node", "real-0")
