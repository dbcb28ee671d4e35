"""Taking the place of a running Volcano: its definitions, webhooks and objects are there, Jobs run on, and nothing is made again.

The objects are written as Volcano's controllers write them: names, labels, annotations, owners and statuses, and nothing of ours.
"""

from __future__ import annotations

import json
import time

import pytest
import yaml
from server_process import ROOT, Controllers, Process, node, wait_for

import elections

pytestmark = pytest.mark.kube

BATCH = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
WEBHOOKS = ("jobs-mutate", "jobs-validate", "podgroups-validate", "queues-mutate", "queues-validate")
SECOND = "2024-05-01T10:00:00Z"
WATCHED = ("pods", "podgroups", "configmaps", "services", "secrets", "networkpolicies")
PATHS = {
    "jobs": f"/apis/{BATCH}/namespaces/{{}}/jobs",
    "podgroups": f"/apis/{SCHEDULING}/namespaces/{{}}/podgroups",
    "networkpolicies": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    **{plural: f"/api/v1/namespaces/{{}}/{plural}" for plural in ("pods", "configmaps", "services", "secrets")},
}


def volcanos_definition(manifest):
    """Give a definition as Volcano has it: any field is kept, and nothing is said about them; the status of a PodGroup is not apart."""
    (version,) = manifest["spec"]["versions"]
    subresources = {"subresources": {"status": {}}} if manifest["spec"]["names"]["kind"] != "PodGroup" else {}
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    kept = {"name": version["name"], "served": True, "storage": True, "schema": {"openAPIV3Schema": loose}}
    manifest["spec"]["versions"] = [{**kept, **subresources}]
    manifest["metadata"] = {"name": manifest["metadata"]["name"]}
    return manifest


@pytest.fixture
def server(empty_api_server, tmp_path):
    """An API server on which Volcano was installed."""
    for file in sorted((ROOT / "deploy" / "crds").iterdir()):
        definition = volcanos_definition(yaml.safe_load(file.read_text(encoding="utf-8")))
        (tmp_path / file.name).write_text(yaml.safe_dump(definition), encoding="utf-8")
    empty_api_server.crds(tmp_path)
    node(empty_api_server, "n1", cpu="16")
    made = [make_webhook(empty_api_server, name) for name in WEBHOOKS]
    yield empty_api_server
    for path in made:
        empty_api_server.call("DELETE", path)
    empty_api_server.crds(ROOT / "deploy" / "crds")


def make_webhook(server, name):
    """Make one of Volcano's webhooks, and give where it is; where nobody answers, what it would say does not count."""
    kind = "Mutating" if name.endswith("mutate") else "Validating"
    rule = {
        "operations": ["CREATE"],
        "apiGroups": ["batch.volcano.sh"],
        "apiVersions": ["v1alpha1"],
        "resources": ["jobs"],
    }
    service = {"name": "volcano-admission-service", "namespace": "volcano-system", "path": f"/{name.replace('-', '/')}"}
    hook = {
        "name": f"{name.replace('-', '')}.volcano.sh",
        "clientConfig": {"service": service},
        "rules": [rule],
        "failurePolicy": "Ignore",
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    body = {"metadata": {"name": f"volcano-admission-service-{name}"}, "webhooks": [hook]}
    where = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
    server.call("POST", where, body)
    return f"{where}/volcano-admission-service-{name}"


class Volcano:
    """Volcano's controllers, by hand, in one namespace."""

    def __init__(self, server, namespace):
        self.server = server
        self.namespace = namespace
        kind = {"apiVersion": SCHEDULING, "kind": "Queue"}
        body = {**kind, "metadata": {"name": "default"}, "spec": {"weight": 1, "reclaimable": True}}
        made = server.call("POST", f"/apis/{SCHEDULING}/queues", body)
        made["status"] = {"state": "Open"}
        server.call("PUT", f"/apis/{SCHEDULING}/queues/default/status", made)

    def create(self, plural, body):
        return self.server.call("POST", PATHS[plural].format(self.namespace), body)

    def put(self, plural, made, subresource=""):
        path = f"{PATHS[plural].format(self.namespace)}/{made['metadata']['name']}{subresource}"
        return self.server.call("PUT", path, made)

    def job(self, name, replicas, *, phase, group_name="{name}-{uid}", ended=0, plugins=None):
        """Make a Job with its group, its pods and what its plugins made; `ended` of its pods have succeeded."""
        container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
        task = {
            "name": "worker",
            "replicas": replicas,
            "minAvailable": replicas,
            "maxRetry": 3,
            "template": {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [container]}},
        }
        spec = {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": replicas,
            "maxRetry": 3,
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "plugins": plugins or {},
            "tasks": [task],
        }
        made = self.create("jobs", {"apiVersion": BATCH, "kind": "Job", "metadata": {"name": name}, "spec": spec})
        uid = made["metadata"]["uid"]
        owner = {
            "apiVersion": BATCH,
            "kind": "Job",
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        group = group_name.format(name=name, uid=uid)
        finished = phase == "Completed"
        if not finished:
            self._group(group, owner, replicas, "Pending" if phase == "Pending" else "Running")
        if phase != "Pending":
            for index in range(replicas):
                self._pod(name, index, owner, group, "Succeeded" if index < ended else "Running")
        for plugin in plugins or {}:
            self._beside(plugin, name, owner)
        made["status"] = self._status(phase, replicas, ended, plugins or {})
        self.put("jobs", made, "/status")

    def _status(self, phase, replicas, ended, plugins):
        phases = {"Succeeded": ended, "Running": replicas - ended} if phase != "Pending" else {}
        counted = {each: count for each, count in phases.items() if count}
        status = {
            "state": {"phase": phase, "lastTransitionTime": SECOND},
            "minAvailable": replicas,
            "version": 1 if phase == "Completed" else 0,
            "conditions": [{"status": phase, "lastTransitionTime": SECOND}],
            "controlledResources": {f"plugin-{plugin}": plugin for plugin in plugins},
        }
        counts = {"running": phases.get("Running", 0), "succeeded": ended}
        tasks = {"taskStatusCount": {"worker": {"phase": counted}}} if counted else {}
        return {**status, **{field: count for field, count in counts.items() if count}, **tasks}

    def _group(self, name, owner, replicas, phase):
        spec = {
            "minMember": replicas,
            "minTaskMember": {"worker": replicas},
            "queue": "default",
            "minResources": {
                "count/pods": str(replicas),
                "pods": str(replicas),
                "cpu": str(replicas),
                "requests.cpu": str(replicas),
            },
        }
        metadata = {"name": name, "ownerReferences": [owner]}
        status = {"phase": phase, **({"running": replicas} if phase == "Running" else {})}
        kind = {"apiVersion": SCHEDULING, "kind": "PodGroup"}
        self.create("podgroups", {**kind, "metadata": metadata, "spec": spec, "status": status})

    def _pod(self, job, index, owner, group, phase):
        name = f"{job}-worker-{index}"
        annotations = {
            "scheduling.k8s.io/group-name": group,
            "volcano.sh/job-name": job,
            "volcano.sh/job-version": "0",
            "volcano.sh/job-retry-count": "0",
            "volcano.sh/queue-name": "default",
            "volcano.sh/task-index": str(index),
            "volcano.sh/task-spec": "worker",
            "volcano.sh/template-uid": f"{job}-worker",
        }
        labels = {
            "volcano.sh/job-name": job,
            "volcano.sh/job-namespace": self.namespace,
            "volcano.sh/queue-name": "default",
            "volcano.sh/task-index": str(index),
            "volcano.sh/task-spec": "worker",
        }
        container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
        spec = {
            "schedulerName": "volcano",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "nodeName": "n1",
            "containers": [container],
        }
        metadata = {"name": name, "annotations": annotations, "labels": labels, "ownerReferences": [owner]}
        made = self.create("pods", {"metadata": metadata, "spec": spec})
        self.end(made, phase)

    def end(self, made, phase):
        ended = {"terminated": {"exitCode": 0, "finishedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}}
        running = phase == "Running"
        state = {"running": {"startedAt": SECOND}} if running else ended
        container = {
            "name": "main",
            "image": "busybox",
            "imageID": "",
            "restartCount": 0,
            "ready": running,
            "state": state,
        }
        made["status"] = {"phase": phase, "containerStatuses": [container]}
        self.put("pods", made, "/status")

    def _beside(self, plugin, job, owner):
        metadata = {"ownerReferences": [owner]}
        if plugin == "ssh":
            self.create("secrets", {"metadata": {**metadata, "name": f"{job}-ssh"}, "data": {"id_rsa": "eA=="}})
        if plugin == "svc":
            hosts = f"{job}-worker-0.{job}\n{job}-worker-1.{job}"
            data = {
                "worker.host": hosts,
                "VC_WORKER_HOSTS": hosts.replace("\n", ","),
                "VC_WORKER_NUM": "2",
            }
            selector = {"volcano.sh/job-name": job, "volcano.sh/job-namespace": self.namespace}
            self.create("configmaps", {"metadata": {**metadata, "name": f"{job}-svc"}, "data": data})
            port = {"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}
            spec = {"clusterIP": "None", "selector": selector, "ports": [port]}
            self.create("services", {"metadata": {**metadata, "name": job}, "spec": spec})
            peers = {"matchLabels": selector}
            policy = {"podSelector": peers, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": peers}]}]}
            self.create("networkpolicies", {"metadata": {**metadata, "name": job}, "spec": policy})

    # -- looking -----------------------------------------------------------------------------------------------

    def items(self, plural):
        return {
            each["metadata"]["name"]: each
            for each in self.server.call("GET", PATHS[plural].format(self.namespace))["items"]
        }

    def versions(self):
        """Give the version of everything that nobody should have touched."""
        return {
            f"{plural}/{name}": (each["metadata"]["uid"], each["metadata"]["resourceVersion"])
            for plural in WATCHED
            for name, each in self.items(plural).items()
        }

    def statuses(self):
        """Give what Jobs say of themselves, without when they said it."""

        def counts(status):
            fields = ("running", "succeeded", "failed", "pending", "retryCount", "version", "minAvailable")
            return {field: status.get(field, 0) for field in fields}

        found = {name: each.get("status", {}) for name, each in self.items("jobs").items()}
        return {name: (each.get("state", {}).get("phase", ""), counts(each)) for name, each in found.items()}


def test_jobs_of_a_running_volcano_run_on_under_ours_and_nothing_is_made_again_or_touched(server, namespace):
    volcano = Volcano(server, namespace)
    volcano.job("train", 2, phase="Running", plugins={"svc": [], "ssh": [], "env": []})
    volcano.job("older", 1, phase="Running", group_name="{name}")
    volcano.job("half", 2, phase="Running", ended=1)
    volcano.job("done", 2, phase="Completed", ended=2)
    volcano.job("waits", 1, phase="Pending")
    versions, statuses = volcano.versions(), volcano.statuses()
    lease = elections.flags(namespace)
    with Controllers(server, *lease) as controllers:
        controllers.deciding()
        # Another Job gets its group: by then every Job that was there has been looked at.
        spec = volcano.items("jobs")["older"]["spec"]
        volcano.create("jobs", {"apiVersion": BATCH, "kind": "Job", "metadata": {"name": "later"}, "spec": spec})
        wait_for(lambda: any(name.startswith("later-") for name in volcano.items("podgroups")), controllers)
        wait_for(lambda: volcano.statuses().get("later", ("", {}))[0] == "Pending", controllers)
        wait_for(lambda: "pumice_controllers_waiting 0.0" in controllers.get("metrics", "/metrics")[1], controllers)
        assert {name: each for name, each in volcano.versions().items() if name in versions} == versions
        assert {name: each for name, each in volcano.statuses().items() if name in statuses} == statuses
        new = {name for name in volcano.versions() if name not in versions}
        assert {name.partition("-")[0] for name in new} == {"podgroups/later"}
        # And the Jobs that Volcano began come to their end.
        for name in ("train-worker-0", "train-worker-1", "half-worker-1"):
            volcano.end(volcano.items("pods")[name], "Succeeded")
        wait_for(lambda: [volcano.statuses()[name][0] for name in ("train", "half")] == ["Completed"] * 2, controllers)
        assert volcano.statuses()["train"][1]["succeeded"] == 2
        assert volcano.statuses()["train"][1]["retryCount"] == 0
        assert controllers.stop() == 0
        assert "broke down" not in controllers.log


def test_scheduler_and_controllers_together_run_what_volcano_left_waiting(server, namespace):
    volcano = Volcano(server, namespace)
    volcano.job("runs", 1, phase="Running")
    volcano.job("waits", 2, phase="Pending")
    before = volcano.versions()
    lease = elections.flags(namespace)
    with Process(server, *lease, "--controllers") as both:
        both.deciding()
        wait_for(
            lambda: (
                [each["spec"].get("nodeName") for name, each in volcano.items("pods").items() if "waits" in name]
                == ["n1", "n1"]
            ),
            both,
        )
        after = volcano.versions()
        assert after["pods/runs-worker-0"] == before["pods/runs-worker-0"]
        pod = json.loads(json.dumps(volcano.items("pods")["waits-worker-0"]))
        assert pod["metadata"]["annotations"]["volcano.sh/job-name"] == "waits"
        assert both.stop() == 0
