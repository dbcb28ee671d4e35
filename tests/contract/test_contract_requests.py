"""The same requests to the API server of `pumice up` and to a real one: the same codes, the same reasons, and but for what is listed the same words."""

from __future__ import annotations

import copy
import json
import re

import pytest

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}},
}
PODS = "/api/v1/namespaces/NS/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/NS/deployments"
JOBS = "/apis/batch/v1/namespaces/NS/jobs"
MAPS = "/api/v1/namespaces/NS/configmaps"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def having(manifest, path, value):
    """Give a manifest with one field changed, or taken out."""
    manifest = copy.deepcopy(manifest)
    at = manifest
    *parents, last = path.split(".")
    for part in parents:
        at = at[int(part)] if part.isdecimal() else at[part]
    if value is None:
        at.pop(last)
    else:
        at[last] = value
    return manifest


def named(manifest, name):
    return having(manifest, "metadata.name", name)


def bind(name, node):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}


def applied(**spec):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


# method, path, body, content type; they are sent one after another, to both servers
REQUESTS = [
    ("POST", PODS, POD, ""),
    ("POST", PODS, POD, ""),
    ("POST", PODS, having(POD, "metadata.generateName", "p-"), ""),
    ("POST", MAPS, {"metadata": {"name": "stated", "generateName": "made-up-"}}, ""),
    ("POST", MAPS, {"metadata": {"name": "stated", "generateName": "made-up-"}}, ""),
    ("GET", f"{PODS}/p", None, ""),
    ("GET", f"{PODS}/nope", None, ""),
    ("POST", PODS, having(POD, "spec.containers", []), ""),
    ("POST", PODS, having(POD, "spec", None), ""),
    ("POST", PODS, having(POD, "metadata", {}), ""),
    ("POST", PODS, named(POD, "A_b"), ""),
    ("POST", PODS, having(POD, "spec.containers", "x"), ""),
    ("POST", PODS, having(POD, "metadata.namespace", "other"), ""),
    ("POST", "/api/v1/namespaces/nope/pods", POD, ""),
    ("POST", f"{PODS}?fieldValidation=Strict", having(POD, "spec.foo", 1), ""),
    ("POST", f"{PODS}?dryRun=All", named(POD, "dry"), ""),
    ("GET", f"{PODS}/dry", None, ""),
    ("POST", f"{PODS}?dryRun=x", POD, ""),
    ("POST", PODS, having(named(POD, "q"), "spec.containers.0.resources", {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}), ""),
    ("POST", PODS, having(named(POD, "q"), "spec.priorityClassName", "nope"), ""),
    ("PUT", f"{PODS}/p", having(POD, "spec.containers.0.name", "zz"), ""),
    ("PUT", f"{PODS}/zz", POD, ""),
    ("PUT", f"{PODS}/p", having(POD, "metadata.resourceVersion", "1"), ""),
    ("PUT", f"{PODS}/p", having(POD, "metadata.uid", "1"), ""),
    ("PATCH", f"{PODS}/p", {"metadata": {"labels": {"x": "y"}}}, MERGE),
    ("PATCH", f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": "y"}]}}, STRATEGIC),
    ("PATCH", f"{PODS}/p", [{"op": "test", "path": "/metadata/name", "value": "zzz"}], JSON_PATCH),
    ("PATCH", f"{PODS}/p", [{"op": "replace", "path": "/spec/nope/x", "value": "zzz"}], JSON_PATCH),
    ("PATCH", f"{PODS}/p", {"spec": {"schedulerName": "zz"}}, MERGE),
    ("PATCH", f"{PODS}/p", {"a": 1}, "text/foo"),
    ("POST", f"{PODS}/p/binding", bind("p", "n"), ""),
    ("POST", f"{PODS}/p/binding", bind("p", "n2"), ""),
    ("POST", f"{PODS}/zz/binding", bind("zz", "n2"), ""),
    ("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, STRATEGIC),
    ("GET", f"{PODS}/p/status", None, ""),
    ("GET", f"{PODS}?labelSelector=x%3Dy", None, ""),
    ("GET", f"{PODS}?labelSelector=x%21%3Dy,a%20notin%20%28b%29", None, ""),
    ("GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn,status.phase%21%3DPending", None, ""),
    ("GET", f"{PODS}?fieldSelector=spec.foo%3Dn", None, ""),
    ("GET", f"{PODS}?limit=x", None, ""),
    ("GET", f"{PODS}?continue=abc", None, ""),
    ("GET", f"{PODS}?resourceVersion=abc", None, ""),
    ("DELETE", f"{PODS}/p", {"preconditions": {"uid": "x"}}, ""),
    ("DELETE", f"{PODS}/p", {"propagationPolicy": "Foo"}, ""),
    ("DELETE", f"{PODS}/p", None, ""),
    ("DELETE", f"{PODS}/p?gracePeriodSeconds=0", None, ""),
    ("DELETE", f"{PODS}/p", None, ""),
    ("POST", DEPLOYMENTS, DEPLOYMENT, ""),
    ("GET", f"{DEPLOYMENTS}/d", None, ""),
    ("GET", f"{DEPLOYMENTS}/d/scale", None, ""),
    ("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}}, MERGE),
    ("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"selector": {"matchLabels": {"z": "z"}}}}, MERGE),
    ("PATCH", f"{DEPLOYMENTS}/d?fieldManager=m", applied(replicas=9), APPLY),
    ("PATCH", f"{DEPLOYMENTS}/d?fieldManager=m&force=true", applied(replicas=9), APPLY),
    ("PATCH", f"{DEPLOYMENTS}/d?fieldManager=m", applied(template={"spec": {"containers": [{"name": "c", "image": "x:2"}]}}), APPLY),
    ("PATCH", f"{DEPLOYMENTS}/d?fieldManager=other", applied(paused=True), APPLY),
    ("PATCH", f"{DEPLOYMENTS}/d?fieldManager=other", applied(), APPLY),
    ("PATCH", f"{DEPLOYMENTS}/new?fieldManager=m", named(DEPLOYMENT, "new"), APPLY),
    ("PATCH", f"{DEPLOYMENTS}/new", named(DEPLOYMENT, "new"), APPLY),
    ("POST", DEPLOYMENTS, having(named(DEPLOYMENT, "e"), "spec.selector", {"matchLabels": {"q": "q"}}), ""),
    ("POST", DEPLOYMENTS, having(named(DEPLOYMENT, "e"), "spec.template.spec.restartPolicy", "Never"), ""),
    ("POST", DEPLOYMENTS, having(named(DEPLOYMENT, "e"), "spec.replicas", -1), ""),
    ("POST", JOBS, JOB, ""),
    ("POST", JOBS, having(named(JOB, "k"), "spec.template.spec.restartPolicy", None), ""),
    ("PATCH", f"{JOBS}/j", {"spec": {"completions": 5}}, MERGE),
    ("DELETE", f"{JOBS}/j", {"propagationPolicy": "Foreground"}, ""),
    ("GET", f"{JOBS}/j", None, ""),
    ("POST", MAPS, {"metadata": {"name": "cm"}, "data": {"a": "b"}}, ""),
    ("PATCH", f"{MAPS}/cm", {"immutable": True}, MERGE),
    ("PATCH", f"{MAPS}/cm", {"data": {"a": "c"}}, MERGE),
    ("GET", f"{MAPS}/cm", None, ""),
    ("DELETE", f"{MAPS}/cm", None, ""),
    ("POST", "/api/v1/namespaces", {"metadata": {"name": "Bad"}}, ""),
    ("GET", "/api/v1/nope", None, ""),
    ("POST", "/version", {}, ""),
    ("PATCH", PODS, {}, MERGE),
    ("GET", f"{PODS}/..", None, ""),
    ("POST", CLASSES, {"metadata": {"name": "pc-NS"}, "value": 2_000_000_000}, ""),
    ("POST", "/api/v1/namespaces/NS/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, ""),
    ("POST", "/api/v1/namespaces/NS/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}, ""),
    ("POST", "/apis/apps/v1/namespaces/NS/statefulsets", {"metadata": {"name": "s"}, "spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}, ""),
    ("POST", "/apis/batch/v1/namespaces/NS/cronjobs", {"metadata": {"name": "s"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB["spec"]}}}, ""),
    ("POST", "/apis/policy/v1/namespaces/NS/poddisruptionbudgets", {"metadata": {"name": "s"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}, ""),
    ("POST", "/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "sc-NS"}, "provisioner": "x"}, ""),
    ("DELETE", "/api/v1/namespaces/NS", None, ""),
    ("POST", PODS, named(POD, "late"), ""),
]  # fmt: skip

# What a real server says in the words of its language or of its storage, or does not say at all; the code and the reason are the same.
OTHER_WORDS = (
    "json: cannot unmarshal",
    "pod updates may not change fields",
    "Precondition failed: UID",
    "the server rejected our request",
    "unknown format",
    "this method on the requested resource",
    "strconv.Parse",
    "continue key is not valid",
    "limit: Invalid value",
    "is there to be read",
    "is refused: it must not contain",
)
# What differs from one cluster to another, or is left out of the tested server (service accounts) or of ours (empty dates).
VOLATILE = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "clusterIP",
        "clusterIPs",
        "controller-uid",
        "lastTransitionTime",
    }
    | {
        "batch.kubernetes.io/controller-uid",
        "deletionTimestamp",
        "serviceAccount",
        "serviceAccountName",
        "lastProbeTime",
    }
)


def comparable(value, top=True):
    """Give what two servers must agree on."""
    if isinstance(value, dict):
        kept = {key: comparable(each, top=False) for key, each in value.items() if key not in VOLATILE}
        if kept.get("kind", "").endswith("List"):
            kept["items"] = [
                {k: v for k, v in each.items() if k not in ("kind", "apiVersion")} for each in kept["items"]
            ]
        return {key: each for key, each in kept.items() if key != "deletionGracePeriodSeconds" or each}
    if isinstance(value, list):
        return [comparable(each, top=False) for each in value]
    if isinstance(value, str):
        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID", value)
    return value


def refused(body):
    return isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure"


@pytest.mark.kube
def test_both_servers_answer_the_same_requests_alike(up_server, definitions):
    namespace = "both"
    for server in (up_server, definitions):
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    problems = []
    for method, path, body, content_type in REQUESTS:
        where = path.replace("NS", namespace)
        sent = None if body is None else json.loads(json.dumps(body).replace("NS", namespace))
        options = {"content_type": content_type} if content_type else {}
        ours = up_server.answer(method, where, sent, **options)
        theirs = definitions.answer(method, where, sent, **options)
        left, right = comparable(ours.body), comparable(theirs.body)
        if refused(left) and refused(right):
            fields = ["code", "reason"]
            if not any(text in left["message"] for text in OTHER_WORDS):
                fields.append("message")
            left, right = ({field: each.get(field) for field in fields} for each in (left, right))
        if (ours.status, left) != (theirs.status, right):
            problems.append(
                f"{method} {where} {json.dumps(sent)[:80]}\n  ours   {ours.status} {left}\n  theirs {theirs.status} {right}"
            )
    assert not problems, "\n".join(problems)


GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/NS/podgroups"


@pytest.mark.parametrize(
    ("path", "kind"), [(MAPS, ("v1", "ConfigMap")), (GROUPS, ("scheduling.volcano.sh/v1beta1", "PodGroup"))]
)
@pytest.mark.parametrize("content_type", [None, MERGE, JSON_PATCH])
def test_metadata_that_holds_nothing_is_left_out(server, path, kind, content_type):
    path = path.replace("NS", server.new_namespace())
    empty = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    metadata = {"name": "a", **(empty if content_type is None else {})}
    made = server.call("POST", path, {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata})
    if content_type is not None:
        patch = {"metadata": empty}
        if content_type == JSON_PATCH:
            patch = [{"op": "add", "path": f"/metadata/{name}", "value": value} for name, value in empty.items()]
        made = server.call("PATCH", f"{path}/a", patch, content_type=content_type)
    assert empty.keys() & made["metadata"].keys() == set()


def test_the_last_owner_taken_away_by_a_strategic_patch_leaves_no_list(server):
    path = f"/api/v1/namespaces/{server.new_namespace()}/configmaps"
    owner = server.call("POST", path, {"metadata": {"name": "owner"}})["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    server.call("POST", path, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    patch = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner["uid"]}]}}
    changed = server.call("PATCH", f"{path}/owned", patch, content_type=STRATEGIC)
    assert "ownerReferences" not in changed["metadata"]


def test_times_of_objects_are_whole_seconds(server):
    namespace = server.new_namespace()
    path = PODS.replace("NS", namespace)
    pod = copy.deepcopy(POD)
    pod["metadata"]["finalizers"] = ["example.com/held"]
    server.call("POST", path, pod)
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"},
    }
    server.call("POST", f"{path}/p/binding", binding)
    server.call("DELETE", f"{path}/p")
    found = server.call("GET", f"{path}/p")
    [scheduled] = [each for each in found["status"]["conditions"] if each["type"] == "PodScheduled"]
    times = [found["metadata"]["creationTimestamp"], found["metadata"]["deletionTimestamp"], scheduled["lastTransitionTime"]]  # fmt: skip
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", each) for each in times), times
    server.call("PATCH", f"{path}/p", {"metadata": {"finalizers": None}}, content_type=MERGE)
    server.call("DELETE", f"{path}/p?gracePeriodSeconds=0")
