"""What any API server must do: lists in pages, watches, tables, discovery, custom resources. Each test runs against that of `pumice up` and a real one."""

from __future__ import annotations

import json
import ssl
import urllib.parse
import urllib.request

import pytest

from testbed import calling, waiting

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MERGE = "application/merge-patch+json"


def answer(server, method, path, body=None, **options):
    return server.answer(method, path, body, **options)


def maps(namespace, name=""):
    return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")


def config_map(name, **labels):
    return {"metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


def watched(server, path, **query):
    """Give the events of a watch that ends after a second."""
    query = {"watch": "true", "timeoutSeconds": "1", **query}
    url = f"{server.url}{path}?{urllib.parse.urlencode(query)}"
    pki = server.ca_file
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {server.token}"})  # noqa: S310  a server of our own
    context = ssl.create_default_context(cafile=str(pki))
    with urllib.request.urlopen(request, context=context, timeout=waiting.PATIENCE) as stream:  # noqa: S310  a server of our own
        return [json.loads(line) for line in stream]


def told(events):
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_pages_of_a_list_are_of_one_moment(server):
    namespace = server.new_namespace()
    for index in range(5):
        server.call("POST", maps(namespace), config_map(f"m{index}"))
    first = server.call("GET", f"{maps(namespace)}?limit=2&labelSelector=x!%3Dy")
    server.call("DELETE", maps(namespace, "m3"))
    server.call("POST", maps(namespace), config_map("m2a"))
    names, page = [], first
    while True:
        names += [each["metadata"]["name"] for each in page["items"]]
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        token = page["metadata"].get("continue")
        if not token:
            break
        page = server.call(
            "GET", f"{maps(namespace)}?limit=2&labelSelector=x!%3Dy&continue={urllib.parse.quote(token)}"
        )
    assert [name for name in names if name.startswith("m")] == ["m0", "m1", "m2", "m3", "m4"]


def test_a_watch_tells_what_happened_after_its_version(server):
    namespace = server.new_namespace()
    version = server.call("POST", maps(namespace), config_map("a"))["metadata"]["resourceVersion"]
    server.call("POST", maps(namespace), config_map("b"))
    server.call("PATCH", maps(namespace, "a"), {"data": {"a": "2"}}, content_type=MERGE)
    server.call("DELETE", maps(namespace, "b"))
    events = watched(server, maps(namespace), resourceVersion=version)
    assert told(events) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert events[1]["object"]["data"] == {"a": "2"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(version)


def test_an_object_enters_and_leaves_a_selection_by_a_change(server):
    namespace = server.new_namespace()
    version = server.call("POST", maps(namespace), config_map("a", x="no"))["metadata"]["resourceVersion"]
    for value in ("yes", "no", "yes"):
        server.call("PATCH", maps(namespace, "a"), {"metadata": {"labels": {"x": value}}}, content_type=MERGE)
    events = watched(server, maps(namespace), resourceVersion=version, labelSelector="x=yes")
    assert told(events) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


def test_a_watch_without_a_version_begins_with_what_is_there(server):
    namespace = server.new_namespace()
    server.call("POST", maps(namespace), config_map("a"))
    assert ("ADDED", "a") in told(watched(server, maps(namespace)))


@pytest.mark.parametrize("word", ["1", "t", "True", "TRUE"])
def test_a_truth_of_a_query_is_what_go_takes_for_one(server, word):
    namespace = server.new_namespace()
    server.call("POST", maps(namespace), config_map("a"))
    assert ("ADDED", "a") in told(watched(server, maps(namespace), watch=word))


def test_a_streamed_list_ends_with_a_bookmark_that_says_so(server):
    namespace = server.new_namespace()
    for name in ("a", "b"):
        server.call("POST", maps(namespace), config_map(name, x="y"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "labelSelector": "x=y",
    }
    events = watched(server, maps(namespace), **query)
    assert told(events)[:2] == [("ADDED", "a"), ("ADDED", "b")]
    assert events[2]["type"] == "BOOKMARK"
    assert events[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_table_of_a_watch_has_a_row_for_each_event(server):
    namespace = server.new_namespace()
    server.call("POST", maps(namespace), config_map("a"))
    table = answer(server, "GET", f"{maps(namespace)}/a", accept=TABLE).body
    assert table["kind"] == "Table"
    assert table["rows"][0]["cells"][:2] == ["a", 1]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_metadata_alone_is_given_to_those_who_ask_for_it(server):
    namespace = server.new_namespace()
    server.call("POST", maps(namespace), config_map("a"))
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    listed = answer(server, "GET", maps(namespace), accept=accept).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert all("data" not in each for each in listed["items"])


def test_nobody_is_anonymous(server):
    pki = server.ca_file
    caller = calling.Caller(int(server.url.rpartition(":")[2]), "nonsense", pki)
    refused = caller.answer("GET", "/api/v1/pods")
    assert (refused.status, refused.body["reason"], refused.body["message"]) == (401, "Unauthorized", "Unauthorized")


def test_a_finalizer_keeps_an_object_until_it_is_taken_off(server):
    namespace = server.new_namespace()
    manifest = config_map("a")
    manifest["metadata"]["finalizers"] = ["example.com/wait"]
    server.call("POST", maps(namespace), manifest)
    going = server.call("DELETE", maps(namespace, "a"))
    assert going["metadata"]["deletionTimestamp"]
    server.call("PATCH", maps(namespace, "a"), {"metadata": {"finalizers": None}}, content_type=MERGE)
    assert answer(server, "GET", maps(namespace, "a")).status == 404


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_a_propagation_policy_is_left_for_the_garbage_collector_as_a_finalizer(server, policy, finalizer):
    namespace = server.new_namespace()
    server.call("POST", maps(namespace), config_map("a"))
    going = server.call("DELETE", maps(namespace, "a"), {"propagationPolicy": policy})
    assert going["metadata"]["finalizers"] == [finalizer]
    server.call("PATCH", maps(namespace, "a"), {"metadata": {"finalizers": None}}, content_type=MERGE)


def test_an_event_is_one_object_in_both_its_groups(server):
    namespace = server.new_namespace()
    about = {"kind": "Pod", "namespace": namespace, "name": "p", "apiVersion": "v1"}
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    body = {
        "metadata": {"name": "e"},
        "regarding": about,
        "reason": "R",
        "note": "n",
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "A",
        "reportingController": "c.example/x",
        "reportingInstance": "i",
    }
    server.call("POST", path, body)
    older = server.call("GET", f"/api/v1/namespaces/{namespace}/events/e")
    assert (older["message"], older["involvedObject"]["name"], older["reportingComponent"]) == ("n", "p", "c.example/x")


# ---- both at once


@pytest.mark.kube
def test_discovery_tells_of_each_served_kind_what_a_real_server_tells(up_server, gated_api_server):
    for path in ("/api", "/apis"):
        ours, theirs = (
            resources(answer(each, "GET", path, accept=AGGREGATED).body) for each in (up_server, gated_api_server)
        )
        for key, resource in ours.items():
            known = dict(theirs.get(key) or {})
            if key[0].endswith(("volcano.sh", "example.com")):
                continue  # definitions, of other tests too
            doors = {each["subresource"] for each in resource.get("subresources", ())}
            known["subresources"] = [each for each in known.get("subresources", ()) if each["subresource"] in doors]
            if not doors:
                known.pop("subresources")
            assert resource == known, key


def resources(document):
    return {
        (group["metadata"].get("name", ""), version["version"], each["resource"]): each
        for group in document["items"]
        for version in group["versions"]
        for each in version["resources"]
    }


@pytest.mark.kube
def test_tables_have_the_columns_that_a_real_server_gives_them(up_server, gated_api_server):
    for path in ("/api", "/apis"):
        listed = resources(answer(up_server, "GET", path, accept=AGGREGATED).body)
        for (group, version, plural), resource in listed.items():
            if "list" not in resource["verbs"] or group.endswith((".volcano.sh", "example.com")):
                continue
            where = f"/apis/{group}/{version}/{plural}" if group else f"/api/{version}/{plural}"
            tables = [
                answer(each, "GET", where, accept=TABLE).body["columnDefinitions"]
                for each in (up_server, gated_api_server)
            ]
            ours, theirs = ([(c["name"], c["type"], c["format"], c["priority"]) for c in columns] for columns in tables)
            assert ours == theirs, where


ONCE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "x"}]}}
ROWS = [
    ("/api/v1/namespaces/NS/endpoints", {"subsets": [{"addresses": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}], "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}]}),
    ("/api/v1/namespaces/NS/endpoints", {"subsets": [{"addresses": [{"ip": "1.2.3.4"}]}]}),
    ("/apis/batch/v1/namespaces/NS/cronjobs", {"spec": {"suspend": True, "schedule": "0 0 1 1 *", "timeZone": "Europe/Berlin", "jobTemplate": {"spec": {"template": ONCE}}}}),
    ("/apis/batch/v1/namespaces/NS/cronjobs", {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": ONCE}}}}),
    ("/apis/policy/v1/namespaces/NS/poddisruptionbudgets", {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 7, "preemptionPolicy": "Never"}),
    ("/apis/coordination.k8s.io/v1/namespaces/NS/leases", {"spec": {"holderIdentity": "me"}}),
    ("/api/v1/namespaces/NS/configmaps", {"data": {"a": "b"}, "binaryData": {"c": "AA=="}}),
]  # fmt: skip


@pytest.mark.kube
@pytest.mark.parametrize(("where", "stated"), ROWS)
def test_rows_have_the_cells_that_a_real_server_gives_them(up_server, definitions, where, stated):
    rows = []
    for server in (up_server, definitions):
        path = where.replace("NS", server.new_namespace())
        name = server.call("POST", path, {**stated, "metadata": {"generateName": "row-"}})["metadata"]["name"]
        [row] = answer(server, "GET", f"{path}/{name}", accept=TABLE).body["rows"]
        rows.append([cell for cell in row["cells"] if cell not in (name, "0s", "1s")])
    assert rows[0] == rows[1]


# ---- custom resources

GADGET = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"]},
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["color"],
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                                    "color": {"type": "string", "enum": ["red", "blue"]},
                                    "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "parts": {
                                        "type": "array",
                                        "maxItems": 2,
                                        "items": {
                                            "type": "object",
                                            "properties": {"name": {"type": "string"}},
                                            "required": ["name"],
                                        },
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                    },
                                },
                                "x-kubernetes-validations": [
                                    {"rule": "self.color != 'red' || self.size < 5", "message": "red ones are small"}
                                ],
                            },
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
            for version in ("v1", "v1beta1")
        ],
    },
}
SPECS = [
    {"color": "red"},
    {"color": "blue", "size": 9, "free": {"a": {"b": 1}}, "unknown": 1},
    {},
    {"color": "green"},
    {"color": "red", "size": 7},
    {"color": "red", "size": 0},
    {"color": "red", "size": "x"},
    {"color": "red", "code": "A1"},
    {"color": "red", "code": "abcdef"},
    {"color": "red", "parts": [{"name": "a"}, {"name": "a"}]},
    {"color": "red", "parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
    {"color": "red", "parts": [{"nam": "a"}]},
]


@pytest.fixture(scope="module")
def gadgets(request):
    """Both servers, with one more kind."""
    servers = [request.getfixturevalue(name) for name in ("up_server", "definitions")]
    for server in servers:
        server.kubectl("apply", "-f", "-", input=json.dumps(GADGET))
        server.kubectl("wait", "--for=condition=Established", "--timeout=240s", "crd/gadgets.example.com")
    yield servers
    for server in servers:
        server.kubectl("delete", "crd", "gadgets.example.com")


@pytest.mark.kube
def test_custom_objects_are_pruned_defaulted_and_refused_alike(gadgets):
    namespaces = [each.new_namespace() for each in gadgets]
    for number, spec in enumerate(SPECS):
        body = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": f"g{number}"}, "spec": spec}
        answers = [
            each.answer("POST", f"/apis/example.com/v1/namespaces/{namespace}/gadgets", body)
            for each, namespace in zip(gadgets, namespaces, strict=True)
        ]
        ours, theirs = answers
        assert ours.status == theirs.status, (spec, ours.body, theirs.body)
        if ours.status == 201:
            assert ours.body["spec"] == theirs.body["spec"]
        else:
            assert fields(ours.body) == fields(theirs.body), (spec, ours.body["message"], theirs.body["message"])


def fields(status):
    return sorted({cause["field"].lstrip(".") for cause in status["details"]["causes"]})


@pytest.mark.kube
def test_one_object_is_read_and_written_in_every_version(gadgets):
    for server in gadgets:
        namespace = server.new_namespace()
        path = f"/apis/example.com/VERSION/namespaces/{namespace}/gadgets"
        body = {"metadata": {"name": "g"}, "spec": {"color": "blue"}, "status": {"size": 5}}
        body |= {"apiVersion": "example.com/v1beta1", "kind": "Gadget"}
        made = server.call("POST", path.replace("VERSION", "v1beta1"), body)
        assert "status" not in made
        found = server.call("GET", path.replace("VERSION", "v1") + "/g")
        assert found["apiVersion"] == "example.com/v1"
        server.call(
            "PATCH",
            path.replace("VERSION", "v1") + "/g/status",
            {"status": {"size": 2}, "spec": {"size": 9}},
            content_type=MERGE,
        )
        scale = server.call("GET", path.replace("VERSION", "v1beta1") + "/g/scale")
        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 2)


CONTRADICTIONS = [
    ({"type": "object", "properties": {"spec": {}}}, "type"),
    ({"type": "array"}, "type"),
    ({"type": "object", "properties": {"spec": {"type": "string", "default": 5}}}, "default"),
    ({"type": "object", "properties": {"spec": {"type": "array"}}}, "items"),
    ({"type": "object", "properties": {"spec": {"type": "string", "pattern": "("}}}, "pattern"),
    (
        {
            "type": "object",
            "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "self.x +"}]}},
        },
        "rule",
    ),
]


@pytest.mark.kube
@pytest.mark.parametrize(("schema", "field"), CONTRADICTIONS)
def test_a_definition_that_contradicts_itself_is_refused_with_the_field(server, schema, field):
    definition = json.loads(json.dumps(GADGET).replace("gadget", "widget").replace("Gadget", "Widget"))
    definition["spec"]["versions"] = [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    ]
    refused = answer(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert refused.status == 422, refused.body
    assert any(field in cause["field"] for cause in refused.body["details"]["causes"]), refused.body["message"]
