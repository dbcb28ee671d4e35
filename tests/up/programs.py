"""Programs of Kubernetes and of Volcano beside a cluster of `pumice up` that has neither scheduler nor controllers of its own."""

from __future__ import annotations

import json
import re
import socket
import subprocess

from running_cluster import RunningCluster

from testbed import certificates, provide, waiting

VOLCANO = "volcano-system"
POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
OFF = (
    "horizontal-pod-autoscaler-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "service-cidr-controller",
    "validatingadmissionpolicy-status-controller",
)
"""Controllers of kube-controller-manager whose kinds are not served."""
_SCHEDULING = ("scheduling.volcano.sh", "v1beta1")
WEBHOOKS = {
    "/jobs/mutate": ("batch.volcano.sh", "v1alpha1", "jobs", ["CREATE"]),
    "/jobs/validate": ("batch.volcano.sh", "v1alpha1", "jobs", ["CREATE", "UPDATE"]),
    "/podgroups/mutate": (*_SCHEDULING, "podgroups", ["CREATE"]),
    "/pods/mutate": ("", "v1", "pods", ["CREATE"]),
    "/queues/mutate": (*_SCHEDULING, "queues", ["CREATE"]),
    "/queues/validate": (*_SCHEDULING, "queues", ["CREATE", "UPDATE", "DELETE"]),
}
"""Paths of Volcano's webhook manager, with what each is asked about."""
PASSING = re.compile(
    # Kubernetes' programs say so of a flag that nobody has set
    r"The manifest file is empty, ignoring"
    # a controller that was asked again before a watch has told it of its own write; it waits for that and goes on
    r"|read version: \d+ is not as new as written version: \d+"
    # a pod of a Job of Volcano's that was deleted goes after its Job
    r"|job_controller\.go:\d+\] Failed to get job by <.*> from cache"
    # Volcano's controller hears from a watch, later, what it has written itself
    r"|has too old resource version: \d+ \(\d+\) in cache"
    # Volcano's scheduler writes about a group that its controller has just deleted
    r"|podgroups\.scheduling\.volcano\.sh \"[a-z0-9-]+\" not found"
    # its controller looks once more at a Job that this test has deleted
    r"|Job default/gang-\d+ was not found"
    # a write that met another one; it is done again
    r"|the object has been modified; please apply your changes to the latest version and try again"
)
"""Errors of the programs about each other, which they cure themselves; the first three were seen on a kube-apiserver as well."""


def definition():
    """The kind that Volcano's chart defines and its controllers wait for, beside those that a cluster of `pumice up` has."""
    names = {"plural": "colocationconfigurations", "singular": "colocationconfiguration"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "colocationconfigurations.config.volcano.sh"},
        "spec": {
            "group": "config.volcano.sh",
            "scope": "Namespaced",
            "names": {**names, "kind": "ColocationConfiguration"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    }


def registration(path, url):
    """Give the configuration of one of Volcano's webhooks, under the name by which its manager looks for it."""
    group, version, plural, operations = WEBHOOKS[path]
    kind = "MutatingWebhookConfiguration" if path.endswith("mutate") else "ValidatingWebhookConfiguration"
    webhook = {
        "name": f"{path[1:].replace('/', '-')}.volcano.sh",
        "clientConfig": {"url": url},
        "rules": [{"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": operations}],
        "failurePolicy": "Fail",
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    }
    metadata = {"name": f"volcano-admission-service{path.replace('/', '-')}"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "webhooks": [webhook],
    }


class Programs:
    """A cluster of four nodes, with programs that are started by name."""

    def __init__(self, folder):
        self._folder = folder
        nothing = ("--scheduler", "none", "--controllers", "none", "--admission", "none")
        self.cluster = RunningCluster(folder, "--nodes", "4", *nothing)
        self._processes = {}

    def __enter__(self):
        self.cluster.start()
        self.kubectl("create", "namespace", VOLCANO)
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"volcano-controller.conf": ""}}
        metadata = {"name": "volcano-controller-configmap", "namespace": VOLCANO}
        self.apply(definition(), {**settings, "metadata": metadata})
        return self

    def __exit__(self, *_):
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(timeout=waiting.PATIENCE)
        self.cluster.stop()

    def start(self, program):
        """Start a program with what it needs to know."""
        config = self.cluster.kubeconfig
        arguments = {
            "kube-scheduler": self._secured,
            "kube-controller-manager": lambda: [*self._secured(), f"--controllers=*,-{',-'.join(OFF)}"],
            "vc-scheduler": self._scheduler,
            "vc-webhook-manager": self._webhooks,
        }.get(program, list)()
        with self._log(program).open("wb") as log:
            command = [str(provide.program(program)), "--kubeconfig", config, *arguments]
            self._processes[program] = subprocess.Popen(command, stdout=log, stderr=log)

    def _secured(self):
        config = self.cluster.kubeconfig
        return ["--authentication-kubeconfig", config, "--authorization-kubeconfig", config, "--secure-port=0"]

    def _scheduler(self):
        path = self._folder / "volcano-scheduler.conf"
        path.write_text(POLICY)
        return ["--scheduler-conf", str(path)]

    def _webhooks(self):
        """Register Volcano's webhooks as its chart does, but by address; the manager itself adds whom to trust."""
        folder = self._folder / "webhooks"
        folder.mkdir()
        (folder / "admission.conf").write_text("resourceGroups: []\n")
        authority = certificates.Authority(folder)
        pair = authority.server("webhooks", ["IP:127.0.0.1", "DNS:localhost"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.apply(*(registration(path, f"https://127.0.0.1:{port}{path}") for path in WEBHOOKS))
        return [
            *("--enabled-admission", ",".join(WEBHOOKS), "--admission-conf", str(folder / "admission.conf")),
            *("--tls-cert-file", str(pair.certificate), "--tls-private-key-file", str(pair.key)),
            *("--ca-cert-file", str(authority.pair.certificate), "--webhook-url", f"https://127.0.0.1:{port}"),
            *("--listen-address", "127.0.0.1", "--port", str(port)),
        ]

    def _log(self, program):
        return self._folder / f"{program}.log"

    # ---- what tests ask

    def ended(self):
        """Name the programs that have ended."""
        return [name for name, process in self._processes.items() if process.poll() is not None]

    def errors(self):
        """Give the errors that the programs have written, each with its program."""
        return [
            f"{name}: {line}"
            for name in self._processes
            for line in self._log(name).read_text(errors="replace").splitlines()
            if (re.match(r"[EF]\d{4} ", line) or line.startswith("panic")) and not PASSING.search(line)
        ]

    def kubectl(self, *arguments, **options):
        return self.cluster.kubectl(*arguments, **options)

    def apply(self, *manifests):
        return self.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(each) for each in manifests))

    def find(self, kind, name):
        text = self.kubectl("get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else {}

    def pods(self, selector):
        return json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
