"""Who may do what: the same roles, bindings and requests to the API server of `pumice up` and to a real one get the same answers, in the same words."""

from __future__ import annotations

import base64
import json
import random

import pytest
from contract_up import UpServer

from pumice.apiserver import certificates as up_certificates
from testbed import calling, waiting

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


@pytest.fixture(scope="module")
def managed_up(tmp_path_factory):
    """The API server of `pumice up` with the controllers that follow access."""
    with UpServer(tmp_path_factory.mktemp("managed"), controllers_too=True) as server:
        yield server


def caller(server, token=""):
    authority = server.ca_file
    return calling.Caller(server.port, token, authority)


def rule(verbs, resources=(), groups=("",), names=(), paths=()):
    if paths:
        return {"verbs": list(verbs), "nonResourceURLs": list(paths)}
    stated = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    return stated | ({"resourceNames": list(names)} if names else {})


def role(name, *rules, namespace=""):
    kind = "Role" if namespace else "ClusterRole"
    home = {"namespace": namespace} if namespace else {}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, **home}, "rules": list(rules)}


def binding(name, to, *subjects, namespace="", kind="ClusterRole"):
    home = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **home},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": to},
        "subjects": list(subjects),
    }


def user(name):
    return {"kind": "User", "name": name, "apiGroup": GROUP}


def group(name):
    return {"kind": "Group", "name": name, "apiGroup": GROUP}


def account(name, namespace):
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def place(manifest):
    namespace = manifest["metadata"].get("namespace")
    return f"{RBAC}/{f'namespaces/{namespace}/' if namespace else ''}{manifest['kind'].lower()}s"


def put(server, *manifests):
    for manifest in manifests:
        server.call("POST", place(manifest), manifest)


def asked(server, who, method, path, body=None, *, content_type="application/json"):
    """Send a request for somebody, and give what came of it: code, reason and message, without names made up by the server."""
    speaking = {"Impersonate-User": who} if who else {}
    answer = caller(server, server.token).answer(method, path, body, content_type=content_type, headers=speaking)
    return answer.status, answer.body.get("reason") if isinstance(answer.body, dict) else None, message_of(answer)


def message_of(answer):
    return answer.body.get("message", "") if isinstance(answer.body, dict) and answer.status >= 300 else ""


# ---- one user in one namespace

JANE = [
    ("GET", "/api/v1/namespaces/NS/pods", None),
    ("GET", "/api/v1/namespaces/NS/pods/p", None),
    ("GET", "/api/v1/namespaces/NS/pods/p/log", None),
    ("GET", "/api/v1/pods", None),
    ("GET", "/api/v1/namespaces/default/pods", None),
    ("GET", "/api/v1/namespaces/NS/pods?watch=1&timeoutSeconds=1", None),
    ("POST", "/api/v1/namespaces/NS/pods", POD),
    ("POST", "/api/v1/namespaces/NS/pods?dryRun=All", POD),
    ("DELETE", "/api/v1/namespaces/NS/pods/p", None),
    ("DELETE", "/api/v1/namespaces/NS/pods", None),
    ("POST", "/api/v1/namespaces/NS/pods/p/eviction", {}),
    ("GET", "/api/v1/namespaces/NS/configmaps/one", None),
    ("GET", "/api/v1/namespaces/NS/configmaps/two", None),
    ("GET", "/api/v1/namespaces/NS/configmaps", None),
    ("GET", "/api/v1/namespaces/NS/configmaps?fieldSelector=metadata.name%3Done", None),
    ("GET", "/api/v1/namespaces/NS/configmaps?fieldSelector=metadata.name%3Dtwo", None),
    ("GET", "/api/v1/namespaces/NS", None),
    ("GET", "/api/v1/namespaces", None),
    ("PUT", "/api/v1/namespaces/NS/finalize", {}),
    ("GET", "/api/v1/nodes", None),
    ("GET", "/api/v1/nodes/n", None),
    ("GET", "/apis/apps/v1/namespaces/NS/deployments", None),
    ("GET", "/apis/apps/v1/namespaces/NS/deployments/d/scale", None),
    ("PATCH", "/apis/apps/v1/namespaces/NS/deployments/d", {}),
    ("GET", "/apis/nobody.example.com/v1/things", None),
    ("GET", "/api", None),
    ("GET", "/version", None),
    ("GET", "/healthz", None),
    ("GET", "/metrics", None),
    ("GET", "/", None),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}),
]


def test_a_user_may_do_what_the_roles_say_and_nothing_else(definitions, up_server):
    told = []
    for server in (definitions, up_server):
        namespace = server.new_namespace()
        put(
            server,
            role(
                "reader",
                rule(["get", "list", "watch"], ["pods"]),
                rule(["get", "list"], ["configmaps"], names=["one"]),
                rule(["get"], ["*/scale"], ["apps"]),
                rule(["get"], ["namespaces"]),
                namespace=namespace,
            ),
            binding("jane", "reader", user("jane"), namespace=namespace, kind="Role"),
        )
        found = [asked(server, "jane", method, path.replace("NS", namespace), body) for method, path, body in JANE]
        told.append([(code, reason, text.replace(namespace, "NS")) for code, reason, text in found])
    for request, real, ours in zip(JANE, *told, strict=True):
        assert ours == real, request
    assert {code for code, _, _ in told[1]} >= {200, 403, 404}


@pytest.mark.parametrize("path", ["/api", "/api/v1/pods", "/version", "/livez", "/apis/apps/v1", "/openapi/v2"])
def test_whoever_shows_nothing_sees_public_information_alone(server, path):
    answer = caller(server).answer("GET", path)
    if path in ("/version", "/livez"):
        assert answer.status == 200
    else:
        assert answer.status == 403
        assert 'User "system:anonymous" cannot' in answer.body["message"]


# ---- random roles

VERBS = ["get", "list", "create", "delete", "*"]
RESOURCES = ["pods", "pods/log", "deployments", "deployments/scale", "nodes", "*", "*/scale", "pods/*"]
GROUPS = ["", "apps", "*"]
NAMES = ["a", "b"]
PATHS = ["/metrics", "/logs/*", "*"]


def random_rule(chance, *, paths):
    if paths and chance.random() < 0.2:
        return rule(chance.sample(VERBS, 2), paths=chance.sample(PATHS, 1))
    names = chance.sample(NAMES, 1) if chance.random() < 0.3 else []
    some = chance.sample(RESOURCES, chance.choice([1, 2]))
    return rule(chance.sample(VERBS, chance.choice([1, 2])), some, chance.sample(GROUPS, 1), names)


def random_world(chance, mark, spaces):
    """Roles of both kinds, and bindings of users, groups and accounts to them; some of the roles are not there."""
    made, names = [], [f"{mark}-{number}" for number in range(4)]
    for name in names[:3]:
        made.append(role(name, *(random_rule(chance, paths=True) for _ in range(chance.choice([1, 2])))))
        made += [role(name, random_rule(chance, paths=False), namespace=space) for space in spaces]
    subjects = [user(f"{mark}-u"), user(f"{mark}-v"), group(f"{mark}-g"), account("robot", spaces[0])]
    for number in range(6):
        space, kind = chance.choice(["", *spaces]), "ClusterRole"
        if space and chance.random() < 0.5:
            kind = "Role"
        chosen = chance.sample(subjects, chance.choice([1, 2]))
        made.append(binding(f"{mark}-b{number}", chance.choice(names), *chosen, namespace=space, kind=kind))
    return made


def random_question(chance, mark, spaces):
    who = {
        "user": chance.choice([f"{mark}-u", f"{mark}-v", f"system:serviceaccount:{spaces[0]}:robot", "nobody"]),
        "groups": chance.choice([[], [f"{mark}-g"]]),
    }
    if chance.random() < 0.15:
        path = chance.choice(["/metrics", "/logs/x", "/logs", "/"])
        return {**who, "nonResourceAttributes": {"verb": chance.choice(["get", "post"]), "path": path}}
    resource, _, door = chance.choice([*RESOURCES[:5], "*", "replicasets/scale"]).partition("/")
    wanted = {"verb": chance.choice(VERBS), "resource": resource, "group": chance.choice(["", "apps"])}
    wanted |= {"subresource": door} if door else {}
    wanted |= {"namespace": space} if (space := chance.choice(["", *spaces])) else {}
    wanted |= {"name": name} if (name := chance.choice(["", "a", "b", "c"])) else {}
    return {**who, "resourceAttributes": wanted}


@pytest.mark.parametrize("seed", range(6))
def test_reviews_of_random_roles_are_answered_as_by_kubernetes(definitions, up_server, seed):
    chance = random.Random(seed)  # noqa: S311  tells a world again
    mark = f"w{seed}"
    spaces = [f"{mark}-left", f"{mark}-right"]
    world = random_world(chance, mark, spaces)
    questions = [random_question(chance, mark, spaces) for _ in range(60)]
    told = []
    for server in (definitions, up_server):
        for space in spaces:
            server.call("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        put(server, *world)
        told.append([review(server, "SubjectAccessReview", spec)["status"] for spec in questions])
    for spec, real, ours in zip(questions, *told, strict=True):
        assert ours["allowed"] == real["allowed"], spec
        if not real["allowed"]:
            assert missing_roles(ours) == missing_roles(real), spec
    assert {each["allowed"] for each in told[0]} == {True, False}


def missing_roles(status):
    reason = status.get("reason", "").removeprefix("RBAC: ").strip("[]")
    return sorted(set(reason.split(", "))) if reason else []


def review(server, kind, spec, group_name="authorization", **headers):
    path = f"/apis/{group_name}.k8s.io/v1/{kind.lower()}s"
    answer = caller(server, server.token).answer("POST", path, {"spec": spec}, headers=headers)
    assert answer.status == 201, answer.body
    return answer.body


def test_a_review_names_the_binding_that_allows(server):
    namespace = server.new_namespace()
    robot = account("robot", namespace)
    put(
        server,
        role("r", rule(["get"], ["pods"]), namespace=namespace),
        binding("b", "r", user("joe"), robot, namespace=namespace, kind="Role"),
    )
    asks = {"verb": "get", "resource": "pods", "namespace": namespace}
    for who, called in (
        ("joe", 'User "joe"'),
        (f"system:serviceaccount:{namespace}:robot", f'ServiceAccount "robot/{namespace}"'),
    ):
        told = review(server, "SubjectAccessReview", {"user": who, "resourceAttributes": asks})["status"]
        reason = f'RBAC: allowed by RoleBinding "b/{namespace}" of Role "r" to {called}'
        assert told == {"allowed": True, "reason": reason}


def test_everybody_may_ask_for_the_own_rules(server):
    namespace = server.new_namespace()
    put(
        server,
        role("r", rule(["get"], ["pods"], names=["a"]), namespace=namespace),
        binding("b", "r", user("joe"), namespace=namespace, kind="Role"),
    )
    told = review(server, "SelfSubjectRulesReview", {"namespace": namespace}, **{"Impersonate-User": "joe"})["status"]
    assert {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]} in told["resourceRules"]
    assert not any("pods" in each["resources"] and not each.get("resourceNames") for each in told["resourceRules"])
    assert {"/healthz"} <= {path for each in told["nonResourceRules"] for path in each["nonResourceURLs"]}
    assert told["incomplete"] is False


# ---- speaking for another


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"Impersonate-User": "ann"}, ""),
        ({"Impersonate-User": "eve"}, 'users "eve" is forbidden: User "boss" cannot impersonate resource "users" in API group "" at the cluster scope'),
        ({"Impersonate-User": "ann", "Impersonate-Group": "staff"}, ""),
        ({"Impersonate-User": "ann", "Impersonate-Group": "system:masters"}, 'groups "system:masters" is forbidden: User "boss" cannot impersonate resource "groups" in API group "" at the cluster scope'),
        ({"Impersonate-User": "ann", "Impersonate-Extra-Scope": "wide"}, ""),
        ({"Impersonate-User": "ann", "Impersonate-Extra-Other": "x"}, 'userextras.authentication.k8s.io "x" is forbidden: User "boss" cannot impersonate resource "userextras/other" in API group "authentication.k8s.io" at the cluster scope'),
        ({"Impersonate-User": "ann", "Impersonate-Uid": "7"}, 'uids.authentication.k8s.io "7" is forbidden: User "boss" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope'),
    ],
)  # fmt: skip
def test_whoever_may_speak_for_somebody_is_that_one_and_nobody_more(server, headers, refused):
    token = boss_token(server)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = caller(server, token).answer("POST", path, body, headers=headers)
    if refused:
        assert answer.status == 403
        told = answer.body["message"].replace(f"system:serviceaccount:{server.boss}:boss", "boss")
        # Kubernetes tells whoever may impersonate some users and not this one of a right that it has since 1.35
        assert told == refused or "impersonate-on:user-info" in told
        return
    told = answer.body["status"]["userInfo"]
    assert told["username"] == "ann"
    assert "system:authenticated" in told["groups"]
    assert ("staff" in told["groups"]) is ("Impersonate-Group" in headers)
    assert told.get("extra", {}).get("scope") == (["wide"] if "Impersonate-Extra-Scope" in headers else None)


def boss_token(server):
    """Give the token of an account that may speak for some."""
    if getattr(server, "boss", None) is None:
        server.boss = server.new_namespace()
        server.call("POST", f"/api/v1/namespaces/{server.boss}/serviceaccounts", {"metadata": {"name": "boss"}})
        put(
            server,
            role(
                f"{server.boss}-speaker",
                rule(["impersonate"], ["users"], names=["ann"]),
                rule(["impersonate"], ["groups"], names=["staff"]),
                rule(["impersonate"], ["userextras/scope"], ["authentication.k8s.io"]),
            ),
            binding(f"{server.boss}-speaker", f"{server.boss}-speaker", account("boss", server.boss)),
        )
    return token_of(server, server.boss, "boss")["status"]["token"]


# ---- tokens


def token_of(server, namespace, name, **spec):
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    return server.call("POST", path, {"spec": spec})


def who_am_i(server, token):
    answer = caller(server, token).answer(
        "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {"kind": "SelfSubjectReview"}
    )
    return answer.body["status"]["userInfo"] if answer.status == 201 else answer.status


def with_account(server, name="robot"):
    namespace = server.new_namespace()
    made = server.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
    return namespace, made["metadata"]["uid"]


def test_a_token_is_of_its_account_as_long_as_that_is_there(server):
    namespace, uid = with_account(server)
    issued = token_of(server, namespace, "robot", expirationSeconds=700)
    assert issued["spec"]["expirationSeconds"] == 700
    token = issued["status"]["token"]
    told = who_am_i(server, token)
    assert (told["username"], told["uid"]) == (f"system:serviceaccount:{namespace}:robot", uid)
    assert sorted(told["groups"]) == [
        "system:authenticated",
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
    ]
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==="))
    assert claims["exp"] - claims["iat"] == 700
    assert claims["kubernetes.io"] == {"namespace": namespace, "serviceaccount": {"name": "robot", "uid": uid}}
    server.call("DELETE", f"/api/v1/namespaces/{namespace}/serviceaccounts/robot")
    waiting.until(lambda: who_am_i(server, token) == 401)
    with_again = server.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "robot"}})
    assert with_again["metadata"]["uid"] != uid
    assert who_am_i(server, token) == 401


def test_a_token_bound_to_an_object_goes_with_it(server):
    namespace, _ = with_account(server)
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    server.call("POST", secrets, {"metadata": {"name": "held"}})
    bound = {"apiVersion": "v1", "kind": "Secret", "name": "held"}
    token = token_of(server, namespace, "robot", boundObjectRef=bound)["status"]["token"]
    assert who_am_i(server, token)["username"].endswith(":robot")
    server.call("DELETE", f"{secrets}/held")
    waiting.until(lambda: who_am_i(server, token) == 401)


def test_a_token_for_others_is_none_for_the_api_server(server):
    namespace, _ = with_account(server)
    token = token_of(server, namespace, "robot", audiences=["elsewhere"])["status"]["token"]
    assert who_am_i(server, token) == 401
    told = review(server, "TokenReview", {"token": token, "audiences": ["elsewhere"]}, "authentication")["status"]
    assert (told["authenticated"], told["audiences"]) == (True, ["elsewhere"])
    assert told["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    refused = review(server, "TokenReview", {"token": token}, "authentication")["status"]
    assert not refused.get("authenticated")
    assert refused["error"]


def test_a_token_that_was_changed_is_refused(server):
    namespace, _ = with_account(server)
    head, claims, signature = token_of(server, namespace, "robot")["status"]["token"].split(".")
    stated = json.loads(base64.urlsafe_b64decode(claims + "==="))
    stated["sub"] = "system:serviceaccount:kube-system:default"
    forged = base64.urlsafe_b64encode(json.dumps(stated).encode()).decode().rstrip("=")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for token in (f"{head}.{forged}.{signature}", f"{unsigned}.{forged}.", f"{head}.{claims}.", "a.b.c", "."):
        assert who_am_i(server, token) == 401


@pytest.mark.parametrize(
    "spec",
    [
        {"expirationSeconds": 10},
        {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "nope"}},
        {"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "nope"}},
    ],
)
def test_bad_requests_for_tokens_are_refused_in_the_same_words(definitions, up_server, spec):
    told = []
    for server in (definitions, up_server):
        namespace, _ = with_account(server)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/robot/token"
        told.append(asked(server, "", "POST", path, {"spec": spec}))
    assert told[0][:2] == told[1][:2]
    assert told[0][2].partition("type")[0] == told[1][2].partition("type")[0]


def test_a_secret_of_an_account_gets_its_token(managed_up):
    namespace, uid = with_account(managed_up)
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    named = {"name": "lasting", "annotations": {"kubernetes.io/service-account.name": "robot"}}
    managed_up.call("POST", secrets, {"metadata": named, "type": "kubernetes.io/service-account-token"})

    def token():
        data = managed_up.call("GET", f"{secrets}/lasting").get("data", {})
        return base64.b64decode(data["token"]).decode() if "token" in data else ""

    waiting.until(token)
    good = token()
    assert who_am_i(managed_up, good)["uid"] == uid
    managed_up.call("DELETE", f"{secrets}/lasting")
    assert who_am_i(managed_up, good) == 401
    managed_up.call("POST", secrets, {"metadata": named, "type": "kubernetes.io/service-account-token"})
    managed_up.call("DELETE", f"/api/v1/namespaces/{namespace}/serviceaccounts/robot")
    waiting.until(lambda: managed_up.answer("GET", f"{secrets}/lasting").status == 404)


def test_a_secret_of_no_account_is_refused(server):
    namespace = server.new_namespace()
    body = {"metadata": {"name": "x"}, "type": "kubernetes.io/service-account-token"}
    refused = asked(server, "", "POST", f"/api/v1/namespaces/{namespace}/secrets", body)
    text = 'Secret "x" is invalid: metadata.annotations[kubernetes.io/service-account.name]: Required value'
    assert refused == (422, "Invalid", text)


# ---- roles that are made of others


def test_a_role_gathers_the_rules_of_those_it_selects(managed_up):
    path = f"{RBAC}/clusterroles"
    whole = role("whole")
    whole["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"part-of": "whole"}}]}
    part = role("part", rule(["get"], ["pods"]))
    part["metadata"]["labels"] = {"part-of": "whole"}
    put(managed_up, whole, part, binding("whole", "whole", user("wholesome")))
    waiting.until(lambda: managed_up.call("GET", f"{path}/whole")["rules"] == part["rules"])
    assert asked(managed_up, "wholesome", "GET", "/api/v1/namespaces/default/pods/x")[0] == 404
    managed_up.call("DELETE", f"{path}/part")
    waiting.until(lambda: not managed_up.call("GET", f"{path}/whole").get("rules"))
    assert asked(managed_up, "wholesome", "GET", "/api/v1/namespaces/default/pods/x")[0] == 403


@pytest.mark.parametrize(
    ("name", "may", "may_not"),
    [
        ("view", [("list", "pods"), ("get", "pods/log")], [("create", "pods"), ("get", "secrets"), ("list", "roles")]),
        ("edit", [("create", "pods"), ("get", "secrets"), ("delete", "deployments")], [("create", "rolebindings")]),
        ("admin", [("create", "rolebindings"), ("create", "pods")], [("update", "resourcequotas")]),
    ],
)
def test_the_roles_that_everybody_knows_are_there(managed_up, name, may, may_not):
    namespace = managed_up.new_namespace()
    put(managed_up, binding("b", name, user(name), namespace=namespace))

    def allowed(verb, resource):
        plain, _, door = resource.partition("/")
        of = {"deployments": "apps", "roles": GROUP, "rolebindings": GROUP}.get(plain, "")
        wanted = {"verb": verb, "resource": plain, "subresource": door, "group": of, "namespace": namespace}
        asks = {"user": name, "resourceAttributes": wanted}
        return review(managed_up, "SubjectAccessReview", asks)["status"]["allowed"]

    waiting.until(lambda: allowed(*may[0]))
    assert [each for each in may if not allowed(*each)] == []
    assert [each for each in may_not if allowed(*each)] == []


# ---- granting


def grants(namespace):
    """Requests of somebody who may write roles and bindings, reads pods, and may bind one role by name."""
    own, wide = role("own", rule(["get"], ["pods"]), namespace=namespace), rule(["get", "delete"], ["pods"])
    bound = binding("mine", "own", user("x"), namespace=namespace, kind="Role")
    aggregated = {**role("gatherer"), "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    return [
        ("POST", place(own), own, ""),
        ("POST", place(own), role("wide", wide, rule(["*"], ["nodes"]), namespace=namespace), ""),
        ("PUT", f"{place(own)}/own", role("own", wide, namespace=namespace), ""),
        ("PATCH", f"{place(own)}/own", {"rules": [wide]}, MERGE),
        ("PATCH", f"{place(own)}/own", {"metadata": {"labels": {"a": "b"}}}, MERGE),
        ("PATCH", f"{place(own)}/made?fieldManager=m", role("made", wide, namespace=namespace), APPLY),
        ("POST", place(bound), bound, ""),
        ("POST", place(bound), binding("admin", "cluster-admin", user("x"), namespace=namespace), ""),
        ("POST", place(bound), binding("gone", "nowhere", user("x"), namespace=namespace, kind="Role"), ""),
        ("POST", place(bound), binding("allowed", "system:node", user("x"), namespace=namespace), ""),
        ("POST", f"{RBAC}/clusterroles", role("cluster-wide", rule(["get"], paths=["/metrics"])), ""),
        ("POST", f"{RBAC}/clusterroles", aggregated, ""),
        ("POST", f"{RBAC}/clusterrolebindings", binding("all", "view", user("x")), ""),
        ("PATCH", f"{place(bound)}/mine", {"roleRef": {"name": "other"}}, MERGE),
    ]


def test_nobody_grants_more_than_they_hold(definitions, up_server):
    told = []
    for server in (definitions, up_server):
        namespace = server.new_namespace()
        writing = rule(["get", "create", "update", "patch"], ["roles", "rolebindings"], [GROUP])
        put(
            server,
            role("reader", rule(["get", "list"], ["pods"]), writing, namespace=namespace),
            binding("reader", "reader", user("kim"), namespace=namespace, kind="Role"),
            role(
                f"{namespace}-writer",
                rule(["create"], ["clusterroles", "clusterrolebindings"], [GROUP]),
                rule(["bind"], ["clusterroles"], [GROUP], names=["system:node"]),
            ),
            binding(f"{namespace}-writer", f"{namespace}-writer", user("kim")),
        )
        requests = grants(namespace)
        found = [
            asked(server, "kim", *request[:3], content_type=request[3] or "application/json") for request in requests
        ]
        told.append([(code, reason, text.replace(namespace, "NS")) for code, reason, text in found])
    for request, real, ours in zip(requests, *told, strict=True):
        assert ours == real, request


WRONG = [
    role("x", {"verbs": [], "apiGroups": [""], "resources": ["pods"]}),
    role("x", {"verbs": ["get"]}),
    role("x", {"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""], "resources": ["pods"]}),
    {**role("x"), "aggregationRule": {}},
    {**role("x", namespace="default"), "rules": [rule(["get"], paths=["/x"])]},
    binding("x", "view", {"kind": "Robot", "name": "r"}),
    binding("x", "view", {"kind": "ServiceAccount", "name": "r"}),
    binding("x", "", user("u")),
    binding("x", "r", user("u"), kind="Role"),
    binding("x", "r", user(""), namespace="default"),
]


@pytest.mark.parametrize("manifest", WRONG)
def test_roles_and_bindings_that_are_wrong_are_refused_in_the_same_words(definitions, up_server, manifest):
    real, ours = (asked(server, "", "POST", place(manifest), manifest) for server in (definitions, up_server))
    assert ours == real
    assert real[0] == 422


# ---- certificates


def test_a_certificate_says_who_somebody_is(up_server, tmp_path):
    files = up_server.certificates
    certificate, key = up_certificates.client(files, "carol", ["team-a", "team-b"])
    (tmp_path / "c.crt").write_bytes(certificate)
    (tmp_path / "c.key").write_bytes(key)
    config = ["--server", up_server.url, "--certificate-authority", str(files.authority), "--kubeconfig=/dev/null"]
    keys = ["--client-certificate", str(tmp_path / "c.crt"), "--client-key", str(tmp_path / "c.key")]
    told = json.loads(up_server.kubectl(*config, *keys, "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert told == {"username": "carol", "groups": ["team-a", "team-b", "system:authenticated"]}
    refused = up_server.kubectl(*config, *keys, "get", "nodes", check=False)
    assert 'User "carol" cannot list resource "nodes" in API group "" at the cluster scope' in refused
