"""Bad input to the API server of `pumice up`: an answer that names what is wrong, bounded memory, and nobody else disturbed."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import ssl

import pytest
from running_cluster import RunningCluster

from testbed import rude, waiting
from testbed.waiting import until

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RunningCluster(tmp_path_factory.mktemp("bad"), "--nodes", "1", "--scheduler", "none") as running:
        yield running


@pytest.fixture(autouse=True)
def _nobody_else_is_disturbed(server):
    yield
    assert server.caller.answer("GET", "/readyz", timeout=waiting.PATIENCE).status == 200


def memory(server):
    with open(f"/proc/{server.process.pid}/status") as file:  # noqa: PTH123
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) // 1024


def connection(server, timeout=waiting.PATIENCE):
    caller = server.caller
    return http.client.HTTPSConnection("127.0.0.1", caller.port, timeout=timeout, context=caller.context)


def headers(server, **more):
    return {"Authorization": f"Bearer {server.caller.token}", "Content-Type": "application/json", **more}


def raw(server, method, path, body, **more):
    connected = connection(server)
    try:
        connected.request(method, path, body=body, headers=headers(server, **more))
        answer = connected.getresponse()
        data = answer.read()
    finally:
        connected.close()
    try:
        return answer.status, json.loads(data)
    except ValueError:
        return answer.status, data.decode()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1,2",
        b'{"a":}',
        b"\xff\xfe\x00",
        b"nonsense",
        b"[" * 100_000,
        b'{"metadata":' * 5000,
        b'"text"',
        b"5",
        b"[]",
        b"null",
    ],
    ids=lambda body: body[:12].hex(),
)
@pytest.mark.parametrize("path", [PODS, MAPS])
def test_a_body_that_is_no_object_is_a_bad_request(server, path, body):
    status, answer = raw(server, "POST", path, body)
    assert (status, answer["kind"], answer["reason"]) == (400, "Status", "BadRequest")


LAUGHS = b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 8)
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[" * 100_000, "nested deeper than 100 levels"),
        (b"{a: " * 100_000, "nested deeper than 200 levels"),
        (b"a: " + b"{b: " * 100_000, "nested deeper than 100 levels"),
        (LAUGHS, "aliases stand for more than 100000 values"),
        (b"- \n" * 1_000_000, "more than 200000 values"),
        (b"%TAG !a! tag:x\n" * 100_000, "at most 100 directives are read"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
    ids=["lists", "flow maps", "maps", "laughs", "values", "directives", "bytes"],
)
@pytest.mark.parametrize("request_", [("POST", MAPS, "application/yaml"), ("PATCH", f"{MAPS}/a?fieldManager=me", "application/apply-patch+yaml")], ids=["create", "apply"])  # fmt: skip
def test_yaml_that_would_end_or_stall_a_server_is_a_bad_request(server, request_, body, said):
    method, path, media = request_
    status, answer = raw(server, method, path, body, **{"Content-Type": media})
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert said in answer["message"]


def test_bodies_that_do_not_come_to_an_end_hold_up_nobody(server):
    """Fifty clients have sent one byte of a body each, and nobody waits for them."""
    slow = []
    for _ in range(50):
        connected = connection(server)
        connected.putrequest("POST", MAPS)
        for name, value in headers(server, **{"Content-Length": "1000"}).items():
            connected.putheader(name, value)
        connected.endheaders()
        connected.send(b"{")
        slow.append(connected)
    status, _ = raw(server, "POST", MAPS, b'{"metadata":{"generateName":"quick-"}}')
    for connected in slow:
        connected.close()
    assert status == 201


def test_a_body_of_a_hundred_megabytes_is_refused_without_being_read(server):
    before = memory(server)
    connected = connection(server)
    connected.putrequest("POST", PODS)
    for name, value in headers(server, **{"Content-Length": str(100 * 1024 * 1024)}).items():
        connected.putheader(name, value)
    connected.endheaders()
    answer = connected.getresponse()
    refused = json.loads(answer.read())
    connected.close()
    assert (answer.status, refused["reason"]) == (413, "RequestEntityTooLarge")
    assert memory(server) - before < 50


def test_a_body_without_an_end_is_cut_off(server):
    before = memory(server)
    connected = connection(server)
    connected.putrequest("POST", PODS)
    for name, value in headers(server, **{"Transfer-Encoding": "chunked"}).items():
        connected.putheader(name, value)
    connected.endheaders()
    piece = b"%x\r\n" % 65536 + b" " * 65536 + b"\r\n"
    try:
        for _ in range(200):
            connected.send(piece)
        status = connected.getresponse().status
    except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
        status = 413  # it hung up while we were still talking
    connected.close()
    assert status == 413
    assert memory(server) - before < 50


def test_what_is_no_request_or_ends_amid_itself_fills_no_log(server):
    before, caller = server.output.read_text(), server.caller
    head = f"POST {PODS} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {caller.token}\r\nContent-Type: application/json\r\n"

    def connect():
        made = socket.create_connection(("127.0.0.1", caller.port), waiting.PATIENCE)
        return caller.context.wrap_socket(made, server_hostname="127.0.0.1")

    rude.visit(connect, head.encode())
    assert caller.answer("GET", "/readyz", timeout=waiting.PATIENCE).status == 200
    assert server.output.read_text() == before


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "CONNECT", "FOO"])
def test_an_unknown_verb_is_refused(server, method):
    status, _ = raw(server, method, PODS, None)
    assert status in (400, 404, 405)


@pytest.mark.parametrize(
    "path",
    [
        f"{PODS}/..",
        f"{PODS}/../secrets",
        "/api/v1/namespaces/../pods",
        f"{PODS}/%2e%2e",
        f"{PODS}/a%2fb",
        f"{PODS}/.",
        f"{PODS}//x",
        "/api/v1/namespaces/default//pods",
        f"{PODS}/a%00b",
    ],
)
def test_a_path_that_means_another_one_is_refused(server, path):
    status, answer = raw(server, "GET", path, None)
    assert status in (400, 404), answer


def test_a_circle_of_owners_is_refused_with_the_field(server):
    caller = server.caller
    made = [caller.call("POST", MAPS, {"metadata": {"name": f"circle-{index}"}}) for index in range(3)]

    def owned(by):
        return {
            "metadata": {
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "name": by["metadata"]["name"],
                        "uid": by["metadata"]["uid"],
                    }
                ]
            }
        }

    caller.call("PATCH", f"{MAPS}/circle-1", owned(made[0]), content_type=MERGE)
    caller.call("PATCH", f"{MAPS}/circle-2", owned(made[1]), content_type=MERGE)
    for index, owner in ((0, made[2]), (1, made[1])):
        refused = caller.answer("PATCH", f"{MAPS}/circle-{index}", owned(owner), content_type=MERGE)
        assert refused.status == 422
        assert refused.body["details"]["causes"][0]["field"].startswith("metadata.ownerReferences")


@pytest.mark.parametrize(
    ("field", "bound"),
    [
        ({"type": "integer", "minimum": 5, "maximum": 1}, "minimum"),
        ({"type": "string", "minLength": 5, "maxLength": 1}, "minLength"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 5, "maxItems": 1}, "minItems"),
    ],
)
def test_a_schema_that_no_value_could_satisfy_is_refused_with_the_field(server, field, bound):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": field}}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nevers.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "nevers", "kind": "Never"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    refused = server.caller.answer("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert refused.status == 422
    [cause] = refused.body["details"]["causes"]
    assert cause["field"].endswith(f".properties[a].{bound}")
    assert "no value could be valid" in cause["message"]


def test_a_rule_that_is_not_evaluated_is_refused_by_name(server):
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "{'a': 1}.transformMap(k, v, v + 1)['a'] == 2"}],
            }
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    refused = server.caller.answer("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert refused.status == 422
    assert "transformMap" in refused.body["message"]
    assert "x-kubernetes-validations[0].rule" in refused.body["message"]


def test_a_watch_that_nobody_reads_costs_nobody_anything(server):
    caller = server.caller
    before = memory(server)
    idle = connection(server)
    idle.connect()
    idle.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    idle.request("GET", f"{MAPS}?watch=true", headers=headers(server))
    name = caller.call("POST", MAPS, {"metadata": {"generateName": "fat-"}, "data": {"a": "x" * 500_000}})["metadata"][
        "name"
    ]
    for index in range(60):
        caller.call("PATCH", f"{MAPS}/{name}", {"data": {"n": str(index)}}, content_type=MERGE)
    assert memory(server) - before < 100
    idle.close()


def test_a_thousand_idle_connections_keep_nobody_waiting(server):
    caller = server.caller
    sockets = []
    try:
        for _ in range(1000):
            made = socket.create_connection(("127.0.0.1", caller.port), timeout=waiting.PATIENCE)
            sockets.append(made)
        assert caller.answer("GET", PODS, timeout=waiting.PATIENCE).status == 200
    finally:
        for made in sockets:
            made.close()


def test_a_full_disk_refuses_writes_in_words_and_serves_reads(tmp_path):
    """The disk is a limit on the size of the database, which SQLite treats as it treats a full disk."""
    with RunningCluster(tmp_path, "--nodes", "1", "--scheduler", "none", "--data", str(tmp_path / "data")) as running:
        import resource

        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))
        caller = running.caller
        answers = []
        for index in range(80):
            answers.append(
                caller.answer("POST", MAPS, {"metadata": {"name": f"m{index}"}, "data": {"a": "x" * 100_000}})
            )
            if answers[-1].status != 201:
                break
        assert answers[-1].status == 500
        assert "cannot be kept" in answers[-1].body["message"]
        assert caller.answer("GET", f"{MAPS}/m0").status == 200
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: caller.answer("POST", MAPS, {"metadata": {"generateName": "again-"}}).status == 201)


def test_a_body_is_not_inflated(server):
    """A few bytes would become as much as anybody likes, while others wait."""
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deflated"}}).encode()
    status, answer = raw(server, "POST", MAPS, gzip.compress(body), **{"Content-Encoding": "gzip"})
    assert (status, answer["reason"]) == (400, "BadRequest")


def test_a_pod_that_sleeps_without_measure_ends_no_kubelet(server):
    """One whose words are bound to a node at once: nobody schedules here."""
    container = {"name": "c", "image": "x", "command": ["sleep", "9" * 5000]}
    spec = {"nodeName": "node-0", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "endless"}, "spec": spec}
    assert raw(server, "POST", PODS, json.dumps(pod))[0] == 201

    def runs():
        return raw(server, "GET", f"{PODS}/endless", None)[1]["status"].get("phase") == "Running"

    until(runs)
