"""The actual kubectl on a cluster of `pumice up`: what people type does what they expect."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from testbed import provide
from testbed.waiting import until

pytestmark = pytest.mark.kube

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", env: [{name: A, value: "1"}]}
"""


def deployment(name, **changes):
    text = DEPLOYMENT.replace("NAME", name)
    for old, new in changes.items():
        text = text.replace(old.replace("_", ":"), new)
    return text


def test_a_pod_is_scheduled_runs_says_something_and_ends(cluster):
    cluster.kubectl("run", "hello", "--image=busybox", "--restart=Never", "--", "sh", "-c", "echo hello world; sleep 5")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/hello", "--timeout=240s")
    assert cluster.kubectl("logs", "hello") == "hello world\n"
    line = cluster.kubectl("get", "pod", "hello", "--no-headers").split()
    assert line[:4] == ["hello", "0/1", "Completed", "0"]
    until(lambda: "Successfully assigned default/hello to node-" in cluster.kubectl("describe", "pod", "hello"))
    assert "Started container hello" in cluster.kubectl("events", "--for", "pod/hello")
    cluster.kubectl("delete", "pod", "hello")
    assert "not found" in cluster.kubectl("get", "pod", "hello", check=False)


def test_a_pod_that_fails_is_told_with_its_exit_code(cluster):
    cluster.kubectl("run", "bad", "--image=busybox", "--restart=Never", "--", "sh", "-c", "exit 3")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/bad", "--timeout=240s")
    path = "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    assert cluster.kubectl("get", "pod", "bad", "-o", path) == "3"
    cluster.kubectl("delete", "pod", "bad")


def test_a_pod_that_ends_too_early_is_started_again_after_a_pause(cluster):
    cluster.kubectl("run", "crash", "--image=busybox", "--", "false")
    until(lambda: re.search(r"CrashLoopBackOff|Error", cluster.kubectl("get", "pod", "crash", "--no-headers")))
    until(
        lambda: (
            int(
                cluster.kubectl("get", "pod", "crash", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
                or 0
            )
            > 0
        )
    )
    cluster.kubectl("delete", "pod", "crash")


def test_apply_diff_and_apply_again_change_only_what_differs(cluster):
    text = deployment("web-apply")
    assert "created" in cluster.kubectl("apply", "-f", "-", input=text)
    assert "unchanged" in cluster.kubectl("apply", "-f", "-", input=text)
    changed = text.replace("nginx:1", "nginx:2")
    assert "+        image: nginx:2" in cluster.kubectl("diff", "-f", "-", input=changed, check=False)
    assert "configured" in cluster.kubectl("apply", "-f", "-", input=changed)
    assert cluster.kubectl("diff", "-f", "-", input=changed) == ""
    cluster.kubectl("delete", "deployment", "web-apply")


def test_server_side_apply_names_who_is_in_the_way(cluster):
    text = deployment("web-ssa")
    cluster.kubectl("apply", "--server-side", "-f", "-", input=text)
    cluster.kubectl("scale", "deployment", "web-ssa", "--replicas=5")
    refused = cluster.kubectl("apply", "--server-side", "-f", "-", input=text, check=False)
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in refused
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    assert cluster.kubectl("get", "deployment", "web-ssa", "-o", "jsonpath={.spec.replicas}") == "3"
    cluster.kubectl("delete", "deployment", "web-ssa")


@pytest.mark.parametrize(
    ("kind", "patch", "path", "wanted"),
    [
        (
            "strategic",
            '{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"B","value":"2"}]}]}}}}',
            "{..env[*].name}",
            "A B",
        ),
        ("merge", '{"spec":{"replicas":7}}', "{.spec.replicas}", "7"),
        ("json", '[{"op":"replace","path":"/spec/replicas","value":8}]', "{.spec.replicas}", "8"),
    ],
)
def test_every_kind_of_patch_is_understood(cluster, kind, patch, path, wanted):
    cluster.kubectl("apply", "-f", "-", input=deployment("web-patch"))
    cluster.kubectl("patch", "deployment", "web-patch", f"--type={kind}", "-p", patch)
    found = cluster.kubectl("get", "deployment", "web-patch", "-o", f"jsonpath={path}").split()
    assert sorted(found) == wanted.split()
    cluster.kubectl("delete", "deployment", "web-patch")


def test_a_misspelt_field_is_refused_by_name(cluster):
    refused = cluster.kubectl("apply", "-f", "-", input=deployment("web-bad", replicas="replcas"), check=False)
    assert 'unknown field "spec.replcas"' in refused


def test_explain_knows_built_in_and_custom_kinds(cluster):
    assert "FIELD: nodeName <string>" in cluster.kubectl("explain", "pod.spec.nodeName")
    assert "Members that are started together" in cluster.kubectl("explain", "podgroup.spec")


def test_whoami_and_can_i_are_answered(cluster):
    assert "kubernetes-admin" in cluster.kubectl("auth", "whoami")
    assert cluster.kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "kubernetes-admin" in cluster.kubectl("--context", "pumice-certificate", "auth", "whoami")


def test_api_resources_lists_what_is_served_and_nothing_else(cluster):
    listed = cluster.kubectl("api-resources", "-o", "name").split()
    assert {
        "pods",
        "jobs.batch",
        "podgroups.scheduling.volcano.sh",
        "customresourcedefinitions.apiextensions.k8s.io",
    } <= set(listed)
    assert "horizontalpodautoscalers.autoscaling" not in listed


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("exec", "busy", "--", "ls"), "exec needs a container that runs"),
        (("attach", "busy"), "attach needs a container that runs"),
        (("port-forward", "pod/busy", "8080:80"), "port-forward needs a container that runs"),
        (("top", "nodes"), "Metrics API not available"),
    ],
)
def test_what_simulated_pods_cannot_do_is_refused_in_words(cluster, command, words):
    if "busy" in str(command) and "busy" not in cluster.kubectl("get", "pods", "-o", "name"):
        cluster.kubectl("run", "busy", "--image=nginx")
        cluster.kubectl("wait", "--for=condition=Ready", "pod/busy", "--timeout=240s")
    assert words in cluster.kubectl(*command, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("deployment", "made", "--image=nginx", "--replicas=2"),
        ("job", "made", "--image=busybox", "--", "sleep", "5"),
        ("configmap", "made", "--from-literal=x=y"),
        ("secret", "generic", "made", "--from-literal=x=y"),
        ("quota", "made", "--hard=pods=100,requests.cpu=100"),
        ("serviceaccount", "made"),
        ("role", "made", "--verb=get", "--resource=pods"),
        ("rolebinding", "made", "--role=made", "--user=x"),
        ("poddisruptionbudget", "made", "--selector=a=b", "--min-available=1"),
        ("priorityclass", "made", "--value=100"),
        ("cronjob", "made", "--image=busybox", "--schedule=* * * * *", "--", "date"),
        ("service", "clusterip", "made", "--tcp=80:80"),
        ("namespace", "made"),
    ],
)
def test_what_kubectl_creates_in_its_own_binary_form_is_what_it_would_create_as_json(cluster, arguments):
    at = arguments.index("--") if "--" in arguments else len(arguments)
    printed = cluster.kubectl("create", *arguments[:at], "--dry-run=client", "-o", "json", *arguments[at:])
    wanted = json.loads(printed)
    cluster.kubectl("create", *arguments)
    kind = "secret" if arguments[0] == "secret" else arguments[0]
    found = json.loads(cluster.kubectl("get", kind, "made", "-o", "json"))
    assert included(_stated(wanted), found), found
    cluster.kubectl("delete", kind, "made", "--wait=false")


def _stated(value):
    """Leave out what says nothing."""
    if isinstance(value, dict):
        kept = {key: _stated(each) for key, each in value.items() if key not in ("creationTimestamp", "status")}
        return {key: each for key, each in kept.items() if each not in (None, {}, [], "")}
    return [_stated(each) for each in value] if isinstance(value, list) else value


def included(part, whole):
    """Tell whether everything that a part says is said by the whole."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and included(each, whole[key]) for key, each in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(included, part, whole))
    return part == whole


def test_a_drained_node_is_empty_and_takes_nothing_until_it_is_uncordoned(cluster):
    cluster.kubectl("run", "moved", "--image=nginx", "--overrides", '{"spec":{"nodeName":"node-3"}}')
    cluster.kubectl("wait", "--for=condition=Ready", "pod/moved", "--timeout=240s")
    drained = cluster.kubectl("drain", "node-3", "--ignore-daemonsets", "--force", "--timeout=240s")
    assert "pod/moved evicted" in drained
    assert "SchedulingDisabled" in cluster.kubectl("get", "node", "node-3")
    # a bind that was on its way when the node was cordoned comes after the drain; its pod belongs to another test and goes with it
    until(lambda: cluster.kubectl("get", "pods", "--field-selector=spec.nodeName=node-3", "-o", "name") == "")
    cluster.kubectl("uncordon", "node-3")
    assert "SchedulingDisabled" not in cluster.kubectl("get", "node", "node-3")


def test_a_budget_holds_an_eviction_up(cluster):
    cluster.kubectl("run", "guarded", "--image=nginx", "--labels=app=guarded")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/guarded", "--timeout=240s")
    cluster.kubectl("create", "pdb", "guard", "--selector=app=guarded", "--min-available=1")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "guarded"}}
    refused = cluster.caller.answer("POST", "/api/v1/namespaces/default/pods/guarded/eviction", body)
    assert (refused.status, refused.body["reason"]) == (429, "TooManyRequests")
    assert "needs 1 healthy pods and has 1 currently" in refused.body["details"]["causes"][0]["message"]
    cluster.kubectl("delete", "pdb", "guard")
    assert cluster.caller.answer("POST", "/api/v1/namespaces/default/pods/guarded/eviction", body).status == 201


def test_a_state_that_no_node_has_is_refused_with_those_there_are(cluster):
    said = cluster.kubectl("annotate", "node", "node-1", "pumice.dev/node-state=Broken", check=False)
    assert 'metadata.annotations[pumice.dev/node-state]: Unsupported value: "Broken"' in said
    assert 'supported values: "NotReady", "Vanished"' in said


def test_a_node_that_is_told_to_fail_does_so_and_its_pods_are_driven_away(cluster):
    cluster.kubectl(
        "run",
        "stranded",
        "--image=nginx",
        "--overrides",
        '{"spec":{"nodeName":"node-2","tolerations":[{"operator":"Exists","effect":"NoExecute","tolerationSeconds":1}]}}',
    )
    cluster.kubectl("wait", "--for=condition=Ready", "pod/stranded", "--timeout=240s")
    cluster.kubectl("annotate", "node", "node-2", "pumice.dev/node-state=NotReady")
    cluster.kubectl("wait", "--for=condition=Ready=False", "node/node-2", "--timeout=240s")
    until(lambda: "Terminating" in cluster.kubectl("get", "pods") or "stranded" not in cluster.kubectl("get", "pods"))
    cluster.kubectl("annotate", "node", "node-2", "pumice.dev/node-state-")
    cluster.kubectl("wait", "--for=condition=Ready", "node/node-2", "--timeout=240s")


def test_a_gang_starts_together(cluster):
    cluster.kubectl("apply", "-f", "docs/examples/pods-gang.yaml")
    cluster.kubectl(
        "wait", "--for=condition=Ready", "pod", *(f"pods-gang-{index}" for index in range(4)), "--timeout=240s"
    )
    assert cluster.kubectl("get", "podgroup", "pods-gang", "-o", "jsonpath={.spec.minMember}") == "4"
    cluster.kubectl("delete", "-f", "docs/examples/pods-gang.yaml")


def test_a_watch_shows_a_pod_on_its_way(cluster):
    environment = {
        "KUBECONFIG": cluster.kubeconfig,
        "KUBECACHEDIR": str(cluster.folder / "cache"),
        "KUBERC": "off",
        "PATH": "/bin",
    }
    command = [str(provide.program("kubectl")), "get", "pods", "-w", "--no-headers"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        states = []
        until(lambda: cluster.kubectl("get", "--raw", "/healthz") == "ok")
        cluster.kubectl("run", "seen", "--image=nginx")
        for line in watching.stdout:
            if line.startswith("seen"):
                states.append(line.split()[2])
            if states[-1:] == ["Running"]:
                break
        watching.terminate()
    assert set(states) <= {"Pending", "Running"}
    cluster.kubectl("delete", "pod", "seen")


def test_budgets_and_quotas_state_their_figures(cluster):
    cluster.kubectl("create", "namespace", "figures")
    cluster.kubectl("-n", "figures", "create", "quota", "q", "--hard=pods=2,requests.cpu=1,requests.memory=1Gi")
    overrides = (
        '{"spec":{"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"100m","memory":"64Mi"}}}]}}'
    )
    for name in ("one", "two"):
        cluster.kubectl("-n", "figures", "run", name, "--image=nginx", "--labels=app=f", "--overrides", overrides)
    refused = cluster.kubectl("-n", "figures", "run", "three", "--image=nginx", "--overrides", overrides, check=False)
    assert "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2" in refused
    cluster.kubectl("-n", "figures", "create", "pdb", "b", "--selector=app=f", "--min-available=1")
    cluster.kubectl("-n", "figures", "wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/b", "--timeout=240s")
    used = "{.status.used.pods} {.status.used.requests\\.cpu} {.status.used.requests\\.memory}"
    until(lambda: cluster.kubectl("-n", "figures", "get", "quota", "q", "-o", f"jsonpath={used}") == "2 200m 128Mi")


def test_a_node_is_described_with_its_lease(cluster):
    described = cluster.kubectl("describe", "node", "node-0")
    assert "HolderIdentity:  node-0" in described
    assert "RenewTime:" in described


def helmed(cluster, namespace):
    environment = {**os.environ, "KUBECONFIG": cluster.kubeconfig, "HELM_CACHE_HOME": str(cluster.folder / "helm")}

    def helm(*arguments):
        command = [str(provide.program("helm")), *arguments, "-n", namespace]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    return helm


HOOKED = """\
apiVersion: v1
kind: Pod
metadata: {name: asks, annotations: {helm.sh/hook: test}}
spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: [wget, "web:80"]}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: prepares, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: tool, args: [prepare]}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: stays}
spec: {restartPolicy: Never, containers: [{name: c, image: busybox, command: [wget, "web:80"]}]}
"""


@pytest.mark.helm
def test_hooks_of_helm_end_and_so_does_helm_test(cluster, tmp_path):
    helm = helmed(cluster, "hooked")
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 1.0.0}\n")
    (tmp_path / "templates" / "all.yaml").write_text(HOOKED)
    helm("install", "web", str(tmp_path), "--create-namespace")
    assert "Phase:          Succeeded" in helm("test", "web")
    until(lambda: cluster.kubectl("-n", "hooked", "get", "pod", "stays", "-o", "jsonpath={.status.phase}") == "Running")
    helm("uninstall", "web")


@pytest.mark.helm
def test_helm_installs_and_removes_our_chart(cluster):
    helm = helmed(cluster, "charted")
    # Webhook configurations are no kind of this cluster, which judges by itself.
    helm("install", "pumice", "deploy/chart", "--create-namespace", "--set", "custom.admission_enable=false")
    made = cluster.kubectl("-n", "charted", "get", "deployments,configmaps,services", "-o", "name").split()
    assert "deployment.apps/pumice-scheduler" in made
    helm("uninstall", "pumice")
    assert cluster.kubectl("-n", "charted", "get", "deployments", "-o", "name") == ""
