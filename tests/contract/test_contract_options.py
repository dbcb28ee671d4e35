"""What a request may not ask for, and how it is told: options of lists and watches, names that are not those of the path, types of bodies, owners that are handed over."""

from __future__ import annotations

import pytest

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def maps(namespace, name=""):
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


@pytest.fixture
def home(server):
    namespace = server.new_namespace()
    server.call("POST", maps(namespace), {"metadata": {"name": "m", "labels": {"a": "b"}}, "data": {"k": "v"}})
    return namespace


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("resourceVersionMatch=Exact", 422, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422, 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        ("resourceVersionMatch=Foo&resourceVersion=1", 422, 'resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""'),
        ("sendInitialEvents=true", 422, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
        ("watch=1&sendInitialEvents=true&timeoutSeconds=1", 422, "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        ("watch=1&resourceVersionMatch=NotOlderThan&timeoutSeconds=1", 422, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
        ("watch=1&timeoutSeconds=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("timeoutSeconds=1.5", 400, 'strconv.ParseInt: parsing "1.5": invalid syntax'),
    ],
)  # fmt: skip
def test_an_option_of_a_list_that_makes_no_sense_is_named(server, home, query, code, words):
    found = server.answer("GET", f"{maps(home)}?{query}")
    assert (found.status, found.body["message"].removeprefix('ListOptions.meta.k8s.io "" is invalid: ')) == (
        code,
        words,
    )


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (("PATCH", {"metadata": {"name": "z"}}, MERGE), "the name of the object (z) does not match the name on the URL (m)"),
        (("PATCH", {"metadata": {"name": "z"}}, STRATEGIC), "the name of the object (z) does not match the name on the URL (m)"),
        (("PATCH", [{"op": "replace", "path": "/metadata/name", "value": "z"}], JSON_PATCH), "the name of the object (z) does not match the name on the URL (m)"),
        (("PATCH", {"metadata": {"namespace": "z"}}, MERGE), "the namespace of the provided object does not match the namespace sent on the request"),
        (("PUT", {"data": {}}, "application/json"), "the name of the object (m based on URL) was undeterminable: name must be provided"),
        (("PUT", {"metadata": {"name": "z"}}, "application/json"), "the name of the object (z) does not match the name on the URL (m)"),
    ],
)  # fmt: skip
def test_an_object_keeps_the_name_of_its_path(server, home, request_, words):
    method, body, media = request_
    found = server.answer(method, maps(home, "m"), body, content_type=media)
    assert (found.status, found.body["message"]) == (400, words)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ({"op": "replace", "path": "/data/new", "value": "v"}, 200),
        ({"op": "replace", "path": "/metadata/finalizers", "value": ["x.example/y"]}, 200),
        ({"op": "replace", "path": "/binaryData/new", "value": "dg=="}, 422),
        ({"op": "replace", "path": "/metadata/managedFields/9", "value": {}}, 422),
        ({"op": "remove", "path": "/data/new"}, 422),
        ({"op": "add", "path": "/data/new", "value": "v"}, 200),
    ],
)
def test_a_patch_may_replace_a_field_that_is_not_there_and_nothing_else(server, home, operation, code):
    path = f"{maps(home, 'm')}?dryRun=All"
    assert server.answer("PATCH", path, [operation], content_type=JSON_PATCH).status == code


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/xml"])
def test_a_body_of_an_unknown_type_is_refused(server, home, media):
    found = server.answer("POST", maps(home), {"metadata": {"name": "x"}}, content_type=media)
    assert found.status == 415
    assert "accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf" in found.body["message"]  # fmt: skip


def test_a_writer_may_hand_over_what_is_owned(server, home):
    before = server.call("GET", maps(home, "m"))["metadata"]["managedFields"]
    after = [{**entry, "manager": "heir", "operation": "Apply"} for entry in before]
    patch = [{"op": "replace", "path": "/metadata/managedFields", "value": after}]
    found = server.call("PATCH", maps(home, "m"), patch, content_type=JSON_PATCH)
    assert [(each["manager"], each["operation"]) for each in found["metadata"]["managedFields"]] == [("heir", "Apply")]


def test_owners_are_listed_as_they_came_and_those_who_apply_first(server, home):
    for manager, key in (("zoe", "z"), ("adam", "a"), ("mia", "m")):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {key: "1"}}
        path = f"{maps(home, 'm')}?fieldManager={manager}"
        server.call("PATCH", path, body, content_type="application/apply-patch+yaml")
    found = server.call("GET", maps(home, "m"))["metadata"]["managedFields"]
    assert [each["operation"] for each in found] == ["Apply", "Apply", "Apply", "Update"]
    assert found[:3] == sorted(found[:3], key=lambda each: (each["time"], each["manager"]))
