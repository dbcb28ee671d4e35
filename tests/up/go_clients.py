"""Kubernetes' own scheduler and controllers as processes, beside a cluster that has neither."""

from __future__ import annotations

import json
import re
import subprocess

from running_cluster import RunningCluster

from testbed import provide, waiting

_COMPLAINTS = re.compile(
    r"decod|reflector|discovery|unstructured|protobuf|content.type|Failed to (list|watch)|json:|cannot unmarshal",
    re.IGNORECASE,
)


class GoClients:
    """A cluster of four nodes that two Go programs schedule and reconcile."""

    def __init__(self, folder, *arguments):
        self._folder = folder
        self._arguments = arguments
        self.cluster = RunningCluster(
            folder, "--nodes", "4", "--speed", "10", "--scheduler", "none", "--controllers", "none"
        )
        self._processes = []

    def __enter__(self):
        self.cluster.start()
        config = self.cluster.kubeconfig
        self._run("kube-controllers", "--kubeconfig", config)
        self._run(
            "kube-scheduler",
            *("--kubeconfig", config, "--authentication-kubeconfig", config, "--authorization-kubeconfig", config),
            *("--leader-elect=true", "--secure-port=0"),
        )
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(timeout=waiting.PATIENCE)
        self.cluster.stop()

    def _run(self, program, *arguments):
        with self._log(program).open("wb") as log:
            command = [str(provide.program(program)), *arguments, *self._arguments]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _log(self, program):
        return self._folder / f"{program}.log"

    def are_running(self):
        return all(process.poll() is None for process in self._processes)

    def complaints(self):
        """What they said about answers that they could not read, or about watches that failed."""
        lines = [line for name in provide.GO_CLIENTS for line in self._log(name).read_text().splitlines()]
        return [line for line in lines if line[:1] in "EWF" and _COMPLAINTS.search(line)]

    # ---- what tests ask

    def kubectl(self, *arguments, **options):
        return self.cluster.kubectl(*arguments, **options)

    def apply(self, namespace, *manifests):
        text = "\n---\n".join(json.dumps(each) for each in manifests)
        self.kubectl("-n", namespace, "apply", "-f", "-", input=text)

    def objects(self, namespace, kind, *arguments):
        return json.loads(self.kubectl("-n", namespace, "get", kind, "-o", "json", *arguments))["items"]

    def version(self):
        """Where a history of pods can be read from, later."""
        return self.cluster.caller.call("GET", "/api/v1/pods?limit=1")["metadata"]["resourceVersion"]

    def history(self, namespace, version):
        """Everything that has happened to the pods of a namespace since a version, in order."""
        path = f"/api/v1/namespaces/{namespace}/pods?watch=1&resourceVersion={version}&timeoutSeconds=1"
        body = self.cluster.caller.answer("GET", path).body
        return [json.loads(line) for line in body.splitlines()] if isinstance(body, str) else [body]
