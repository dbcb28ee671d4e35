"""Whether a write happened, told apart for every way in which an answer can fail to come."""

from __future__ import annotations

import asyncio
import math
import socket

import pytest
import virtual_loop
from scripted import CLOSE, CUT, HANG, RESET, ScriptedServer, Step, client, refuse, reply

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client

HALF_HEAD = Step((b"HTTP/1.1 201 Crea",), "close")
HALF_BODY = Step((b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"kind":',), "close")
HALF_CHUNK = Step((b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{",), "close")
DEEP = b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
NOISE = Step((b"NOISE/9 abc\r\n\r\n",), "close")


def attempt(steps, *, verb="bind", **options):
    """Send one request to a server with this script; return the server and what came of the request."""

    async def run():
        async with ScriptedServer(steps).running() as server, client(server, **options) as api:
            try:
                return server, await send(api, verb)
            except errors.KubeError as error:
                return server, error

    return virtual_loop.run(run(), sockets=True)


async def send(api, verb):
    match verb:
        case "bind":
            return await api.bind("a", "p", "uid-1", "n1", {"k": "v"})
        case "delete":
            return await api.delete(kinds.POD, "a", "p", uid="uid-1", grace_seconds=0)
        case "replace":
            return await api.replace(kinds.LEASE, {"metadata": {"namespace": "a", "name": "l"}})
        case "patch":
            return await api.patch(kinds.POD, "a", "p", {"x": 1})
        case "create":
            return await api.create(kinds.POD, {"metadata": {"namespace": "a"}})
        case "evict":
            return await api.evict("a", "p")
        case _:
            return await api.get(kinds.POD, "a", "p")


@pytest.mark.parametrize("verb", ["bind", "delete", "replace", "patch", "create", "evict"])
@pytest.mark.parametrize(
    "step",
    [CLOSE, HALF_HEAD, HALF_BODY, HALF_CHUNK, NOISE],
    ids=["closed", "half-head", "half-body", "half-chunk", "noise"],
)
def test_a_write_without_a_whole_answer_is_unknown_and_sent_once(verb, step):
    server, error = attempt([step], verb=verb)
    assert isinstance(error, errors.UnknownOutcomeError)
    assert error.failure.code == "unknown"
    assert len(server.asked) == 1


@pytest.mark.parametrize("verb", ["bind", "delete", "replace", "patch", "create", "evict"])
@pytest.mark.parametrize("step", [CLOSE, RESET, CUT], ids=["closed", "reset", "cut"])
def test_a_write_on_a_kept_connection_that_breaks_is_not_silently_repeated(verb, step):
    """The connection ends while the request is written, or when all of it has arrived."""

    async def run():
        steps = [reply(200), step, reply(200)]
        async with ScriptedServer(steps).running() as server, client(server) as api:
            await api.get(kinds.POD, "a", "p")
            with pytest.raises(errors.UnknownOutcomeError):
                await send(api, verb)
            assert server.connections == 1
            assert len(server.asked) == 2

    asyncio.run(run())


def test_a_large_write_that_is_cut_off_in_the_middle_is_sent_once():
    async def run():
        async with ScriptedServer([reply(200), CUT, reply(200)]).running() as server, client(server) as api:
            await api.get(kinds.POD, "a", "p")
            with pytest.raises(errors.UnknownOutcomeError):
                await api.replace(kinds.LEASE, {"metadata": {"namespace": "a", "name": "l"}, "spec": "x" * 1_000_000})
            assert [asked.method for asked in server.asked] == ["GET", "PUT"]

    asyncio.run(run())


@pytest.mark.parametrize("verb", ["bind", "delete"])
def test_a_write_answered_after_the_time_limit_is_unknown(verb):
    server, error = attempt([HANG], verb=verb, timeout=0.5)
    assert isinstance(error, errors.UnknownOutcomeError)
    assert "0.5 s" in str(error)
    assert len(server.asked) == 1


def test_a_write_is_given_up_before_anybody_else_can_take_the_lease():
    """Halves of a second are allowed, and reads may take their time."""
    server, error = attempt([HANG], allowance=lambda: 1.9)
    assert isinstance(error, errors.UnknownOutcomeError)
    assert "1.5 s" in str(error)
    assert len(server.asked) == 1
    _, answer = attempt([reply(200)], verb="get", allowance=lambda: 0.0)
    assert not isinstance(answer, errors.KubeError)


def test_a_write_whose_connection_is_refused_is_tried_again_and_then_unavailable():
    async def run():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            server = ScriptedServer([])
            server.port = port
            async with client(server) as api:
                await api.bind("a", "p", "u", "n", {})

    with pytest.raises(errors.UnreachableError) as caught:
        asyncio.run(run())
    assert caught.value.failure.code == "unavailable"
    assert "127.0.0.1" in str(caught.value)


def test_a_write_gets_through_once_the_server_is_there():
    async def run():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        server = ScriptedServer([reply(201)], port=port)
        async with client(server, retry=None) as api:
            sending = asyncio.create_task(api.bind("a", "p", "u", "n", {}))
            await asyncio.sleep(0.02)
            async with server.running():
                await sending
                assert len(server.asked) == 1

    asyncio.run(run())


def test_a_name_that_does_not_resolve_is_unreachable():
    async def run():
        async with Client(Connection("http://no-such-host.invalid:1")) as api:
            await api.request("POST", "/x", body={}, attempts=1)

    with pytest.raises(errors.UnreachableError, match=r"no-such-host\.invalid"):
        asyncio.run(run())


@pytest.mark.parametrize("verb", ["bind", "create", "patch", "get"])
def test_429_is_sent_again_after_retry_after(verb):
    server, result = attempt([refuse(429, "TooManyRequests", Retry_After="0"), reply(201)], verb=verb)
    assert not isinstance(result, errors.KubeError)
    assert len(server.asked) == 2


def test_429_ends_as_unavailable_after_all_attempts():
    server, error = attempt([refuse(429, "TooManyRequests", Retry_After="0")])
    assert isinstance(error, errors.ApiError)
    assert (error.status, error.retry_after, error.failure.code) == (429, 0.0, "unavailable")
    assert len(server.asked) == 3


def test_503_with_retry_after_is_sent_again():
    server, result = attempt([refuse(503, "ServiceUnavailable", Retry_After="0"), reply(201)])
    assert result is None
    assert len(server.asked) == 2


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_error_leaves_a_write_unknown_and_sent_once(status):
    server, error = attempt([refuse(status, "Timeout", "etcdserver: request timed out")])
    assert isinstance(error, errors.UnknownOutcomeError)
    assert (error.status, error.failure.code) == (status, "unknown")
    assert "etcdserver: request timed out" in str(error)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_error_of_a_read_is_sent_again(status):
    server, result = attempt([refuse(status, "InternalError"), reply(200, {"a": 1})], verb="get")
    assert result == {"a": 1}
    assert len(server.asked) == 2


@pytest.mark.parametrize("step", [CLOSE, HALF_BODY])
def test_a_broken_read_is_sent_again(step):
    server, result = attempt([step, reply(200, {"a": 1})], verb="get")
    assert result == {"a": 1}
    assert len(server.asked) == 2


def test_a_read_that_never_succeeds_is_unavailable():
    server, error = attempt([CLOSE], verb="get")
    assert isinstance(error, errors.BrokenConnectionError)
    assert error.failure.code == "unavailable"
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "refused"), (403, "refused"), (404, "notfound"), (409, "conflict"), (410, "refused"), (422, "refused")],
)
@pytest.mark.parametrize("verb", ["bind", "get"])
def test_a_refusal_is_final_and_says_what_the_server_said(verb, status, code):
    server, error = attempt([refuse(status, "Because", "pods p: it says so")], verb=verb)
    assert isinstance(error, errors.ApiError)
    assert (error.status, error.reason, error.failure.code) == (status, "Because", code)
    assert "/api/v1/namespaces/a/pods/p" in str(error)
    assert "it says so" in str(error)
    assert len(server.asked) == 1


def test_an_eviction_that_a_budget_forbids_is_not_tried_again():
    body = {
        "kind": "Status",
        "reason": "TooManyRequests",
        "message": "Cannot evict pod",
        "details": {"causes": [{"reason": "DisruptionBudget", "message": "needs 3"}]},
    }
    server, error = attempt([reply(429, body, Retry_After="10")], verb="evict")
    assert (error.budget_forbids, error.failure.code) == (True, "refused")
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status):
    async def run():
        async with ScriptedServer([reply(201)]).running() as other:
            target = other.url.replace("127.0.0.1", "localhost")
            steps = [reply(status, Location=f"{target}/elsewhere?token=s3cret")]
            async with ScriptedServer(steps).running() as server, client(server) as api:
                with pytest.raises(errors.ApiError, match="points to localhost") as caught:
                    await api.bind("a", "p", "u", "n", {})
                assert "s3cret" not in str(caught.value)
                assert (len(server.asked), other.asked) == (1, [])

    asyncio.run(run())


def test_an_answer_that_is_no_object_leaves_a_write_unknown():
    _, error = attempt([reply(200, b"<html>")], verb="create")
    assert isinstance(error, errors.UnknownOutcomeError)
    for body in (b"[1]", DEEP):
        _, error = attempt([reply(200, body)], verb="get")
        assert isinstance(error, errors.BrokenConnectionError)


@pytest.mark.parametrize(
    "body", [b"", b"<html>gateway</html>", b"[]", b'{"kind":"Status","details":{"causes":null}}', DEEP]
)
def test_a_refusal_without_a_status_object_is_still_one(body):
    _, error = attempt([reply(404, body)], verb="get")
    assert (error.status, error.failure.code) == (404, "notfound")


@pytest.mark.parametrize("announced", [True, False])
def test_an_answer_beyond_the_limit_is_not_read(announced):
    body = b"x" * 5000
    step = reply(200, body)
    if not announced:
        step = Step((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" + body + b"\r\n0\r\n\r\n",))
    _, error = attempt([step], verb="get", largest_answer=4999)
    assert isinstance(error, errors.OversizeError)
    assert "4999" in str(error)
    _, error = attempt([step], verb="create", largest_answer=4999)
    assert isinstance(error, errors.UnknownOutcomeError)


def test_the_fence_is_asked_after_credentials_have_come():
    """Whoever has to wait for them may have lost the lease meanwhile."""

    class Slow:
        async def headers(self):
            fence.append(0.0)
            return {}

        async def key_pair(self):
            return None

        def refused(self, _headers):
            return False

    fence = [math.inf]

    async def run():
        async with ScriptedServer([reply(201)]).running() as server:
            found = Connection(f"http://127.0.0.1:{server.port}", credentials=Slow())
            async with Client(found, allowance=lambda: fence[-1]) as api:
                with pytest.raises(errors.UnreachableError, match="the lease"):
                    await send(api, "bind")
            assert server.asked == []

    asyncio.run(run())
