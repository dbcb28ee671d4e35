"""From nothing to a bound gang: what the installation guide says, with the scheduler running as its Deployment runs it."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml
from audited import RELEASE, granted

from pumice.api import kinds
from pumice.kube.calls.paths import path
from pumice.manifests import text, workload
from testbed import processes, waiting

pytestmark = [pytest.mark.kube, pytest.mark.apart]

ROOT = Path(__file__).parents[2]
NODES = 2


class Running:
    """The scheduler, with the arguments of its Deployment; addresses and the mounted file are this machine's."""

    def __init__(self, audited, folder):
        self.health, self.metrics = (processes.free_port() for _ in range(2))
        (folder / "volcano-scheduler.conf").write_text(RELEASE.configuration, encoding="utf-8")
        replaced = {
            "/volcano.scheduler": str(folder),
            "$(POD_IP)": "127.0.0.1",
            ":11251": f":{self.health}",
            ":8080": f":{self.metrics}",
        }
        arguments = [f"--kubeconfig={audited.kubeconfig}", *workload.arguments(RELEASE)]
        for old, new in replaced.items():
            arguments = [argument.replace(old, new) for argument in arguments]
        self._log = folder / "scheduler.log"
        with self._log.open("wb") as log:
            command = [sys.executable, "-c", "from pumice.cli import main; main()", "scheduler", *arguments]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self._process.kill()
        self._process.wait()

    def ask(self, port, where):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{where}", timeout=waiting.PATIENCE) as answer:
            return answer.status, answer.read().decode()

    def end(self):
        self._process.terminate()
        return self._process.wait(timeout=waiting.PATIENCE)

    def until(self, condition):
        """Wait for something, and show the log if it does not come."""

        def answer():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return condition()

        waiting.until(answer, self.told, ended=lambda: self._process.poll() is not None, every=0.1)

    def told(self):
        return f"the scheduler's log:\n{self._log.read_text(encoding='utf-8')[-4000:]}"


def node(name):
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def gang(namespace):
    """Return the group and the pods of the example, as the controller of its Job would make them."""
    group, job = yaml.safe_load_all((ROOT / "docs" / "examples" / "first-gang.yaml").read_text(encoding="utf-8"))
    group["metadata"]["namespace"] = namespace
    template = job["spec"]["template"]
    pods = []
    for index in range(job["spec"]["parallelism"]):
        metadata = {**template["metadata"], "name": f"first-gang-{index}", "namespace": namespace}
        pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    return group, pods


def test_the_example_is_bound_by_a_scheduler_that_is_refused_nothing(audited, tmp_path):
    server = audited.server
    namespace = server.new_namespace()
    for index in range(NODES):
        server.call("POST", path(kinds.NODE), node(f"node-{index}"))
        # A new node is not ready until a controller, which is not there, has looked at it.
        server.kubectl("taint", "node", f"node-{index}", "node.kubernetes.io/not-ready-")
    with Running(audited, tmp_path) as scheduler:
        scheduler.until(lambda: scheduler.ask(scheduler.health, "/readyz")[0] == 200)
        group, pods = gang(namespace)
        server.kubectl("apply", "-f", "-", input=text.stream([group, *pods]))

        def placed():
            items = server.call("GET", path(kinds.POD, namespace))["items"]
            return [each["spec"]["nodeName"] for each in items if "nodeName" in each["spec"]]

        scheduler.until(lambda: len(placed()) == len(pods))
        where = path(kinds.POD_GROUP, namespace, "first-gang")
        scheduler.until(lambda: server.call("GET", where).get("status", {}).get("phase") == "Running")
        assert scheduler.ask(scheduler.health, "/livez")[0] == 200
        assert "volcano_" in scheduler.ask(scheduler.metrics, "/metrics")[1]
        assert scheduler.end() == 0
    assert audited.forbidden() == []
    assert audited.used() - granted() == set()
