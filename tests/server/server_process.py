"""The scheduler as a process of its own, for tests against a real API server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from testbed import waiting

ROOT = Path(__file__).parents[2]
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
PODS = "/api/v1/namespaces/{}/pods"
READY = [{"type": "Ready", "status": "True"}]


class Process:
    """`pumice scheduler`, or another command, its log, and its small servers on ports of its own choice."""

    command, own_flags, leads = "scheduler", ("--schedule-period=100ms",), "pumice_leading 1.0"

    def __init__(self, server, *flags, environment=None):
        self.log_file = tempfile.NamedTemporaryFile("w+", prefix="pumice-log-")  # noqa: SIM115  closed by stop
        command = [sys.executable, "-c", "from pumice.cli import main; main()", self.command]
        command += ["--kubeconfig", str(server.kubeconfig), "--enable-healthz", "--healthz-address=127.0.0.1:0"]
        command += [
            "--enable-metrics",
            "--listen-address=127.0.0.1:0",
            *self.own_flags,
            "-v=4",
            *flags,
            "2>&1",
        ]
        self._process = subprocess.Popen(command, stderr=self.log_file, env={**os.environ, **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.log_file.close()

    @property
    def log(self):
        return Path(self.log_file.name).read_text()

    @property
    def pid(self):
        return self._process.pid

    @property
    def ended(self):
        return self._process.poll() is not None

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        return self._process.wait(waiting.PATIENCE)

    def get(self, what, path):
        """Ask one of its servers; give status and text, status 0 if nobody answers yet."""
        found = re.search(rf"msg=serving what={what} address=(\S+)", self.log)
        if found is None:
            return 0, ""
        try:
            with urllib.request.urlopen(f"http://{found[1]}{path}", timeout=waiting.PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ready(self):
        wait_for(lambda: self.get("health", "/readyz")[0] == 200, self)
        return self

    def deciding(self):
        wait_for(lambda: self.leads in self.get("metrics", "/metrics")[1], self)
        return self


class Controllers(Process):
    """`pumice controllers`."""

    command, own_flags, leads = "controllers", (), "pumice_controllers_leading 1.0"


def wait_for(question, process=None):
    """Ask until the answer is true, or a process has ended, and show its log if it never is."""
    if process is None:
        return waiting.until(question, every=0.1)
    return waiting.until(question, lambda: process.log, ended=lambda: process.ended, every=0.1)


def node(server, name, cpu="4"):
    """Make a node by hand; without a controller nobody else takes the taint off that every new one gets."""
    offered = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    server.call("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    made = server.call("GET", f"/api/v1/nodes/{name}")
    made["spec"] = {}
    made = server.call("PUT", f"/api/v1/nodes/{name}", made)
    made["status"] = {"allocatable": offered, "capacity": offered, "conditions": READY}
    server.call("PUT", f"/api/v1/nodes/{name}/status", made)


def gang(server, namespace, name, size, *, cpu="1", minimum=None, **spec):
    """Make a group and its pods."""
    body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
    server.call("POST", GROUPS.format(namespace), {**body, "spec": {"minMember": minimum or size, **spec}})
    for index in range(size):
        pod(server, namespace, f"{name}-{index}", cpu=cpu, annotations={"scheduling.k8s.io/group-name": name})


def pod(server, namespace, name, *, cpu="1", annotations=None, scheduler="volcano"):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    server.call("POST", PODS.format(namespace), {"metadata": {"name": name, "annotations": annotations}, "spec": spec})


def placed(server, namespace):
    """Give the node of every pod that has one."""
    items = server.call("GET", PODS.format(namespace))["items"]
    return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in items if item["spec"].get("nodeName")}


def phase(server, namespace, name):
    return server.call("GET", f"{GROUPS.format(namespace)}/{name}").get("status", {}).get("phase", "")
