"""Kubernetes' own kube-scheduler and controllers on a cluster of `pumice up`: they believe it, and do there what they do anywhere."""

from __future__ import annotations

import re

import pytest
from go_clients import GoClients

from testbed.waiting import until

TEMPLATE = {"containers": [{"name": "c", "image": "nginx:1", "resources": {"requests": {"cpu": "100m"}}}]}


@pytest.fixture(scope="module")
def go_clients(tmp_path_factory):
    with GoClients(tmp_path_factory.mktemp("go")) as running:
        yield running


@pytest.fixture(autouse=True)
def _they_run_and_understand_every_answer(go_clients):
    yield
    assert go_clients.are_running()
    assert go_clients.complaints() == []


@pytest.fixture
def home(go_clients, request):
    """A namespace of the test's own."""
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[-50:].strip("-")
    go_clients.kubectl("create", "namespace", name)
    return name


def workload(kind, name, spec):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": TEMPLATE}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def job(name, command, **spec):
    containers = [{"name": "c", "image": "busybox", "command": command}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def is_ready(pod):
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def test_a_deployment_is_rolled_out_scaled_and_rolled_back(go_clients, home):
    def rolled_out():
        go_clients.kubectl("-n", home, "rollout", "status", "deployment/web", "--timeout=240s")
        return go_clients.objects(home, "pods", "--field-selector=status.phase=Running")

    go_clients.apply(home, workload("Deployment", "web", {"replicas": 3}))
    pods = rolled_out()
    assert len(pods) == 3
    assert {pod["spec"]["nodeName"] for pod in pods} <= {f"node-{number}" for number in range(4)}
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods} == {"ReplicaSet"}
    go_clients.kubectl("-n", home, "set", "image", "deployment/web", "c=nginx:2")
    rolled_out()
    go_clients.kubectl("-n", home, "scale", "deployment/web", "--replicas=6")
    rolled_out()
    until(lambda: [image(pod) for pod in go_clients.objects(home, "pods")] == ["nginx:2"] * 6)
    go_clients.kubectl("-n", home, "rollout", "undo", "deployment/web")
    rolled_out()
    until(lambda: [image(pod) for pod in go_clients.objects(home, "pods")] == ["nginx:1"] * 6)
    assert len(go_clients.objects(home, "replicasets")) == 2


def image(pod):
    return pod["spec"]["containers"][0]["image"]


def test_a_stateful_set_starts_and_ends_its_pods_in_order(go_clients, home):
    since = go_clients.version()
    go_clients.apply(home, workload("StatefulSet", "db", {"replicas": 3, "serviceName": "db"}))
    go_clients.kubectl("-n", home, "rollout", "status", "statefulset/db", "--timeout=240s")
    go_clients.kubectl("-n", home, "scale", "statefulset/db", "--replicas=1")
    until(lambda: len(go_clients.objects(home, "pods")) == 1)
    steps = []
    for event in go_clients.history(home, since):
        pod, kind = event["object"], event["type"]
        step = kind if kind != "MODIFIED" else "READY" if is_ready(pod) else ""
        if step and (step, pod["metadata"]["name"]) not in steps:
            steps.append((step, pod["metadata"]["name"]))
    started = [(step, f"db-{number}") for number in range(3) for step in ("ADDED", "READY")]
    assert steps == [*started, ("DELETED", "db-2"), ("DELETED", "db-1")]


def test_a_job_is_completed_with_no_more_pods_at_a_time_than_it_allows(go_clients, home):
    since = go_clients.version()
    go_clients.apply(home, job("work", ["sleep", "2"], completions=5, parallelism=2, completionMode="Indexed"))
    go_clients.kubectl("-n", home, "wait", "--for=condition=Complete", "job/work", "--timeout=240s")
    [found] = go_clients.objects(home, "jobs")
    assert (found["status"]["succeeded"], found["status"]["completedIndexes"]) == (5, "0-4")
    live, most = set(), 0
    for event in go_clients.history(home, since):
        pod = event["object"]
        ended = pod["status"]["phase"] in ("Succeeded", "Failed")
        (live.discard if ended else live.add)(pod["metadata"]["uid"])
        most = max(most, len(live))
    assert most == 2
    assert not any(pod["metadata"].get("finalizers") for pod in go_clients.objects(home, "pods"))


def test_a_job_that_keeps_failing_is_given_up(go_clients, home):
    go_clients.apply(home, job("bad", ["sh", "-c", "exit 3"], backoffLimit=0))
    go_clients.kubectl("-n", home, "wait", "--for=condition=Failed", "job/bad", "--timeout=240s")
    [found] = go_clients.objects(home, "jobs")
    failed = next(each for each in found["status"]["conditions"] if each["type"] == "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"


def test_a_pod_failure_policy_is_obeyed(go_clients, home):
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    go_clients.apply(home, job("strict", ["sh", "-c", "exit 42"], backoffLimit=6, podFailurePolicy={"rules": rules}))
    go_clients.kubectl("-n", home, "wait", "--for=condition=Failed", "job/strict", "--timeout=240s")
    [found] = go_clients.objects(home, "jobs")
    assert {each["reason"] for each in found["status"]["conditions"]} == {"PodFailurePolicy"}
    assert found["status"]["failed"] == 1


def test_a_namespace_goes_with_everything_that_is_in_it(go_clients, home):
    go_clients.apply(
        home,
        workload("Deployment", "web", {"replicas": 2}),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}},
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "group"}},
    )
    go_clients.kubectl("-n", home, "rollout", "status", "deployment/web", "--timeout=240s")
    go_clients.kubectl("delete", "namespace", home, "--timeout=240s")
    assert "NotFound" in go_clients.kubectl("get", "namespace", home, check=False)
    kinds = "deployments,replicasets,pods,configmaps,podgroups,events"
    assert home not in go_clients.kubectl("get", kinds, "-A", "-o", "name", check=False)
    go_clients.kubectl("create", "namespace", home)
    assert go_clients.objects(home, kinds) == []


@pytest.mark.parametrize("policy", ["background", "foreground", "orphan"])
def test_what_an_owner_leaves_is_collected_as_was_asked(go_clients, home, policy):
    go_clients.apply(home, workload("Deployment", "web", {"replicas": 2}))
    go_clients.kubectl("-n", home, "rollout", "status", "deployment/web", "--timeout=240s")
    go_clients.kubectl("-n", home, "delete", "deployment", "web", f"--cascade={policy}", "--timeout=240s")
    if policy == "foreground":
        assert go_clients.objects(home, "replicasets") == []
    if policy == "orphan":
        [left] = go_clients.objects(home, "replicasets")
        assert "ownerReferences" not in left["metadata"]
        assert len(go_clients.objects(home, "pods")) == 2
    else:
        until(lambda: go_clients.objects(home, "replicasets,pods") == [])


def test_owners_of_a_kind_that_was_defined_later_are_followed_too(go_clients, home):
    names = {"plural": "rockets", "singular": "rocket", "kind": "Rocket"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rockets.go.example.com"},
        "spec": {
            "group": "go.example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    go_clients.apply("default", definition)
    go_clients.apply(home, {"apiVersion": "go.example.com/v1", "kind": "Rocket", "metadata": {"name": "saturn"}})
    [owner] = go_clients.objects(home, "rockets")
    reference = {
        "apiVersion": "go.example.com/v1",
        "kind": "Rocket",
        "name": "saturn",
        "uid": owner["metadata"]["uid"],
    }
    go_clients.apply(
        home,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "stage", "ownerReferences": [reference]},
        },
    )
    go_clients.kubectl("-n", home, "delete", "rocket", "saturn")
    until(lambda: go_clients.objects(home, "configmaps") == [])


def test_a_pod_that_fits_nowhere_is_told_and_bound_once_there_is_room(go_clients, home):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "picky"},
        "spec": {**TEMPLATE, "nodeSelector": {"rare": "yes"}},
    }
    go_clients.apply(home, pod)
    until(lambda: "FailedScheduling" in go_clients.kubectl("-n", home, "events", "--for", "pod/picky"))

    def scheduled():
        [found] = go_clients.objects(home, "pods")
        conditions = found["status"].get("conditions", ())
        return [(each["status"], each.get("reason")) for each in conditions if each["type"] == "PodScheduled"]

    until(lambda: scheduled() == [("False", "Unschedulable")], scheduled)  # it comes after the event
    go_clients.kubectl("label", "node", "node-2", "rare=yes")
    go_clients.kubectl("-n", home, "wait", "--for=condition=Ready", "pod/picky", "--timeout=240s")
    assert go_clients.objects(home, "pods")[0]["spec"]["nodeName"] == "node-2"
    go_clients.kubectl("label", "node", "node-2", "rare-")


def test_a_pod_of_more_importance_takes_the_place_of_another(go_clients, home):
    go_clients.apply(
        home,
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        },
    )
    go_clients.kubectl("label", "node", "node-3", "contested=yes")
    whole = int(go_clients.kubectl("get", "node", "node-3", "-o", "jsonpath={.status.allocatable.cpu}"))
    most = str(whole * 2 // 3)

    def pod(name, **spec):
        containers = [{"name": "c", "image": "nginx:1", "resources": {"requests": {"cpu": most}}}]
        spec = {"containers": containers, "nodeSelector": {"contested": "yes"}, **spec}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    go_clients.apply(home, pod("lowly"))
    go_clients.kubectl("-n", home, "wait", "--for=condition=Ready", "pod/lowly", "--timeout=240s")
    go_clients.apply(home, pod("urgent", priorityClassName="urgent"))
    go_clients.kubectl("-n", home, "wait", "--for=condition=Ready", "pod/urgent", "--timeout=240s")
    assert [each["metadata"]["name"] for each in go_clients.objects(home, "pods")] == ["urgent"]
    go_clients.kubectl("label", "node", "node-3", "contested-")


def test_a_leader_holds_its_lease_and_renews_it(go_clients):
    path = "jsonpath={.spec.holderIdentity} {.spec.renewTime}"

    def lease():
        named = ("lease", "kube-scheduler", "--ignore-not-found")  # it takes a moment to get it
        return go_clients.kubectl("-n", "kube-system", "get", *named, "-o", path).split()

    holder, renewed = until(lease)
    assert until(lambda: lease()[1] != renewed)
    assert lease()[0] == holder


def test_they_work_with_json_alone_too(tmp_path):
    with GoClients(tmp_path, "--kube-api-content-type=application/json") as speaking_json:
        speaking_json.apply("default", workload("Deployment", "web", {"replicas": 2}), job("work", ["true"]))
        speaking_json.kubectl("rollout", "status", "deployment/web", "--timeout=240s")
        speaking_json.kubectl("wait", "--for=condition=Complete", "job/work", "--timeout=240s")
        assert speaking_json.complaints() == []
