"""What is installed, on a real API server."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import ssl
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pumice.cli.program import program
from pumice.manifests import installation, objects, release, resources, text
from testbed import waiting
from testbed.server import KubectlError

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "deploy" / "crds"
NO_EFFECT = {
    "basic": {"controller_image_name": "volcanosh/vc-controller-manager"},
    "custom": {"controller_replicas": 2, "metrics_enable": False, "scheduler_node_worker_threads": 20},
    "sharding": {"enable": True},
}


@pytest.fixture(scope="module")
def cluster(api_server):
    api_server.crds(CRDS)
    return api_server


@pytest.fixture
def installing(cluster):
    """The cluster for a test that installs everything; however that ends, no webhook is left: nobody answers, and so it would refuse what others write here."""
    yield cluster
    cluster.kubectl("delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "--all")
    # The API server hears of it a moment later.
    waiting.until(lambda: accepts(cluster, queue_named("after")), every=0.1)


def accepts(cluster, manifest):
    try:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", input=text.stream([manifest]))
    except KubectlError:
        return False
    return True


def queue_named(name):
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}


def apply(cluster, *manifests):
    return cluster.kubectl("apply", "-f", "-", input=text.stream(manifests))


def stored(cluster, *query):
    return json.loads(cluster.kubectl("get", *query, "-o", "json"))


def group(namespace, name="g", **fields):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, **fields}


def hyper_node(name, *members):
    spec = {"tier": 1, "members": [{"type": "Node", "selector": selector} for selector in members]}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": spec,
    }


# ---- custom resources


def test_a_group_keeps_its_first_status(cluster, namespace):
    apply(cluster, group(namespace, spec={"minMember": 2}, status={"phase": "Pending"}))
    found = stored(cluster, "pg", "g", "-n", namespace)
    assert found["spec"] == {"queue": "default", "minMember": 2}
    assert found["status"] == {"phase": "Pending"}


def test_a_group_has_no_status_apart(cluster, namespace):
    apply(cluster, group(namespace))
    with pytest.raises(KubectlError, match=r"NotFound|not found|could not find"):
        cluster.kubectl(
            "patch", "pg", "g", "-n", namespace, "--subresource=status", "--type=merge", "-p", '{"status":{}}'
        )


def test_the_status_of_a_queue_is_written_apart(cluster):
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "apart"}}
    apply(cluster, {**queue, "spec": {"parent": "root"}, "status": {"state": "Closed"}})
    assert "status" not in stored(cluster, "q", "apart")
    patch = '{"status":{"allocated":{"cpu":"2"}}}'
    cluster.kubectl("patch", "queue-v1beta1", "apart", "--subresource=status", "--type=merge", "-p", patch)
    found = stored(cluster, "q", "apart")
    assert found["status"] == {"allocated": {"cpu": "2"}}
    assert found["spec"] == {"parent": "root", "weight": 1, "dequeueStrategy": "traverse"}
    head, row = cluster.kubectl("get", "q", "apart").splitlines()
    assert re.split(r"  +", head.strip()) == [
        "NAME",
        "PARENT",
        "WEIGHT",
        "STATE",
        "ALLOCATED CPU",
        "ALLOCATED MEMORY",
        "PENDING",
        "RUNNING",
    ]
    assert row.split() == ["apart", "root", "1", "2"]


def test_columns_of_a_group(cluster, namespace):
    refused = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "no-room"}
    status = {"phase": "Inqueue", "running": 1, "conditions": [refused]}
    apply(cluster, group(namespace, spec={"minMember": 3}, status=status))
    head, row = cluster.kubectl("get", "podgroup", "-n", namespace).splitlines()
    assert head.split() == ["NAME", "PHASE", "RUNNING", "MINIMUM", "QUEUE", "AGE", "REASON"]
    assert [*row.split()[:5], row.split()[-1]] == ["g", "Inqueue", "1", "3", "default", "no-room"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"minMember": -1}, "spec.minMember"),
        ({"minMember": "two"}, "spec.minMember"),
        ({"queue": "Not a name"}, "spec.queue"),
        ({"minResources": {"cpu": "much"}}, "spec.minResources.cpu"),
        ({"networkTopology": {"mode": "firm"}}, "spec.networkTopology.mode"),
        ({"subGroupPolicy": [{"subGroupSize": 0}]}, "spec.subGroupPolicy[0].subGroupSize"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(cluster, namespace, spec, told):
    with pytest.raises(KubectlError) as refusal:
        apply(cluster, group(namespace, spec=spec))
    assert told in str(refusal.value)


def test_a_hyper_node_selects_each_member_in_one_way(cluster):
    name = {"exactMatch": {"name": "n0"}}
    apply(cluster, hyper_node("one-way", name))
    for selector in ({**name, "regexMatch": {"pattern": "n.*"}}, {}):
        with pytest.raises(KubectlError, match="one of exactMatch, regexMatch and labelMatch"):
            apply(cluster, hyper_node("other", selector))


def test_a_job_is_kept_as_it_was_written(cluster, namespace):
    template = {"spec": {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": False}}]}}
    task = {
        "name": "worker",
        "replicas": 2,
        "template": template,
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
    }
    spec = {"tasks": [task], "plugins": {"svc": ["--disable-network-policy=true"]}}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j", "namespace": namespace}}
    apply(cluster, {**job, "spec": spec})
    assert stored(cluster, "vcjob", "j", "-n", namespace)["spec"] == {**spec, "queue": "default", "maxRetry": 3}
    with pytest.raises(KubectlError, match=r"spec\.tasks"):
        apply(cluster, {**job, "spec": {"tasks": []}})


def test_both_older_groups_are_served_side_by_side(cluster, namespace):
    cluster.crds(ROOT / "deploy" / "crds-kube-batch.yaml")
    older = [each for each in resources.KUBE_BATCH if each.kind.namespaced]
    for resource in older:
        manifest = {**group(namespace, "old", spec={"minMember": 2}), "apiVersion": resource.kind.api_version}
        apply(cluster, manifest)
        assert stored(cluster, resource.name, "old", "-n", namespace)["spec"]["minMember"] == 2
    cluster.drop_crds(ROOT / "deploy" / "crds-kube-batch.yaml")


# ---- the scheduler's own objects


def test_everything_that_is_printed_can_be_applied_again_and_again(installing, namespace):
    named = ["--name=again", f"--namespace={namespace}", "--scheduler-name=again"]
    printed = CliRunner().invoke(program, ["install", "--print", *named]).output
    for flags in (["--dry-run=server"], ["--server-side"], ["--server-side"]):
        installing.kubectl("apply", *flags, "-f", "-", input=printed)
    for kind in ("deployment", "serviceaccount", "role", "clusterrole", "flowschema"):
        assert stored(installing, kind, "again-scheduler", "-n", namespace)
    removed = CliRunner().invoke(program, ["uninstall", "--print", *named[:2]]).stdout
    installing.kubectl("delete", "--ignore-not-found", "-f", "-", input=removed)


def test_what_was_installed_is_deleted_and_nothing_else(installing):
    """The namespace has a ConfigMap of somebody else's, and there is a second installation beside the first."""
    first, second = (["--name", name, "--namespace=shared"] for name in ("first", "second"))
    installing.kubectl("create", "namespace", "shared")
    installing.kubectl("create", "configmap", "somebody-elses", "-n", "shared")
    before = everything(installing)
    apply_printed(installing, *second, "--scheduler-name=second", "--without-crds")
    beside = everything(installing)
    apply_printed(installing, *first, "--scheduler-name=first", "--without-crds")
    assert len(everything(installing) - beside) == len(installation.manifests(release.Release(controllers="none")))
    for each, rest in ((first, beside), (second, before)):
        removed = CliRunner().invoke(program, ["uninstall", "--print", *each]).stdout
        installing.kubectl("delete", "--ignore-not-found", "-f", "-", input=removed)
        assert everything(installing) == rest


def apply_printed(cluster, *flags):
    printed = CliRunner().invoke(program, ["install", "--print", *flags])
    assert printed.exit_code == 0, printed.output
    cluster.kubectl("apply", "--server-side", "-f", "-", input=printed.stdout)


def everything(cluster):
    """Name every object of a kind that is installed, and every namespace and definition."""
    kinds = {each["kind"].lower() for each in installation.manifests(release.Release())} | {"namespace", "crd"}
    found = cluster.kubectl("get", ",".join(sorted(kinds)), "-A", "-o", "name")
    return set(found.split())


def test_the_pods_keep_the_rules_of_the_strictest_namespaces(cluster, namespace):
    labels = '{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}'
    cluster.kubectl("patch", "namespace", namespace, "-p", labels)
    installed = installation.manifests(release.Release(namespace=namespace))
    for deployment in [each for each in installed if each["kind"] == "Deployment"]:
        pod = {"apiVersion": "v1", "kind": "Pod", **deployment["spec"]["template"]}
        pod["metadata"] = {**pod["metadata"], "name": deployment["metadata"]["name"], "namespace": namespace}
        apply(cluster, pod)


def test_the_account_has_a_priority_level_of_its_own(cluster):
    level = release.Release(name="level", namespace="level")
    apply(cluster, objects.namespace(level), *objects.scheduler(level))
    token = cluster.kubectl("create", "token", "level-scheduler", "-n", "level").strip()
    levels = {each["metadata"]["uid"]: each["metadata"]["name"] for each in stored(cluster, "flowschemas")["items"]}
    asked = {
        "/api/v1/pods?limit=1": "level-scheduler",
        "/apis/coordination.k8s.io/v1/namespaces/level/leases/level": "level-scheduler-lease",
    }
    for path, expected in asked.items():
        # A new flow schema counts after a moment.
        waiting.until(lambda: levels[_flow_schema(cluster, path, token)] == expected, every=0.1)  # noqa: B023  asked here


def _flow_schema(cluster, path, token):
    """Return the uid of the flow schema that a request was put under."""
    connection = http.client.HTTPSConnection(
        "127.0.0.1", cluster.port, context=ssl.create_default_context(cafile=cluster.ca_file)
    )
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().headers["X-Kubernetes-PF-FlowSchema-UID"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, ("Pumice schedules pods", "JobFlows and HyperNodes are in deployment/pumice-controllers")),
        ({"controller_single": True}, ("Pumice schedules pods", "run in the scheduler's process")),
        ({"controller_enable": False}, ("Pumice schedules pods", "No controllers are installed")),
        ({"scheduler_enable": False}, ("no scheduler is installed", "No controllers are installed")),
        (
            {"scheduler_enable": False, "controller_enable": True},
            ("no scheduler is installed", "JobFlows and HyperNodes are in deployment/pumice-controllers"),
        ),
    ],
)
def test_an_installation_by_helm_says_which_parts_there_are(cluster, helm, values, told):
    said = helm.install(cluster.kubeconfig, "--dry-run=server", values={"custom": values})
    notes = said.partition("NOTES:")[2]
    assert [text for text in told if text not in notes] == []
    assert "deployment/pumice-admission" in notes


def test_an_installation_by_helm_names_values_without_effect_and_leaves_the_definitions_behind(installing, helm):
    try:
        check_installation(installing, helm.install(installing.kubeconfig, values=NO_EFFECT))
    finally:
        done = helm.run("uninstall", "pumice", "--namespace=pumice-system", kubeconfig=installing.kubeconfig)
    assert done.returncode == 0, done.stderr
    # No webhook is left that would refuse it.
    waiting.until(lambda: accepts(installing, queue_named("after-helm")), every=0.1)
    for file in CRDS.iterdir():
        assert stored(installing, "crd", yaml.safe_load(file.read_text(encoding="utf-8"))["metadata"]["name"])


def check_installation(cluster, told):
    without_effect = {line.strip() for line in told.partition("no effect here")[2].splitlines()[1:]}
    assert without_effect == {
        "basic.controller_image_name",
        "custom.metrics_enable",
        "custom.scheduler_node_worker_threads",
        "sharding",
    }
    for each in installation.manifests(release.Release()):
        namespace = each["metadata"].get("namespace", "pumice-system")
        assert stored(cluster, each["kind"], each["metadata"]["name"], "-n", namespace)
