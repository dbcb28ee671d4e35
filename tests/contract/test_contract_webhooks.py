"""Webhooks that somebody registers: both API servers ask the same ones about the same writes, and do with their answers the same."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import random
import subprocess
import threading

import pytest
from contract_up import UpServer
from contract_webhooks import Webhook, configuration, hook, patch

from testbed import calling, provide, waiting

PATH = "/apis/admissionregistration.k8s.io/v1"
MERGE = "application/merge-patch+json"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
    },
}
_numbers = itertools.count(1)


@pytest.fixture
def webhook(tmp_path):
    with Webhook(tmp_path, "hook.hooks.svc") as running:
        yield running


@pytest.fixture(scope="module")
def managed_up(tmp_path_factory):
    """The API server of `pumice up` with its controllers."""
    with UpServer(tmp_path_factory.mktemp("managed"), controllers_too=True) as server:
        yield server


@contextlib.contextmanager
def registered(server, namespace, *configurations):
    """Register webhooks for one namespace, and return when the API server asks them."""
    made = []
    try:
        for each in configurations:
            for one in each["webhooks"]:
                one.setdefault("namespaceSelector", {"matchLabels": {"kubernetes.io/metadata.name": namespace}})
            path = f"{PATH}/{each['kind'].lower()}s"
            server.call("POST", path, each)
            made.append(f"{path}/{each['metadata']['name']}")
        yield
    finally:
        for path in made:
            server.call("DELETE", path)


def until_asked(server, namespace, webhook, path):
    """A real API server hears of a configuration a moment later: ask until it has."""

    def asked():
        body = {"metadata": {"generateName": "probe-"}}
        answer(server, "POST", f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All", body)
        return webhook.requests(path)

    waiting.until(asked)
    webhook.asked.clear()


def answer(server, method, path, body=None, content_type="application/json"):
    return server.answer(method, path, body, content_type=content_type)


def maps(namespace, name=""):
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def number():
    return f"c{next(_numbers)}"


# ---- what answers do


def test_webhooks_change_objects_in_the_order_of_their_names_and_judges_see_the_result(server, webhook):
    namespace = server.new_namespace()
    webhook.answers["/b"] = lambda _: patch({"op": "add", "path": "/data", "value": {"said": "b"}})
    webhook.answers["/a"] = lambda request: patch(
        {"op": "add", "path": "/data", "value": {"said": "a", "saw": request["object"].get("data", {}).get("said", "")}}
    )
    first, second, last = f"{number()}-x", f"{number()}-y", number()
    with registered(
        server,
        namespace,
        configuration(second, hook("a.example.com", webhook.url("/a")), mutating=True),
        configuration(first, hook("b.example.com", webhook.url("/b")), mutating=True),
        configuration(last, hook("c.example.com", webhook.url("/c"))),
    ):
        until_asked(server, namespace, webhook, "/c")
        until_asked(server, namespace, webhook, "/a")
        made = server.call("POST", maps(namespace), {"metadata": {"name": "m"}})
    expected = {"said": "a", "saw": "b"} if first < second else {"said": "b"}
    assert made["data"] == expected
    assert webhook.requests("/c")[-1]["object"]["data"] == expected


BINDING = {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n"}}
REVIEWED = ("kind", "resource", "requestKind", "requestResource", "name", "namespace", "operation", "dryRun")


def test_reviews_say_the_same_as_those_of_kubernetes(definitions, up_server, tmp_path):
    told = []
    for server in (definitions, up_server):
        namespace = server.new_namespace()
        with Webhook(tmp_path) as webhook:
            rules = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
            with registered(
                server, namespace, configuration(number(), hook("r.example.com", webhook.url("/r"), rules=rules))
            ):
                until_asked(server, namespace, webhook, "/r")
                server.call("POST", maps(namespace), {"metadata": {"name": "m"}, "data": {"a": "1"}})
                server.call("PATCH", maps(namespace, "m"), {"data": {"a": "2"}}, content_type=MERGE)
                server.call("DELETE", maps(namespace, "m"))
                server.call("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All", DEPLOYMENT)
                server.call("POST", f"/api/v1/namespaces/{namespace}/pods", POD)
                ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
                server.call("PATCH", f"/api/v1/namespaces/{namespace}/pods/p/status", ready, content_type=MERGE)
                server.call("POST", f"/api/v1/namespaces/{namespace}/pods/p/eviction", {"metadata": {"name": "p"}})
                server.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "r"}})
                bound = {**POD, "metadata": {**POD["metadata"], "name": "b"}}
                server.call("POST", f"/api/v1/namespaces/{namespace}/pods", bound)
                server.call("POST", f"/api/v1/namespaces/{namespace}/bindings", BINDING)
                found = server.call("GET", f"/api/v1/namespaces/{namespace}")
                server.call("PUT", f"/api/v1/namespaces/{namespace}/finalize", found)
                server.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/r/token", {"spec": {}})
            asked = [seen(request, namespace) for request in webhook.requests("/r")]
            told.append([each for each in asked if each["resource"]["resource"] != "events"])
    assert told[1] == told[0]
    assert {each["operation"] for each in told[0]} == {"CREATE", "UPDATE", "DELETE"}


def seen(request, namespace):
    found = {field: request.get(field) for field in REVIEWED}
    found["door"] = request.get("subResource")
    for field in ("object", "oldObject"):
        each = request.get(field)
        found[field] = each and {
            "kind": each["kind"],
            "apiVersion": each["apiVersion"],
            "name": each["metadata"].get("name"),
            "data": each.get("data"),
        }
    found["options"] = (request.get("options") or {}).get("kind")
    return json.loads(json.dumps(found).replace(namespace, "NS"))


@pytest.mark.parametrize(
    "said",
    [
        {"allowed": False},
        {"allowed": False, "status": {"message": "not so"}},
        {"allowed": False, "status": {"message": "not so", "code": 422, "reason": "Invalid"}},
        {"allowed": False, "status": {"code": 200, "reason": "Odd"}},
        {"allowed": True, "uid": "another"},
        b"no json",
        b'{"kind": "Pod", "apiVersion": "v1"}',
        {"allowed": True, "patchType": "JSONPatch", "patch": "bm9uZQ=="},
    ],
)
def test_whatever_a_webhook_says_both_servers_make_the_same_of_it(definitions, up_server, tmp_path, said):
    told = []
    for server, mutating in itertools.product((definitions, up_server), (True, False)):
        namespace = server.new_namespace()
        with (
            Webhook(tmp_path) as webhook,
            registered(
                server, namespace, configuration(number(), hook("r.example.com", webhook.url("/r")), mutating=mutating)
            ),
        ):
            until_asked(server, namespace, webhook, "/r")
            webhook.answers["/r"] = lambda _: said
            found = answer(server, "POST", maps(namespace), {"metadata": {"name": "m"}})
        text = found.body.get("message", "").partition("received")[0].partition("failed to call")[0]
        told.append((found.status, found.body.get("reason"), text))
    assert told[2:] == told[:2]


def test_warnings_of_webhooks_reach_the_client(server, webhook):
    namespace = server.new_namespace()
    webhook.answers["/w"] = lambda _: {"allowed": True, "warnings": ["mind the step"]}
    with registered(server, namespace, configuration(number(), hook("w.example.com", webhook.url("/w")))):
        until_asked(server, namespace, webhook, "/w")
        command = ["kubectl", "create", "configmap", "m", "-n", namespace]
        assert "mind the step" in said_by_kubectl(server, command[1:])


def said_by_kubectl(server, arguments):
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "KUBERC": "off"}
    done = subprocess.run(
        [str(provide.program("kubectl")), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def refuses(server, namespace):
    return (
        answer(server, "POST", f"{maps(namespace)}?dryRun=All", {"metadata": {"generateName": "probe-"}}).status == 500
    )


def test_a_webhook_that_nobody_answers_for_refuses_or_is_passed_over(definitions, up_server):
    told = []
    for server, policy in itertools.product((definitions, up_server), ("Fail", "Ignore")):
        namespace = server.new_namespace()
        absent = hook("gone.example.com", {"url": "https://127.0.0.1:1/x"}, failurePolicy=policy)
        with registered(server, namespace, configuration(number(), absent)):
            if policy == "Fail":
                waiting.until(functools.partial(refuses, server, namespace))
            found = answer(server, "POST", maps(namespace), {"metadata": {"name": "m"}})
        told.append(
            (found.status, found.body.get("reason"), found.body.get("message", "").partition('x?timeout=10s"')[0])
        )
    assert told[2:] == told[:2]
    assert told[0][2].startswith(
        'Internal error occurred: failed calling webhook "gone.example.com": failed to call webhook'
    )


def test_a_webhook_that_hangs_holds_up_its_own_request_and_no_other(server, webhook):
    namespace, other = server.new_namespace(), server.new_namespace()
    slow = hook("slow.example.com", webhook.url("/slow"), timeoutSeconds=30)
    with registered(server, namespace, configuration(number(), slow)):
        until_asked(server, namespace, webhook, "/slow")
        webhook.answers["/slow"] = webhook.hang
        found = []
        body = {"metadata": {"name": "m"}}
        waiter = threading.Thread(target=lambda: found.append(answer(server, "POST", maps(namespace), body)))
        waiter.start()
        waiting.until(lambda: webhook.requests("/slow"))
        for index in range(20):
            server.call("POST", maps(other), {"metadata": {"name": f"m{index}"}})
        assert not found
        webhook.going_on.set()
        waiter.join()
        assert found[0].status == 201


def test_a_webhook_has_its_time_and_no_more(server, webhook):
    namespace = server.new_namespace()
    slow = hook("slow.example.com", webhook.url("/slow"), timeoutSeconds=1)
    with registered(server, namespace, configuration(number(), slow)):
        until_asked(server, namespace, webhook, "/slow")
        webhook.answers["/slow"] = webhook.hang
        found = answer(server, "POST", maps(namespace), {"metadata": {"name": "m"}})
    assert (found.status, found.body["reason"]) == (500, "InternalError")
    assert "context deadline exceeded" in found.body["message"]


def test_what_others_write_while_a_webhook_is_asked_is_not_lost(server, webhook):
    namespace = server.new_namespace()
    server.call("POST", maps(namespace), {"metadata": {"name": "m"}, "data": {"a": "1"}})
    unasked = {"matchExpressions": [{"key": "unasked", "operator": "DoesNotExist"}]}

    def meddle(request):
        if request["operation"] == "UPDATE" and len(webhook.requests("/m")) == 1:
            # somebody else writes meanwhile, and nobody is asked about that
            label = {"metadata": {"labels": {"unasked": ""}}, "data": {"b": "2"}}
            server.call("PATCH", maps(namespace, "m"), label, content_type=MERGE)
        return {"allowed": True}

    judge = hook("m.example.com", webhook.url("/m"), objectSelector=unasked)
    judge["rules"][0]["operations"] = ["CREATE", "UPDATE"]
    with registered(server, namespace, configuration(number(), judge)):
        until_asked(server, namespace, webhook, "/m")
        webhook.answers["/m"] = meddle
        server.call("PATCH", maps(namespace, "m"), {"data": {"c": "3"}}, content_type=MERGE)
        present = server.call("GET", maps(namespace, "m"))
    assert present["data"] == {"a": "1", "b": "2", "c": "3"}


def test_a_webhook_that_wants_to_see_later_changes_is_asked_again(server, webhook):
    namespace = server.new_namespace()
    webhook.answers["/late"] = lambda _: patch({"op": "add", "path": "/data", "value": {"late": "yes"}})
    base = number()
    for policy, times in (("IfNeeded", 2), ("Never", 1)):
        early = hook("early.example.com", webhook.url("/early"), reinvocationPolicy=policy)
        late = hook("late.example.com", webhook.url("/late"))
        with registered(server, namespace, configuration(f"{base}-{policy.lower()}", early, late, mutating=True)):
            until_asked(server, namespace, webhook, "/late")
            server.call("POST", maps(namespace), {"metadata": {"name": policy.lower()}})
        found = [each for each in webhook.requests("/early") if each["name"] == policy.lower()]
        assert len(found) == times


def test_a_dry_run_says_so(server, webhook):
    namespace = server.new_namespace()
    with registered(server, namespace, configuration(number(), hook("d.example.com", webhook.url("/d")))):
        until_asked(server, namespace, webhook, "/d")
        for query in ("", "?dryRun=All"):
            server.call("POST", maps(namespace) + query, {"metadata": {"name": "m" + query[-1:].lower()}})
        assert [each["dryRun"] for each in webhook.requests("/d")] == [False, True]


# ---- whom they concern

RESOURCES = ["configmaps", "pods", "pods/status", "*", "*/*", "deployments", "deployments/*", "*/status", "pods/*"]


def random_hook(chance, name, client):
    rule = {
        "operations": chance.sample(["CREATE", "UPDATE", "DELETE"], chance.choice([1, 2])),
        "apiGroups": chance.choice([[""], ["apps"], ["*"], ["", "apps"]]),
        "apiVersions": chance.choice([["v1"], ["v1"], ["*"], ["v2"]]),
        "resources": [chance.choice(RESOURCES)],
        "scope": chance.choice(["*", "Namespaced", "Namespaced", "Cluster"]),
    }
    more = {}
    if chance.random() < 0.3:
        more["objectSelector"] = {"matchLabels": {"a": chance.choice(["b", "c"])}}
    if chance.random() < 0.2:
        more["matchConditions"] = [
            {"name": "some", "expression": chance.choice(["request.operation == 'CREATE'", "has(object.metadata)"])}
        ]
    return hook(name, client, rules=[rule], matchPolicy=chance.choice(["Exact", "Equivalent"]), **more)


@pytest.mark.parametrize("seed", range(4))
def test_random_rules_are_about_the_same_writes_as_with_kubernetes(definitions, up_server, tmp_path, seed):
    told = []
    for server in (definitions, up_server):
        chance = random.Random(seed)  # noqa: S311  tells the same again
        namespace = server.new_namespace()
        with Webhook(tmp_path) as webhook:
            hooks = [random_hook(chance, f"h{index}.example.com", webhook.url(f"/{index}")) for index in range(12)]
            hooks.append(hook("ready.example.com", webhook.url("/ready")))
            half = configuration(number(), *hooks[:6], mutating=True), configuration(number(), *hooks[6:])
            with registered(server, namespace, *half):
                until_asked(server, namespace, webhook, "/ready")
                write_some(server, namespace)
            told.append(sorted(told_of(webhook)))
    assert told[1] == told[0]
    assert told[0]


def write_some(server, namespace):
    labelled = {"labels": {"a": "b"}}
    server.call("POST", maps(namespace), {"metadata": {"name": "m", **labelled}})
    server.call("PATCH", maps(namespace, "m"), {"metadata": {"labels": {"a": "c"}}}, content_type=MERGE)
    server.call("POST", f"/api/v1/namespaces/{namespace}/pods", POD)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    server.call("PATCH", f"/api/v1/namespaces/{namespace}/pods/p/status", ready, content_type=MERGE)
    server.call("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", DEPLOYMENT)
    scale = f"/apis/apps/v1/namespaces/{namespace}/deployments/d/scale"
    server.call("PATCH", scale, {"spec": {"replicas": 2}}, content_type=MERGE)
    server.call("DELETE", maps(namespace, "m"))
    server.call("DELETE", f"/apis/apps/v1/namespaces/{namespace}/deployments/d")


def told_of(webhook):
    for path, request in webhook.asked:
        if path != "/ready" and request["resource"]["resource"] != "events":
            yield (
                path,
                request["operation"],
                request["resource"]["resource"],
                request.get("subResource", ""),
                request.get("name"),
            )


def test_configurations_of_webhooks_are_nobodys_business(server, webhook):
    every = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "scope": "*"}
    namespace = server.new_namespace()
    judge = hook("n.example.com", webhook.url("/n"), rules=[every], failurePolicy="Ignore")
    with registered(server, namespace, configuration(name := number(), judge)):
        until_asked(server, namespace, webhook, "/n")
        at = f"{PATH}/validatingwebhookconfigurations/{name}"
        server.call("PATCH", at, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
        assert not [each for each in webhook.requests("/n") if "webhook" in each["resource"]["resource"]]


WRONG = [
    {"name": "short"},
    {"timeoutSeconds": 31},
    {"sideEffects": "Some"},
    {"sideEffects": None},
    {"admissionReviewVersions": ["v9"]},
    {"failurePolicy": "Perhaps"},
    {"matchPolicy": "Never"},
    {"clientConfig": {"url": "http://127.0.0.1/x"}},
    {"clientConfig": {}},
    {"rules": [{"operations": ["LOOK"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]},
    {"rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": []}]},
    {"matchConditions": [{"name": "x", "expression": "object.("}]},
]


@pytest.mark.parametrize("change", WRONG)
def test_configurations_that_are_wrong_are_refused_at_the_same_field(definitions, up_server, change):
    wanted = {**hook("x.example.com", {"url": "https://127.0.0.1:1/x"}), **change}
    body = configuration(number(), {field: value for field, value in wanted.items() if value is not None})
    found = [answer(each, "POST", f"{PATH}/validatingwebhookconfigurations", body) for each in (definitions, up_server)]
    for each, told in zip((definitions, up_server), found, strict=True):
        if told.status == 201:  # it would be asked about the maps of every test
            each.call("DELETE", f"{PATH}/validatingwebhookconfigurations/{body['metadata']['name']}")
    assert [each.status for each in found] == [422, 422], found
    fields = [[cause["field"] for cause in each.body["details"]["causes"]] for each in found]
    assert set(fields[1]) <= set(fields[0])
    assert fields[1]


# ---- Services, and writes that come from within


@pytest.mark.parametrize("kind", ["Endpoints", "EndpointSlice"])
def test_a_service_leads_to_the_addresses_that_are_written_for_it(up_server, webhook, kind):
    with contextlib.suppress(calling.CallError):
        up_server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "hooks"}})
    services, endpoints = "/api/v1/namespaces/hooks/services", "/api/v1/namespaces/hooks/endpoints"
    slices = "/apis/discovery.k8s.io/v1/namespaces/hooks/endpointslices"
    up_server.call("POST", services, {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}})
    port = [{"port": webhook.port}]
    made = (
        (endpoints, {"metadata": {"name": "hook"}, "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": port}]})
        if kind == "Endpoints"
        else (
            slices,
            {
                "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["127.0.0.1"]}],
                "ports": port,
            },
        )
    )
    client = {"service": {"name": "hook", "namespace": "hooks", "path": "/s"}, "caBundle": webhook.authorities}
    namespace = up_server.new_namespace()
    try:
        with registered(up_server, namespace, configuration(number(), hook("s.example.com", client))):
            refused = answer(up_server, "POST", maps(namespace), {"metadata": {"name": "m"}})
            assert refused.status == 500
            assert "Endpoints hooks/hook with the address where the webhook listens" in refused.body["message"]
            up_server.call("POST", *made)
            up_server.call("POST", maps(namespace), {"metadata": {"name": "m"}})
            assert [each["name"] for each in webhook.requests("/s")] == ["m"]
    finally:
        up_server.call("DELETE", f"{services}/hook")
        up_server.call("DELETE", f"{made[0]}/{made[1]['metadata']['name']}")


def test_a_service_of_another_name_leads_there(up_server, webhook):
    namespace = up_server.new_namespace()
    named = {"metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
    up_server.call("POST", f"/api/v1/namespaces/{namespace}/services", named)
    service = {"name": "hook", "namespace": namespace, "path": "/s", "port": webhook.port}
    client = {"service": service, "caBundle": webhook.authorities}
    with registered(up_server, namespace, configuration(number(), hook("s.example.com", client))):
        refused = answer(up_server, "POST", maps(namespace), {"metadata": {"name": "m"}})
    # it is found, and has a certificate of another name: that of the Service is what counts
    assert "certificate" in refused.body["message"].lower()


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"parallelism": 2, "completions": 2, "template": {"spec": {"restartPolicy": "Never", **POD["spec"]}}},
}


def test_pods_that_controllers_make_pass_the_webhooks_too(managed_up, webhook):
    namespace = managed_up.new_namespace()
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    webhook.answers["/p"] = lambda _: patch({"op": "add", "path": "/metadata/labels/hooked", "value": "yes"})
    changing = hook("p.example.com", webhook.url("/p"), rules=rules)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    with registered(managed_up, namespace, configuration(number(), changing, mutating=True)):
        managed_up.call("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", JOB)
        waiting.until(lambda: len(managed_up.call("GET", pods)["items"]) == 2)
        found = managed_up.call("GET", pods)["items"]
    assert [each["metadata"]["labels"]["hooked"] for each in found] == ["yes", "yes"]


def test_a_webhook_that_hangs_holds_up_no_controller_of_other_objects(managed_up, webhook):
    namespace, other = managed_up.new_namespace(), managed_up.new_namespace()
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    webhook.answers["/p"] = webhook.hang
    slow = hook("p.example.com", webhook.url("/p"), rules=rules, timeoutSeconds=30)
    with registered(managed_up, namespace, configuration(number(), slow)):
        managed_up.call("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", JOB)
        waiting.until(lambda: webhook.requests("/p"))
        managed_up.call("POST", f"/apis/batch/v1/namespaces/{other}/jobs", JOB)
        waiting.until(lambda: len(managed_up.call("GET", f"/api/v1/namespaces/{other}/pods")["items"]) == 2)
        assert managed_up.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"] == []
        webhook.going_on.set()
        waiting.until(lambda: len(managed_up.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]) == 2)
