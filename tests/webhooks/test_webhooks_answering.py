"""The webhook server: the verdicts of the rules over HTTPS, and an answer for whatever comes."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import socket
import ssl
import threading

import aiohttp
import pytest

from admission import admission_objects as objects
from pumice.admission import rules
from pumice.admission.requests import RuleSettings
from pumice.api import kinds
from pumice.apiserver.patching import json_patch
from pumice.kube.calls.open_sockets import OpenSockets
from pumice.server import serving
from pumice.server.admission import answering, certificates
from pumice.server.flags.addresses import Address
from pumice.server.logs import logs
from testbed import rude
from testbed.waiting import PATIENCE
from webhooks import webhooks_clock


class Served:
    """A server on loopback, asked by a client that believes its certificate alone."""

    def __init__(self, *, served=rules.RULES, around=None, settings=None, **more):
        self.stream = io.StringIO()
        self.log = logs.Log(4, stream=self.stream)
        self.answering = answering.Answering(
            served, around or objects.known(), settings or RuleSettings(), self.log, **more
        )
        self.bundle = certificates.make(["127.0.0.1"], webhooks_clock.now())
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificates.load(self.context, self.bundle)
        self.trusted = ssl.create_default_context(cadata=self.bundle.authorities.decode())

    async def __aenter__(self):
        self._listener = serving.Listener(self.answering.app())
        bound = await self._listener.start(Address("127.0.0.1", 0), self.context)
        self.url = f"https://{bound}"
        self.sockets = OpenSockets()
        self._session = aiohttp.ClientSession(connector=self.connector(self.trusted))
        return self

    def connector(self, context):
        return aiohttp.TCPConnector(ssl=context, socket_factory=self.sockets.make)

    async def __aexit__(self, *_):
        await self._session.close()
        await self.sockets.end()
        await self._listener.cleanup()

    async def post(self, path, body, content_type="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self._session.post(
            self.url + path, data=io.BytesIO(data), headers={"Content-Type": content_type}
        ) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if answer.content_type == "application/json" else text


def review(manifest, operation="CREATE", old=None, namespace="default"):
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": manifest["kind"]},
        "operation": operation,
        "name": manifest["metadata"]["name"],
        "namespace": namespace,
        "object": None if operation == "DELETE" else manifest,
        "oldObject": old,
        "userInfo": {"username": "somebody"},
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def ask(path, body, content_type="application/json", **more):
    async def main():
        async with Served(**more) as server:
            return (*await server.post(path, body, content_type), server.stream.getvalue())

    return asyncio.run(main())


MANIFESTS = [
    objects.job(),
    objects.job(minAvailable=9, plugins={"x": []}, queue="nope"),
    objects.queue(guarantee={"resource": {"cpu": 2}}),
    objects.pod_group(queue="nope"),
    objects.hyper_node({"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}),
    objects.job_flow(a=["b"], b=["a"]),
    objects.cron_job(schedule="x"),
]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_a_verdict_over_https_is_that_of_the_function(manifest):
    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
    path = f"/{kind.plural}/validate"
    request = review(manifest)
    found = rules.BY_PATH[path]
    wanted = objects.remarks.Remarks()
    found.judge(objects.written("CREATE", manifest), wanted, objects.known(), RuleSettings())

    status, answer, _ = ask(path, request)

    response = answer["response"]
    assert (status, response["uid"], response["allowed"]) == (200, "u-1", not wanted.refusals)
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    assert [(each["field"], each["message"]) for each in causes] == [
        (each.field, each.message) for each in wanted.refusals
    ]
    assert response.get("warnings", []) == [str(each) for each in wanted.warnings]


@pytest.mark.parametrize("manifest", [objects.job(queue="", minAvailable=0), objects.queue(), objects.pod_group()])
def test_a_patch_over_https_makes_what_the_function_makes(manifest):
    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
    path = f"/{kind.plural}/mutate"
    wanted = rules.BY_PATH[path].complete(objects.written("CREATE", manifest), objects.known(), RuleSettings())

    _, answer, _ = ask(path, review(manifest))

    response = answer["response"]
    assert response["allowed"]
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    assert ("patchType" in response) is bool(patch)
    assert json_patch.apply(manifest, patch) == wanted


def test_a_deletion_comes_without_an_object():
    old = objects.queue("default")
    _, answer, _ = ask("/queues/validate", review(old, "DELETE", old))

    assert answer["response"]["allowed"] is False
    assert "may not be deleted" in answer["response"]["status"]["message"]


@pytest.mark.parametrize(
    ("path", "namespace", "more"),
    [
        ("/jobs/validate", "kube-system", {"left_alone": frozenset({"kube-system"})}),
        ("/jobs/validate", "default", {"served": ()}),
        ("/jobs/validate", "default", {"aside": lambda path: path == "/jobs/validate"}),
        ("/hyperjobs/validate", "default", {}),
    ],
    ids=["a namespace that is left alone", "a path that is off", "a path that is Volcano's", "a path that is unknown"],
)
def test_what_is_nobodys_business_here_is_let_in(path, namespace, more):
    status, answer, _ = ask(path, review(objects.job(minAvailable=9), namespace=namespace), **more)

    assert (status, answer["response"]) == (200, {"uid": "u-1", "allowed": True})


def nested(depth):
    return (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":' + b"[" * depth + b"]" * depth + b"}"
    )


@pytest.mark.parametrize(
    ("body", "content_type", "status", "told"),
    [
        (b"{", "application/json", 400, "the body is no AdmissionReview"),
        (b"", "application/json", 400, "the body is no AdmissionReview"),
        (b"\xff", "application/json", 400, "the body is no AdmissionReview"),
        (nested(100_000), "application/json", 400, "the body is no AdmissionReview"),
        ({"apiVersion": "v1", "kind": "Pod", "request": {"uid": "", "operation": "CREATE"}}, "application/json", 400, "the body is v1 Pod"),
        ({**review(objects.job(), "CONNECT")}, "application/json", 400, "$.request.operation"),
        (b"x" * (answering.LARGEST_BODY + 1), "application/json", 413, "Maximum request body size 3145728 exceeded"),
        (b"a: b", "application/yaml", 415, "must be application/json"),
    ],
)  # fmt: skip
def test_what_is_no_review_is_refused_in_words(body, content_type, status, told):
    code, answer, _ = ask("/jobs/validate", body, content_type)

    assert (code, told in answer) == (status, True), answer


def test_a_very_large_object_keeps_nobody_else_waiting():
    """Its rule waits for the answer to a small one: were both judged by the loop, neither would ever come."""
    small_judged = threading.Event()

    def waiting(request, found, around, settings):
        if request.name == "large":
            assert small_judged.wait(PATIENCE)
        else:
            small_judged.set()

    rule = rules.Rule(path="/jobs/validate", kind=kinds.JOB, judge=waiting)
    large = objects.edited(objects.job(), ("metadata", "annotations"), {"text": "x" * (answering.LARGE + 1)})

    async def main():
        async with Served(served=(rule,)) as server:
            both = [objects.edited(large, ("metadata", "name"), "large"), objects.job()]
            return await asyncio.gather(*(server.post("/jobs/validate", review(each)) for each in both))

    assert [answer["response"]["allowed"] for _, answer in asyncio.run(main())] == [True, True]


def test_nothing_is_said_before_the_queues_are_known():
    status, answer, _ = ask("/jobs/validate", review(objects.job()), waits=lambda: "not listed yet: queues")

    assert (status, answer) == (503, "no verdict yet: not listed yet: queues")


def test_a_rule_that_breaks_down_is_left_to_the_failure_policy_and_the_next_object_is_judged():
    def breaking(request, found, around, settings):
        raise KeyError("secret text")

    broken = rules.Rule(path="/jobs/validate", kind=kinds.JOB, judge=breaking)

    async def main():
        async with Served(served=(broken, rules.BY_PATH["/queues/validate"])) as server:
            first = await server.post("/jobs/validate", review(objects.job()))
            second = await server.post("/queues/validate", review(objects.queue()))
            return first, second, server.stream.getvalue()

    first, second, log = asyncio.run(main())

    assert first == (500, "the rules of /jobs/validate broke down; the log of pumice admission tells where")
    assert second[1]["response"]["allowed"]
    assert "a rule broke down" in log
    assert "path=/jobs/validate" in log


def test_refusals_are_logged_with_object_and_fields():
    _, _, log = ask("/jobs/validate", review(objects.job(minAvailable=9)))

    assert (
        'msg=refused path=/jobs/validate operation=CREATE object=default/train problem="spec.minAvailable: is 9' in log
    )


def test_a_new_certificate_is_shown_to_whoever_connects_next_without_a_restart():
    async def main():
        async with Served() as server:
            await server.post("/jobs/validate", review(objects.job()))
            second = certificates.make(["127.0.0.1"], webhooks_clock.now(), server.bundle.authorities)
            certificates.load(server.context, second)
            both = ssl.create_default_context(cadata=second.authorities.decode())
            alone = ssl.create_default_context(cadata=server.bundle.authorities.decode())
            seen = []
            for context in (both, alone):
                async with aiohttp.ClientSession(connector=server.connector(context)) as session:
                    try:
                        async with session.post(f"{server.url}/jobs/validate", json=review(objects.job())) as answer:
                            seen.append(answer.status)
                    except aiohttp.ClientConnectorCertificateError:
                        seen.append("not believed")
            return seen, (await server.post("/jobs/validate", review(objects.job())))[0]

    assert asyncio.run(main()) == ([200, "not believed"], 200)


def test_what_is_no_request_or_ends_amid_itself_fills_no_log():
    async def main():
        async with Served() as server:
            logs.adopt_libraries(server.log)

            def connect():
                host, port = server.url.removeprefix("https://").rsplit(":", 1)
                made = socket.create_connection((host, int(port)), PATIENCE)
                return server.trusted.wrap_socket(made, server_hostname="127.0.0.1")

            head = b"POST /jobs/validate HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
            await asyncio.to_thread(rude.visit, connect, head)
            status, _ = await server.post("/jobs/validate", review(objects.job()))
            return status, server.stream.getvalue()

    status, told = asyncio.run(main())
    assert (status, [line for line in told.splitlines() if 'msg="let in"' not in line]) == (200, [])
