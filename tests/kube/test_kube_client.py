"""What the client sends for each verb, and how it uses its connections."""

from __future__ import annotations

import asyncio
import json

import pytest
from scripted import HANG, ScriptedServer, client, reply

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client, path


@pytest.mark.parametrize(
    ("kind", "rest", "expected"),
    [
        (kinds.POD, (), "/api/v1/pods"),
        (kinds.POD, ("a",), "/api/v1/namespaces/a/pods"),
        (kinds.POD, ("a", "p"), "/api/v1/namespaces/a/pods/p"),
        (kinds.POD, ("a", "p", "status"), "/api/v1/namespaces/a/pods/p/status"),
        (kinds.NODE, ("", "n1"), "/api/v1/nodes/n1"),
        (kinds.NODE, ("ignored", "n1"), "/api/v1/nodes/n1"),
        (kinds.POD_GROUP, ("a", "g"), "/apis/scheduling.volcano.sh/v1beta1/namespaces/a/podgroups/g"),
        (kinds.QUEUE, ("", "q", "status"), "/apis/scheduling.volcano.sh/v1beta1/queues/q/status"),
        (kinds.PRIORITY_CLASS, ("", "system:x"), "/apis/scheduling.k8s.io/v1/priorityclasses/system%3Ax"),
        (kinds.POD, ("a/b", "../p"), "/api/v1/namespaces/a%2Fb/pods/..%2Fp"),
    ],
)
def test_path_of_a_kind(kind, rest, expected):
    assert path(kind, *rest) == expected


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_cannot_climb_the_path(name):
    with pytest.raises(ValueError, match="not a name"):
        path(kinds.POD, "a", name)


VERBS = {
    "get": (lambda api: api.get(kinds.POD, "a", "p"), "GET", "/api/v1/namespaces/a/pods/p", None, None),
    "list": (
        lambda api: api.list_page(kinds.POD, query={"limit": 500, "fieldSelector": "spec.nodeName!=,a=b c"}),
        "GET",
        "/api/v1/pods?limit=500&fieldSelector=spec.nodeName%21%3D%2Ca%3Db%20c",
        None,
        None,
    ),
    "create": (
        lambda api: api.create(kinds.POD, {"metadata": {"namespace": "a", "name": "p"}}),
        "POST",
        "/api/v1/namespaces/a/pods",
        "application/json",
        {"metadata": {"namespace": "a", "name": "p"}},
    ),
    "create-cluster": (
        lambda api: api.create(kinds.QUEUE, {"metadata": {"name": "q"}}),
        "POST",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        "application/json",
        {"metadata": {"name": "q"}},
    ),
    "replace": (
        lambda api: api.replace(kinds.LEASE, {"metadata": {"namespace": "a", "name": "l", "resourceVersion": "5"}}),
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
        "application/json",
        {"metadata": {"namespace": "a", "name": "l", "resourceVersion": "5"}},
    ),
    "patch": (
        lambda api: api.patch(kinds.POD_GROUP, "a", "g", {"status": {"phase": "Running"}}),
        "PATCH",
        "/apis/scheduling.volcano.sh/v1beta1/namespaces/a/podgroups/g",
        "application/merge-patch+json",
        {"status": {"phase": "Running"}},
    ),
    "patch-strategic": (
        lambda api: api.patch(kinds.POD, "a", "p", {"status": {}}, subresource="status", strategic=True),
        "PATCH",
        "/api/v1/namespaces/a/pods/p/status",
        "application/strategic-merge-patch+json",
        {"status": {}},
    ),
    "delete": (
        lambda api: api.delete(kinds.POD, "a", "p", uid="u", grace_seconds=0),
        "DELETE",
        "/api/v1/namespaces/a/pods/p",
        "application/json",
        {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}, "gracePeriodSeconds": 0},
    ),
    "delete-plain": (
        lambda api: api.delete(kinds.NODE, "", "n"),
        "DELETE",
        "/api/v1/nodes/n",
        "application/json",
        {"apiVersion": "v1", "kind": "DeleteOptions"},
    ),
    "bind": (
        lambda api: api.bind("a", "p", "u", "n1", {"k": "v"}),
        "POST",
        "/api/v1/namespaces/a/pods/p/binding",
        "application/json",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p", "namespace": "a", "uid": "u", "annotations": {"k": "v"}},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        },
    ),
    "evict": (
        lambda api: api.evict("a", "p", uid="u", grace_seconds=7),
        "POST",
        "/api/v1/namespaces/a/pods/p/eviction",
        "application/json",
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "p", "namespace": "a"},
            "deleteOptions": {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u"},
                "gracePeriodSeconds": 7,
            },
        },
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_sends_its_request(verb):
    send, method, where, content_type, body = VERBS[verb]

    async def run():
        async with ScriptedServer([reply(200, {"ok": 1})]).running() as server, client(server) as api:
            await send(api)
            return server.asked

    (asked,) = asyncio.run(run())
    assert (asked.method, asked.path, asked.headers.get("content-type")) == (method, where, content_type)
    assert (json.loads(asked.body) if asked.body else None) == body
    assert asked.headers["user-agent"].startswith("pumice/")
    assert asked.headers["accept"] == "application/json"
    assert asked.headers["accept-encoding"] == "identity"


def test_a_server_below_a_path_keeps_its_prefix():
    async def run():
        async with ScriptedServer([reply(200)]).running() as server:
            async with Client(Connection(f"{server.url}/k8s/clusters/c-1/")) as api:
                await api.get(kinds.NODE, "", "n")
            return server.asked[0].path

    assert asyncio.run(run()) == "/k8s/clusters/c-1/api/v1/nodes/n"


def test_connections_are_kept_and_not_more_than_the_limit_are_open():
    async def run():
        async with ScriptedServer([reply(201)]).running() as server, client(server, concurrency=4) as api:
            await asyncio.gather(*(api.bind("a", f"p{n}", "u", "n", {}) for n in range(60)))
            await asyncio.gather(*(api.bind("a", f"q{n}", "u", "n", {}) for n in range(60)))
            return server.connections, len(server.asked)

    connections, asked = asyncio.run(run())
    assert (connections, asked) == (4, 120)


def test_a_cancelled_request_frees_its_place():
    async def run():
        async with ScriptedServer([HANG, reply(201)]).running() as server, client(server, concurrency=1) as api:
            task = asyncio.create_task(api.bind("a", "p", "u", "n", {}))
            await server.arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await api.bind("a", "q", "u", "n", {})

    asyncio.run(run())


def test_the_rate_counts_every_attempt():
    async def run():
        async with ScriptedServer([reply(201)]).running() as server, client(server, qps=100, burst=1) as api:
            loop = asyncio.get_running_loop()
            start = loop.time()
            await asyncio.gather(*(api.bind("a", "p", "u", "n", {}) for _ in range(11)))
            return loop.time() - start

    assert asyncio.run(run()) >= 0.099


def test_a_client_outside_its_block_says_so():
    api = Client(Connection("http://127.0.0.1:1"))
    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(api.get(kinds.NODE, "", "n"))


def test_every_error_has_a_failure_for_its_effect():
    for kind in (errors.ConfigurationError, errors.CredentialsError, errors.UnreachableError, errors.SilenceError):
        assert kind("text").failure.message == "text"
