"""A user with few rights gets no wrong answer: what is missing is named with the rule that grants it, and what could be wrong without it is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from contract.contract_up import UpServer
from pumice.api import decoding, kinds
from pumice.cli.program import program
from pumice.framework import configuration, registry
from pumice.manifests import user_roles
from pumice.study import rights
from pumice.study.state import Denied, State
from study.test_study_live import GROUP, node, pod
from testbed import calling

ROOT = Path(__file__).parents[2]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
VOLCANO = "/apis/scheduling.volcano.sh/v1beta1"
MERGE = "application/merge-patch+json"
FULL = user_roles.rules()["vcjob-explainer-role"]


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    with UpServer(tmp_path_factory.mktemp("up")) as server:
        yield server


@pytest.fixture(params=["up", pytest.param("kube", marks=pytest.mark.kube)])
def server(request):
    if request.param == "up":
        return request.getfixturevalue("up")
    found = request.getfixturevalue("api_server")
    found.crds(ROOT / "deploy" / "crds")
    return found


@pytest.fixture
def waiting(server):
    """A gang of two on one node with room for one, in a new namespace."""
    space = server.new_namespace()
    queue = {"apiVersion": GROUP["apiVersion"], "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    for path, body in (("/api/v1/nodes", node("n1", "4")), (f"{VOLCANO}/queues", queue)):
        if server_answer(server, path, body) == "made" and path.endswith("nodes"):
            server.call("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": None}}, content_type=MERGE)
    server.call("POST", f"{VOLCANO}/namespaces/{space}/podgroups", GROUP)
    for index in range(2):
        server.call("POST", f"/api/v1/namespaces/{space}/pods", pod(index))
    yield server, space
    server.call("DELETE", f"{VOLCANO}/namespaces/{space}/podgroups/llama")
    for index in range(2):
        server.call("DELETE", f"/api/v1/namespaces/{space}/pods/llama-{index}", {"gracePeriodSeconds": 0})


def server_answer(server, path, body):
    try:
        server.call("POST", path, body)
    except calling.CallError as error:
        if error.answer.status != 409:
            raise
        return "there"
    return "made"


def user_with(server, folder, rules, namespace=""):
    """Bind somebody to a role, in one namespace or in all, and give the kubeconfig of that one."""
    name = f"reader-{folder.name}".lower().replace("_", "-")[:60]
    kind, home = ("Role", f"{RBAC}/namespaces/{namespace}") if namespace else ("ClusterRole", RBAC)
    server.call("POST", f"{home}/{kind.lower()}s", {"metadata": {"name": name}, "rules": rules})
    bound = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    server.call("POST", f"{home}/{kind.lower()}bindings", bound)
    given = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
    for each in given["users"]:
        each["user"]["as"] = name
    file = folder / f"{name}{namespace}.yaml"
    file.write_text(yaml.safe_dump(given), encoding="utf-8")
    return file


def without(*plurals):
    """Give the explainer's rules without some kinds."""
    rules = [{**rule, "resources": [each for each in rule["resources"] if each not in plurals]} for rule in FULL]
    return [rule for rule in rules if rule["resources"]]


def asked(file, *arguments):
    return CliRunner().invoke(program, [*arguments, "--kubeconfig", str(file)])


def test_the_shipped_role_is_enough_to_explain_the_own_job(waiting, tmp_path):
    server, space = waiting
    file = user_with(server, tmp_path, FULL)
    result = asked(file, "explain", "job", "llama", "-n", space, "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["missingRights"] == []
    assert found["explanation"]["gang"]["fit"] == 1
    changed = asked(file, "what-if", "--delete", f"podgroup/{space}/llama", "-o", "json")
    assert changed.exit_code == 0, changed.output


@pytest.mark.parametrize(
    ("plural", "rule"),
    [
        ("nodes", '- {apiGroups: [""], resources: [nodes], verbs: [list]}'),
        ("pods", '- {apiGroups: [""], resources: [pods], verbs: [list]}'),
        ("queues", "- {apiGroups: [scheduling.volcano.sh], resources: [queues], verbs: [list]}"),
        ("podgroups", "- {apiGroups: [scheduling.volcano.sh], resources: [podgroups], verbs: [list]}"),
    ],
)
def test_without_what_every_decision_needs_the_answer_is_refused_with_the_rule_to_add(waiting, tmp_path, plural, rule):
    server, space = waiting
    file = user_with(server, tmp_path, without(plural))
    for arguments in (("explain", "job", "llama", "-n", space), ("what-if", "--drain", "n1")):
        result = asked(file, *arguments)
        assert result.exit_code == rights.STATUS, result.output
        assert f"list {plural}" in result.output
        assert rule in result.output


@pytest.mark.parametrize(
    "plural", ["persistentvolumeclaims", "priorityclasses", "storageclasses", "namespaces", "replicasets", "services"]
)
def test_without_what_nothing_depends_on_the_answer_is_the_same(waiting, tmp_path, plural):
    server, space = waiting
    file = user_with(server, tmp_path, without(plural))
    result = asked(file, "explain", "job", "llama", "-n", space, "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each.split(".")[0] for each in found["missingRights"]] == [f"list {plural}"]
    assert found["explanation"]["gang"]["fit"] == 1
    text = asked(file, "explain", "job", "llama", "-n", space).output
    assert f"not needed for this answer, and left out: you may not list {plural}" in text


def test_a_user_of_one_namespace_gets_what_is_written_there_and_no_more(waiting, tmp_path):
    server, space = waiting
    own = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["get", "list"]},
    ]
    file = user_with(server, tmp_path, own, namespace=space)
    result = asked(file, "explain", "job", "llama", "-n", space, "-o", "json")
    assert result.exit_code == rights.STATUS
    found = json.loads(result.stdout)
    assert found["explanation"] is None
    assert found["search"] is None
    assert {"list nodes", "list pods", "list queues.scheduling.volcano.sh"} <= set(found["missingRights"])
    assert found["written"] == []


def test_nobody_is_told_that_a_job_is_not_there_who_may_not_see_all_jobs(waiting, tmp_path):
    server, space = waiting
    own = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    file = user_with(server, tmp_path, own, namespace=space)
    result = asked(file, "explain", "job", "llama", "-n", "elsewhere")
    assert result.exit_code == rights.STATUS
    first, second = result.output.strip().splitlines()
    assert first.startswith("Error: refused, since it could be wrong: you may not list ")
    assert "list podgroups.scheduling.volcano.sh" in first
    assert first.endswith(": whether job llama is there, and what belongs to it, cannot be seen")
    assert "- {apiGroups: [scheduling.volcano.sh], resources: [podgroups], verbs: [list]}" in second


def test_who_may_edit_jobs_and_see_no_groups_is_not_told_that_there_are_none(waiting, tmp_path):
    server, space = waiting
    task = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
    made = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "edited"},
        "spec": {"minAvailable": 1, "tasks": [task]},
    }
    server.call("POST", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{space}/jobs", made)
    editor = [
        {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
    ]
    result = asked(user_with(server, tmp_path, editor, namespace=space), "explain", "job", "edited", "-n", space)
    assert result.exit_code == rights.STATUS
    first = result.output.splitlines()[0]
    assert "has no PodGroup" not in result.output
    assert "you may not list podgroups.scheduling.volcano.sh, in all namespaces: whether job edited is there" in first


def test_a_policy_that_may_not_be_read_has_to_be_given(waiting, tmp_path):
    server, space = waiting
    file = user_with(server, tmp_path, without("configmaps"))
    result = asked(file, "explain", "job", "llama", "-n", space)
    assert result.exit_code == rights.STATUS, result.output
    assert "--config FILE gives it" in result.output
    policy = tmp_path / "policy.yaml"
    policy.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n')
    given = asked(file, "explain", "job", "llama", "-n", space, "--config", str(policy))
    assert given.exit_code == 0, given.output


def test_the_page_shows_what_is_printed(waiting, tmp_path):
    server, space = waiting
    file = user_with(server, tmp_path, without("nodes", "queues"))
    printed = asked(file, "explain", "job", "llama", "-n", space).output.replace(space, "train").splitlines()
    page = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    assert "\n".join(printed[:4]) in page


# ---- which kinds matter


def state(*objects, denied):
    return State(source="test", now=0, objects=list(objects), denied=denied)


def found_pod(name="p", *, spec=None):
    manifest = {"metadata": {"name": name, "namespace": "a"}, "spec": {"containers": [], **(spec or {})}}
    return kinds.POD, decoding.decode_json(kinds.POD, json.dumps(manifest).encode())


def found_group(**spec):
    manifest = {"metadata": {"name": "g", "namespace": "a"}, "spec": spec}
    return kinds.POD_GROUP, decoding.decode_json(kinds.POD_GROUP, json.dumps(manifest).encode())


def policy(*plugins):
    listed = "".join(f"  - name: {each}\n" for each in ("gang", *plugins))
    text = f'actions: "enqueue, allocate"\ntiers:\n- plugins:\n{listed}'
    return configuration.load(text, registry.installed().catalog(), "config")


CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}


@pytest.mark.parametrize(
    ("kind", "objects", "plugins", "read_in", "matters"),
    [
        (kinds.PERSISTENT_VOLUME_CLAIM, [found_pod()], (), "", False),
        (kinds.PERSISTENT_VOLUME_CLAIM, [found_pod(spec=CLAIM)], (), "", True),
        (kinds.PERSISTENT_VOLUME_CLAIM, [found_pod(spec=CLAIM)], (), "a", False),
        (kinds.PERSISTENT_VOLUME_CLAIM, [found_pod(spec=CLAIM)], (), "b", True),
        (kinds.PERSISTENT_VOLUME_CLAIM, [found_pod(spec={**CLAIM, "nodeName": "n"})], (), "", False),
        (kinds.PERSISTENT_VOLUME, [found_pod(spec=CLAIM)], (), "", True),
        (kinds.PRIORITY_CLASS, [found_group()], (), "", False),
        (kinds.PRIORITY_CLASS, [found_group(priorityClassName="high")], (), "", True),
        (kinds.RESOURCE_QUOTA, [found_group()], (), "", False),
        (kinds.RESOURCE_QUOTA, [found_group()], ("resourcequota",), "", True),
        (kinds.RESOURCE_QUOTA, [found_group()], ("resourcequota",), "a", False),
        (kinds.RESOURCE_QUOTA, [], ("resourcequota",), "", False),
        (kinds.POD_DISRUPTION_BUDGET, [], (), "", False),
        (kinds.POD_DISRUPTION_BUDGET, [], ("pdb",), "", True),
        (kinds.HYPER_NODE, [found_group()], (), "", False),
        (kinds.HYPER_NODE, [found_group(networkTopology={"mode": "hard"})], (), "", True),
        (kinds.NODE, [], (), "", True),
        (kinds.POD, [], (), "a", True),
        (kinds.SERVICE, [found_pod()], (), "", False),
    ],
)  # fmt: skip
def test_a_kind_is_wanting_where_something_depends_on_it(kind, objects, plugins, read_in, matters):
    denied = (Denied(kind, "no", read_in),)
    found = rights.wanting(state(*objects, denied=denied), policy(*plugins))
    assert bool(found) is matters


def test_rules_of_one_group_are_one_line():
    denied = [Denied(kind, "") for kind in (kinds.NODE, kinds.QUEUE, kinds.POD)]
    assert rights.rules_to_add(denied) == (
        '- {apiGroups: [""], resources: [nodes, pods], verbs: [list]}',
        "- {apiGroups: [scheduling.volcano.sh], resources: [queues], verbs: [list]}",
    )
    assert all(isinstance(yaml.safe_load(line)[0], dict) for line in rights.rules_to_add(denied))
