"""What objects state about others on a cluster of `pumice up`: budgets what may be evicted, quotas what is used."""

from __future__ import annotations

import json

import pytest

from testbed.waiting import until

pytestmark = pytest.mark.kube


@pytest.fixture
def home(cluster, request):
    name = request.node.name.removeprefix("test_").replace("_", "-")[:50].strip("-")
    cluster.kubectl("create", "namespace", name)
    yield lambda *arguments, **options: cluster.kubectl("-n", name, *arguments, **options)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def status(home, kind, name):
    return json.loads(home("get", kind, name, "-o", "json")).get("status", {})


def figures(home, name):
    found = status(home, "pdb", name)
    return tuple(found.get(field) for field in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"))  # fmt: skip


def condition(home, name):
    [found] = [each for each in status(home, "pdb", name)["conditions"] if each["type"] == "DisruptionAllowed"]
    return found


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("--min-available=2", (4, 4, 2, 2)),
        ("--min-available=60%", (4, 4, 3, 1)),
        ("--max-unavailable=1", (4, 4, 3, 1)),
        ("--max-unavailable=30%", (4, 4, 2, 2)),
        ("--min-available=100%", (4, 4, 4, 0)),
    ],
)
def test_a_budget_says_how_many_may_go(cluster, rule, expected):
    name = rule.strip("-").replace("=", "-").replace("%", "-of-100")
    cluster.kubectl("create", "namespace", name)

    def home(*arguments):
        return cluster.kubectl("-n", name, *arguments)

    home("create", "deployment", "web", "--image=nginx", "--replicas=4")
    home("rollout", "status", "deployment/web", "--timeout=240s")
    home("create", "pdb", "guard", "--selector=app=web", rule)
    until(lambda: figures(home, "guard") == expected)
    told = condition(home, "guard")
    allowed = expected[3] > 0
    assert (told["status"], told["reason"]) == (str(allowed), "SufficientPods" if allowed else "InsufficientPods")
    assert told["observedGeneration"] == status(home, "pdb", "guard")["observedGeneration"] == 1
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def test_a_budget_counts_what_a_controller_wants_and_not_what_is_there(home):
    home("create", "deployment", "web", "--image=nginx", "--replicas=2")
    home("rollout", "status", "deployment/web", "--timeout=240s")
    home("create", "pdb", "guard", "--selector=app=web", "--max-unavailable=1")
    until(lambda: figures(home, "guard") == (2, 2, 1, 1))
    home("set", "resources", "deployment/web", "--requests=cpu=10000")  # no node has that much, so the rollout stops
    home("scale", "deployment/web", "--replicas=5")
    until(lambda: figures(home, "guard")[0] == 5)
    until(lambda: condition(home, "guard")["reason"] == "InsufficientPods")
    assert figures(home, "guard")[2:] == (4, 0)


def test_a_pod_that_is_not_ready_may_go_while_the_others_are_enough(home, cluster):
    home("run", "well", "--image=nginx", "--labels=app=p")
    home("run", "ill", "--image=nginx", "--labels=app=p", "--restart=Always", "--", "false")
    home("create", "pdb", "guard", "--selector=app=p", "--min-available=1")
    until(lambda: figures(home, "guard") == (2, 1, 1, 0))

    def evict(name):
        namespace = json.loads(home("get", "pdb", "guard", "-o", "json"))["metadata"]["namespace"]
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        return cluster.caller.answer("POST", path, body).status

    assert evict("well") == 429
    assert evict("ill") == 201


def test_a_quota_counts_what_is_there_of_every_kind_that_it_names(home):
    home("create", "quota", "q", "--hard=count/deployments.apps=2,count/configmaps=5,secrets=3,requests.storage=3Gi")
    home("create", "deployment", "web", "--image=nginx", "--replicas=1")
    for name in ("a", "b"):
        home("create", "configmap", name)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    }
    home("create", "-f", "-", input=json.dumps(claim))
    # two of ours, and the certificate that every namespace is given
    wanted = {"count/deployments.apps": "1", "count/configmaps": "3", "secrets": "0", "requests.storage": "2Gi"}
    until(lambda: status(home, "quota", "q").get("used") == wanted)
    home("create", "deployment", "web-2", "--image=nginx")
    refused = home("create", "deployment", "web-3", "--image=nginx", check=False)
    assert "exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=2" in refused
    refused = home("create", "-f", "-", input=json.dumps({**claim, "metadata": {"name": "d"}}), check=False)
    assert "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=2Gi" in refused


def test_a_quota_with_a_scope_counts_the_pods_that_fit_it(home, cluster):
    cluster.kubectl("create", "priorityclass", "figures-high", "--value=10")
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["figures-high"]}]}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "important"},
        "spec": {"hard": {"pods": "1"}, "scopeSelector": selector},
    }
    home("create", "-f", "-", input=json.dumps(quota))
    home("create", "quota", "idle", "--hard=pods=1", "--scopes=BestEffort")

    def run(name, **spec):
        requests = {"resources": {"requests": {"cpu": "10m"}}} if "priorityClassName" in spec else {}
        containers = [{"name": "c", "image": "nginx", **requests}]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": containers, **spec},
        }
        return home("create", "-f", "-", input=json.dumps(pod), check=False)

    assert "created" in run("plain")
    assert "exceeded quota: idle" in run("plain-2")
    assert "created" in run("high", priorityClassName="figures-high")
    assert "exceeded quota: important, requested: pods=1, used: pods=1" in run(
        "high-2", priorityClassName="figures-high"
    )
    for name in ("idle", "important"):
        until(lambda name=name: status(home, "quota", name).get("used") == {"pods": "1"})
