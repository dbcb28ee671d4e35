"""Who lacks a right is told which one, by commands, by watches and by `pumice top`, which shows the rest. Against a real API server."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner

from pumice.api import kinds
from pumice.cli.program import program
from pumice.cli.volcano import failing
from pumice.kube import errors
from pumice.manifests import component, user_roles
from pumice.manifests.release import Release


def run(file, *arguments):
    return CliRunner().invoke(program, [*arguments, "--kubeconfig", str(file)], prog_name="pumice")


@pytest.fixture
def ann(real_server, tmp_path):
    """Somebody who may read pods and groups of one namespace, and nothing else."""
    space = real_server.new_namespace()
    names = ["pods", "podgroups.scheduling.volcano.sh"]
    real_server.kubectl(
        "create", "role", "reader", "-n", space, "--verb=get,list,watch", f"--resource={','.join(names)}"
    )
    real_server.kubectl("create", "rolebinding", "reader", "-n", space, "--role=reader", "--user=ann")
    given = yaml.safe_load(real_server.kubeconfig.read_text(encoding="utf-8"))
    for user in given["users"]:
        user["user"]["as"] = "ann"
    file = tmp_path / "ann.yaml"
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    return file, space


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("job", "list", "-n", "{space}"),
            "you lack the right to list jobs.batch.volcano.sh -n {space}; an administrator grants it with kubectl create role NAME --verb=list --resource=jobs.batch.volcano.sh and a rolebinding",
        ),
        (
            ("job", "list", "--all-namespaces"),
            "you lack the right to list jobs.batch.volcano.sh in all namespaces; an administrator grants it with kubectl create clusterrole",
        ),
        (("job", "run", "-N", "a", "-n", "{space}"), "you lack the right to create jobs.batch.volcano.sh -n {space}"),
        (("queue", "list"), "you lack the right to list queues.scheduling.volcano.sh in all namespaces"),
        (
            ("queue", "operate", "-n", "default", "-a", "update", "-w", "2"),
            "you lack the right to patch queues.scheduling.volcano.sh",
        ),
        (("job", "list", "-n", "{space}", "--watch"), 'resources: ["jobs"], verbs: ["list", "watch"]'),
    ],
)
def test_missing_right_is_named_with_how_it_is_granted(ann, arguments, told):
    file, space = ann
    result = run(file, *(each.format(space=space) for each in arguments))
    assert result.exit_code == 1
    assert result.stdout.startswith(f"Failed to {arguments[1]} {arguments[0]}: ")
    assert told.format(space=space) in result.stdout


@pytest.fixture
def bound(real_server, tmp_path):
    """Make somebody who has one of the roles that an installation brings for people, in one namespace; the roles go at the end."""
    made = []

    def make(name):
        made.append(name)
        space = real_server.new_namespace()
        (role,) = [each for each in user_roles.of(component.controllers(Release())) if each["metadata"]["name"] == name]
        real_server.kubectl("apply", "-f", "-", input=yaml.safe_dump(role))
        real_server.kubectl("create", "rolebinding", "b", "-n", space, f"--clusterrole={name}", f"--user={name}")
        given = yaml.safe_load(real_server.kubeconfig.read_text(encoding="utf-8"))
        for user in given["users"]:
            user["user"]["as"] = name
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(given), encoding="utf-8")
        return file, space

    yield make
    for name in made:
        real_server.kubectl("delete", "clusterrole", name)


def test_the_role_for_editors_is_enough_to_run_and_order_jobs(bound):
    file, space = bound("pumice-vcjob-editor-role")
    verbs = (("run", "-N", "a"), ("list",), ("suspend", "-N", "a"), ("resume", "-N", "a"), ("delete", "-N", "a"))
    for verb in verbs:
        result = run(file, "job", *verb, "-n", space)
        assert (result.exit_code, "lack the right" in result.output) == (0, False), result.output


def test_the_role_for_viewers_is_enough_to_look_and_not_to_write(bound):
    file, space = bound("pumice-vcjob-viewer-role")
    assert run(file, "job", "list", "-n", space).stdout == "No resources found\n"
    assert run(file, "jobflow", "list", "-n", space).exit_code == 0
    assert (
        "you lack the right to create jobs.batch.volcano.sh" in run(file, "job", "run", "-N", "a", "-n", space).stdout
    )


def test_what_may_be_read_is_listed(ann):
    file, space = ann
    assert run(file, "pod", "list", "-n", space).stdout == "No resources found\n"


def test_top_shows_what_may_be_read_and_says_what_is_missing(ann, real_server):
    file, space = ann
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "llama"},
        "spec": {"minMember": 2},
    }
    real_server.call("POST", f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{space}/podgroups", group)
    result = run(file, "top", "--once", "-n", space, "-o", "json")
    assert result.exit_code == 0, result.output
    seen = json.loads(result.stdout)
    assert [(job["title"], job["phase"]) for job in seen["jobs"]] == [("llama", "Pending")]
    assert seen["missing"] == [
        f"{plural} are left out: you may not list and watch them in the whole cluster; the rule to add: {rule}"
        for plural, rule in (
            (
                "queues.scheduling.volcano.sh",
                "- {apiGroups: [scheduling.volcano.sh], resources: [queues], verbs: [list, watch]}",
            ),
            ("nodes", '- {apiGroups: [""], resources: [nodes], verbs: [list, watch]}'),
        )
    ]
    drawn = run(file, "top", "--once", "-n", space).stdout
    assert "llama" in drawn
    assert "note: nodes are left out" in drawn


QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "spec": {"weight": 1}}


def test_top_shows_no_table_whose_counts_would_be_wrong(real_server, tmp_path):
    reading = {"apiGroups": ["scheduling.volcano.sh", ""], "resources": ["queues", "nodes"], "verbs": ["list", "watch"]}
    named = {"name": "counts-nothing"}
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    real_server.call("POST", queues, {**QUEUE, "metadata": named})
    path = "/apis/rbac.authorization.k8s.io/v1"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "counts-nothing"}
    bob = {"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}
    real_server.call("POST", f"{path}/clusterroles", {"metadata": named, "rules": [reading]})
    real_server.call(
        "POST", f"{path}/clusterrolebindings", {"metadata": named, "roleRef": reference, "subjects": [bob]}
    )
    given = yaml.safe_load(real_server.kubeconfig.read_text(encoding="utf-8"))
    for user in given["users"]:
        user["user"]["as"] = "bob"
    file = tmp_path / "bob.yaml"
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    result = run(file, "top", "--once", "-o", "json")
    assert result.exit_code == 3, result.output
    seen = json.loads(result.stdout)
    assert (seen["queues"], seen["nodes"]) == ([], [])
    assert "nodes are not shown: without what you may not list they would be wrong" in seen["missing"]
    listed = run(file, "queue", "list")
    assert listed.exit_code == 3
    assert "?" in listed.stdout
    assert "you lack the right to list podgroups.scheduling.volcano.sh in all namespaces" in listed.stderr
    real_server.call("DELETE", f"{queues}/counts-nothing")
    for kind in ("clusterrolebindings", "clusterroles"):
        real_server.call("DELETE", f"{path}/{kind}/counts-nothing")


def test_top_that_may_read_nothing_fails_with_all_that_is_missing(ann):
    file, _ = ann
    result = run(file, "top", "--once")
    assert result.exit_code == 1
    assert result.stdout.startswith("Failed to execute top: queues.scheduling.volcano.sh are left out")
    assert (
        "pods are left out: you may not list and watch them in the whole cluster; -n NAMESPACE shows one"
        in result.stdout
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            errors.ApiError(404, "NotFound", "GET /x: the server could not find the requested resource"),
            "the cluster does not serve jobs of batch.volcano.sh/v1alpha1; install the definitions: pumice install --print | kubectl apply --server-side -f -",
        ),
        (
            errors.ApiError(
                403,
                "Forbidden",
                'POST /x: admission webhook "validatejob.volcano.sh" denied the request: queue q is Closed',
            ),
            'POST /x: admission webhook "validatejob.volcano.sh" denied the request: queue q is Closed (403 Forbidden)',
        ),
        (
            errors.UnknownOutcomeError("POST /x: cut"),
            "POST /x: cut; look before trying again: pumice job list -n space",
        ),
        (
            errors.ApiError(403, "Forbidden", 'POST /x: jobs "train" is forbidden: exceeded quota: few'),
            'POST /x: jobs "train" is forbidden: exceeded quota: few (403 Forbidden)',
        ),
        (errors.UnreachableError("no connection"), "no connection"),
        (errors.ApiError(422, "Invalid", "POST /x: spec.tasks is wrong"), "POST /x: spec.tasks is wrong (422 Invalid)"),
    ],
)
def test_what_the_server_says_is_told_with_what_helps(error, told):
    assert failing.told(error, kinds.JOB, "create", name="train", namespace="space") == told
