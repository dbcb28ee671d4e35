"""Kubernetes' own gangs: what an API server takes, fills in, refuses and shows of PodGroups and Workloads, and that both servers say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from contract_up import UpServer

from testbed import waiting

CRDS = Path(__file__).parents[2] / "deploy" / "crds"
GANGS = "/apis/scheduling.k8s.io/v1alpha2"
MERGE = {"content_type": "application/merge-patch+json"}
STRATEGIC = {"content_type": "application/strategic-merge-patch+json"}
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
GANG = {"gang": {"minCount": 2}}
BASIC = {"basic": {}}
PROTECTION = "scheduling.k8s.io/podgroup-protection"


@pytest.fixture(params=["up", pytest.param("kube", marks=[pytest.mark.kube, pytest.mark.apart])])
def server(request):
    """An API server: that of `pumice up`, or a real one with the gates open."""
    return request.getfixturevalue("gated_api_server" if request.param == "kube" else "up_server")


@pytest.fixture
def home(server):
    return f"{GANGS}/namespaces/{server.new_namespace()}"


def group(name="g", **spec):
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": GANG, **spec}}


def workload(*templates, **spec):
    listed = [{"name": "t", "schedulingPolicy": GANG}] if not templates else list(templates)
    return {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": listed, **spec}}


def template(name, **spec):
    return {"name": name, "schedulingPolicy": BASIC, **spec}


REFUSED = [
    ("podgroups", group(schedulingPolicy={}), 'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'),
    ("podgroups", group(schedulingPolicy={**BASIC, **GANG}), 'spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`'),
    ("podgroups", group(schedulingPolicy={"gang": {"minCount": 0}}), "spec.schedulingPolicy.gang.minCount: Required value"),
    ("podgroups", group(schedulingPolicy={"gang": {}}), "spec.schedulingPolicy.gang.minCount: Required value"),
    ("podgroups", group(schedulingPolicy={"gang": {"minCount": -1}}), "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"),
    ("podgroups", group(disruptionMode="X"), 'spec.disruptionMode: Unsupported value: "X": supported values: "Pod", "PodGroup"'),
    ("podgroups", group(schedulingConstraints={"topology": [{"key": "a"}, {"key": "b"}]}), "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item"),
    ("podgroups", group(schedulingConstraints={"topology": [{"key": ""}]}), "spec.schedulingConstraints.topology[0].key: Required value"),
    ("podgroups", group(schedulingConstraints={"topology": [{"key": "a b"}]}), 'spec.schedulingConstraints.topology[0].key: Invalid value: "a b": name part must consist of'),
    ("workloads", workload(podGroupTemplates=[]), "spec.podGroupTemplates: Required value"),
    ("workloads", workload(*(template(f"t{i}") for i in range(9))), "spec.podGroupTemplates: Too many: 9: must have at most 8 items"),
    ("workloads", workload(template("U_")), 'spec.podGroupTemplates[0].name: Invalid value: "U_": a lowercase RFC 1123 label'),
    ("workloads", workload(template("a"), template("a")), "spec.podGroupTemplates[1]: Duplicate value: "),
]  # fmt: skip


@pytest.mark.parametrize(("plural", "body", "words"), REFUSED)
def test_what_is_wrong_is_named_in_the_words_of_kubernetes(server, home, plural, body, words):
    code, found = server.answer("POST", f"{home}/{plural}", body)
    assert code == 422
    assert found["message"].partition(" is invalid: ")[2].startswith(words)


def test_a_new_group_is_protected_and_has_a_mode_a_priority_and_no_generation(server, home):
    made = server.call("POST", f"{home}/podgroups", {**group(), "status": {"conditions": [{"type": "A"}]}})
    assert made["metadata"]["finalizers"] == [PROTECTION]
    assert (made["spec"]["disruptionMode"], made["spec"]["priority"]) == ("Pod", 0)
    assert "generation" not in made["metadata"]
    assert not made.get("status", {}).get("conditions")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"podGroupTemplateRef": {"workload": {"workloadName": "z", "podGroupTemplateName": "t"}}}, 'PodGroup rejected: Workload "z" not found'),
        ({"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "z"}}}, 'PodGroup rejected: PodGroupTemplate "z" not found in Workload "w"'),
        ({"priorityClassName": "zz"}, "no PriorityClass with name zz was found"),
        ({"priority": 7}, "priority set in the pod group (7) must match the priority computed (0) based on the priority class set in the spec"),
    ],
)  # fmt: skip
def test_a_group_needs_its_template_and_its_priority_class(server, home, spec, why):
    server.call("POST", f"{home}/workloads", workload())
    code, found = server.answer("POST", f"{home}/podgroups", group(**spec))
    assert (code, found["message"]) == (403, f'podgroups.scheduling.k8s.io "g" is forbidden: {why}')


def test_a_group_takes_its_priority_from_its_class(server, home):
    name = home.rpartition("/")[2]
    server.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 42})
    made = server.call("POST", f"{home}/podgroups", group(priorityClassName=name))
    assert made["spec"]["priority"] == 42


def test_nothing_of_a_group_or_a_workload_changes(server, home):
    server.call("POST", f"{home}/podgroups", group())
    server.call("POST", f"{home}/workloads", workload(controllerRef={"kind": "Job", "name": "j", "apiGroup": "batch"}))
    for path, change, field in (
        ("podgroups/g", {"schedulingPolicy": {"gang": {"minCount": 3}}}, "schedulingPolicy"),
        ("podgroups/g", {"disruptionMode": "PodGroup"}, "disruptionMode"),
        ("podgroups/g", {"schedulingConstraints": {"topology": [{"key": "rack"}]}}, "schedulingConstraints"),
        ("workloads/w", {"podGroupTemplates": [template("t")]}, "podGroupTemplates"),
        ("workloads/w", {"controllerRef": {"name": "k"}}, "controllerRef"),
    ):
        code, found = server.answer("PATCH", f"{home}/{path}", {"spec": change}, **MERGE)
        assert code == 422
        assert found["message"].endswith(f"spec.{field}: Invalid value: null: field is immutable")
    labelled = server.call("PATCH", f"{home}/podgroups/g", {"metadata": {"labels": {"a": "b"}}}, **MERGE)
    assert labelled["metadata"]["labels"] == {"a": "b"}


def condition(type_, status, reason):
    moment = "2026-01-01T00:00:00Z"
    return {"type": type_, "status": status, "reason": reason, "message": "m", "lastTransitionTime": moment}


def shown(server, home):
    return [row["cells"][:4] for row in server.call("GET", f"{home}/podgroups", **TABLE)["rows"]]


def test_one_condition_is_patched_apart_from_others_and_is_shown(server, home):
    server.call("POST", f"{home}/workloads", workload())
    reference = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    server.call("POST", f"{home}/podgroups", group(podGroupTemplateRef=reference))
    server.call("POST", f"{home}/podgroups", group("h", schedulingPolicy=BASIC))
    assert shown(server, home) == [["g", "Gang", "w", "Pending"], ["h", "Basic", "<none>", "Pending"]]
    for stated in (
        condition("PodGroupScheduled", "False", "Unschedulable"),
        condition("DisruptionTarget", "True", "PreemptionByScheduler"),
    ):
        found = server.call("PATCH", f"{home}/podgroups/g/status", {"status": {"conditions": [stated]}}, **STRATEGIC)
        assert stated["reason"] == shown(server, home)[0][3]
    assert {each["type"] for each in found["status"]["conditions"]} == {"PodGroupScheduled", "DisruptionTarget"}
    columns = server.call("GET", f"{home}/podgroups", **TABLE)["columnDefinitions"]
    assert [each["name"] for each in columns] == ["Name", "Policy", "Workload", "Status", "Age"]


def pod(name="p", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}


def test_pods_name_a_group_once(server, home):
    pods = home.replace(GANGS, "/api/v1") + "/pods"
    assert server.call("POST", pods, pod(schedulingGroup={"podGroupName": "g"}))["spec"]["schedulingGroup"]
    change = {"spec": {"schedulingGroup": {"podGroupName": "h"}}}
    assert server.answer("PATCH", f"{pods}/p", change, **MERGE)[0] == 422
    for name, words in (("A_", 'Invalid value: "A_": a lowercase RFC 1123 subdomain'), ("", "Invalid value: null: must specify one of: `podGroupName`")):  # fmt: skip
        group_of = {"podGroupName": name} if name else {}
        code, found = server.answer("POST", pods, pod("q", schedulingGroup=group_of))
        assert code == 422
        assert f"spec.schedulingGroup.podGroupName: {words}" in found["message"]


def test_a_job_of_a_gang_keeps_its_size(server, home):
    jobs = home.replace(GANGS, "/apis/batch/v1") + "/jobs"
    server.call("POST", f"{home}/podgroups", group())
    named = pod(schedulingGroup={"podGroupName": "g"}, restartPolicy="Never")["spec"]
    spec = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": {"spec": named}}
    server.call("POST", jobs, {"metadata": {"name": "j"}, "spec": spec})
    larger = {"spec": {"parallelism": 3, "completions": 3}}
    code, found = server.answer("PATCH", f"{jobs}/j", larger, **MERGE)
    why = 'cannot change parallelism for a Job referencing gang-scheduled PodGroup "g"'
    assert (code, found["message"]) == (403, f'jobs.batch "j" is forbidden: {why}')


def test_a_group_that_is_deleted_stays_until_it_is_let_go(server, home):
    server.call("POST", f"{home}/podgroups", group())
    server.call("DELETE", f"{home}/podgroups/g")
    assert server.call("GET", f"{home}/podgroups/g")["metadata"]["deletionTimestamp"]
    server.call("PATCH", f"{home}/podgroups/g", {"metadata": {"finalizers": None}}, **MERGE)
    assert server.answer("GET", f"{home}/podgroups/g")[0] == 404


def test_the_controllers_of_pumice_up_let_a_group_go_with_its_last_pod(tmp_path):
    with UpServer(tmp_path, controllers_too=True) as server:
        namespace = server.new_namespace()
        home, pods = f"{GANGS}/namespaces/{namespace}", f"/api/v1/namespaces/{namespace}/pods"
        server.call("POST", f"{home}/podgroups", group())
        server.call("POST", pods, pod(schedulingGroup={"podGroupName": "g"}))
        server.call("DELETE", f"{home}/podgroups/g")
        waiting.until(lambda: "deletionTimestamp" in server.call("GET", f"{home}/podgroups/g")["metadata"])
        server.call("PATCH", f"{pods}/p/status", {"status": {"phase": "Succeeded"}}, **MERGE)
        waiting.until(lambda: server.answer("GET", f"{home}/podgroups/g")[0] == 404)


@pytest.mark.kube
def test_kubectl_means_the_groups_of_volcano_unless_it_is_told_otherwise(up_server):
    up_server.crds(CRDS)
    namespace = up_server.new_namespace()
    up_server.call("POST", f"{GANGS}/namespaces/{namespace}/podgroups", group())
    assert "No resources found" in up_server.kubectl("get", "podgroups", "-n", namespace, check=False)
    assert "Gang" in up_server.kubectl("get", "podgroups.scheduling.k8s.io", "-n", namespace)
