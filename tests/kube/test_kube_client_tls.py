"""Servers are trusted only with a reason, client certificates are shown and renewed, connections are kept."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import socket
import ssl
import threading

import pytest
import yaml
from scripted import ScriptedServer, chunked, refuse, reply

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.access.credentials import Fixed
from pumice.kube.access.endpoint import Connection
from pumice.kube.access.tls import REREAD, KeyPair, Pem, Tls
from pumice.kube.calls.aiohttp_channel import AiohttpChannel
from pumice.kube.calls.client import Client
from pumice.kube.calls.dialling import Dialler, DiallingError
from pumice.kube.calls.http_answers import Answer
from pumice.kube.calls.pool import Pool
from pumice.kube.calls.requests import Head, Request
from testbed import waiting
from testbed.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def serving(authority):
    return authority.server("server", ["IP:127.0.0.1", "DNS:api.internal"])


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("other"))


@pytest.fixture
def secure(authority, serving):
    """A context for a server that asks for a client certificate if there is one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.pair.certificate)
    context.load_cert_chain(*serving)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def ask(context, make, requests=1):
    """Send requests to a TLS server over what `make(url)` gives; return the server."""

    async def run():
        async with ScriptedServer([reply(200)]).running(context) as server, Client(make(server.url)) as api:
            for _ in range(requests):
                await api.request("GET", "/api/v1/nodes", attempts=1)
            return server

    return asyncio.run(run())


def test_a_server_of_our_authority_is_trusted_and_one_handshake_serves_many_requests(authority, secure):
    pem = Pem("ca", path=authority.pair.certificate)
    server = ask(secure, lambda url: Connection(url, tls=Tls(authority=pem)), requests=20)
    assert (server.connections, len(server.asked)) == (1, 20)


@pytest.mark.parametrize("trust", ["system", "other"])
def test_a_server_of_anybody_else_is_not(other, secure, trust):
    tls = Tls() if trust == "system" else Tls(authority=Pem("ca", path=other.pair.certificate))
    with pytest.raises(errors.UnreachableError, match="certificate is not trusted") as caught:
        ask(secure, lambda url: Connection(url, tls=tls))
    assert not caught.value.transient
    assert "certificate-authority" in str(caught.value)


def test_a_server_under_another_name_needs_tls_server_name(authority, secure):
    pem = Pem("ca", path=authority.pair.certificate)

    def by_name(name):
        return lambda url: Connection(url, tls=Tls(authority=pem), tls_server_name=name)

    assert len(ask(secure, by_name("api.internal")).asked) == 1
    with pytest.raises(errors.UnreachableError, match=r"not valid for 'api\.elsewhere'"):
        ask(secure, by_name("api.elsewhere"))


def test_verification_can_be_switched_off(secure):
    assert len(ask(secure, lambda url: Connection(url, tls=Tls(insecure=True))).asked) == 1


def test_a_server_that_speaks_no_tls_is_unreachable():
    async def run():
        async def serve(_, writer):
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, Client(Connection(url)) as api:
            await api.request("POST", "/x", body={}, attempts=1)

    with pytest.raises(errors.UnreachableError, match="TLS failed"):
        asyncio.run(run())


async def _shown(context, make, requests):
    """Return the name on the client certificate of each connection."""
    names = []

    async def serve(reader, writer):
        found = writer.get_extra_info("peercert") or {}
        names.append(dict(part[0] for part in found.get("subject", ())).get("commonName", ""))
        for _ in range(requests):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server, Client(make(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as api:
        for _ in range(requests):
            await api.request("GET", "/x", attempts=1)
    return names


def _server_context(serving):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*serving)
    return context


@contextlib.asynccontextmanager
async def _resuming(contexts):
    """Serve with the contexts in turn, one for each connection, without one let it go at once; give the port and whether each connection went on from an earlier one."""
    resumed = []

    async def serve(reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if (context := contexts[len(resumed)]) is None:
                resumed.append(None)
                writer.close()
                return
            await writer.start_tls(context)
            resumed.append(writer.get_extra_info("ssl_object").session_reused)
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], resumed


def test_connections_go_on_from_the_first_that_was_answered_and_others_certificates_begin_anew(authority, serving):
    async def run():
        used, forgetful = _server_context(serving), _server_context(serving)
        mine, renewed = (Tls(authority=Pem("ca", path=authority.pair.certificate)).context() for _ in range(2))
        asked = b"GET / HTTP/1.1\r\n\r\n"
        async with _resuming([used, used, used, used, forgetful]) as (port, resumed):
            dialler = Dialler("127.0.0.1", port)
            pools = [Pool(dialler) for _ in range(5)]  # each opens a connection of its own
            for pool, context in zip(pools, [mine, mine, renewed, renewed, renewed], strict=True):
                answer = Answer(1000)
                await pool.exchange(asked, answer, context, 30)
                assert answer.body == b"{}"
            assert resumed == [False, True, False, True, False]
            for pool in pools:
                pool.close()

    asyncio.run(run())


def test_after_a_connection_that_came_to_nothing_certificates_are_checked_again(authority, serving):
    async def run():
        used = _server_context(serving)
        mine = Tls(authority=Pem("ca", path=authority.pair.certificate)).context()
        asked = b"GET / HTTP/1.1\r\n\r\n"
        async with _resuming([used, None, used, used]) as (port, resumed):
            dialler = Dialler("127.0.0.1", port)
            pools = [Pool(dialler) for _ in range(4)]
            await pools[0].exchange(asked, Answer(1000), mine, 30)
            with pytest.raises(DiallingError):
                await pools[1].exchange(asked, Answer(1000), mine, 30)
            for pool in pools[2:]:
                await pool.exchange(asked, Answer(1000), mine, 30)
            assert resumed == [False, None, False, True]
            for pool in pools:
                pool.close()

    asyncio.run(run())


def _kubeconfig(folder, url, authority, pair, *, inline):
    def part(name, path):
        if inline:
            return {f"{name}-data": base64.b64encode(path.read_bytes()).decode()}
        (folder / path.name).write_bytes(path.read_bytes())
        return {name: path.name}

    path = folder / "config"
    content = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": url, **part("certificate-authority", authority.pair.certificate)}}],
        "users": [{"name": "u", "user": part("client-certificate", pair.certificate) | part("client-key", pair.key)}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(content))
    return connection.load(str(path), environ={})


@pytest.mark.parametrize("inline", [True, False])
def test_a_client_certificate_from_a_kubeconfig_is_shown(tmp_path, authority, secure, inline):
    pair = authority.client("alice")
    names = asyncio.run(
        _shown(secure, lambda url: _kubeconfig(tmp_path, url, authority, pair, inline=inline), requests=2)
    )
    assert names == ["alice"]


def test_a_key_that_does_not_fit_its_certificate_is_refused_when_the_file_is_loaded(tmp_path, authority):
    pair = authority.client("alice")._replace(key=authority.client("bob").key)
    with pytest.raises(errors.ConfigurationError, match=r"user 'u': client-certificate: .*PEM pair"):
        _kubeconfig(tmp_path, "https://h", authority, pair, inline=False)


def test_a_renewed_client_certificate_is_used_for_new_connections(tmp_path, authority):
    alice, bob = authority.client("alice"), authority.client("bob")
    certificate, key = tmp_path / "c", tmp_path / "k"
    now = [0.0]
    tls = Tls(certificate=Pem("c", path=certificate), key=Pem("k", path=key), now=lambda: now[0])
    certificate.write_bytes(alice.certificate.read_bytes())
    key.write_bytes(alice.key.read_bytes())
    first = tls.context()
    certificate.write_bytes(bob.certificate.read_bytes())
    now[0] += REREAD
    assert tls.context() is first, "the key has not followed yet"
    assert not tls.reread()
    key.write_bytes(bob.key.read_bytes())
    assert tls.context() is first, "it is looked at once a minute"
    now[0] += REREAD
    second = tls.context()
    assert second is not first
    certificate.unlink()
    now[0] += REREAD
    assert tls.context() is second


def test_a_certificate_of_a_plugin_stands_before_the_configured_one(authority):
    alice, bob = authority.client("alice"), authority.client("bob")
    tls = Tls(certificate=Pem("c", path=alice.certificate), key=Pem("k", path=alice.key))
    pair = KeyPair(bob.certificate.read_bytes(), bob.key.read_bytes())
    mine = tls.context(pair)
    assert tls.context(KeyPair(pair.certificate, pair.key)) is mine
    assert tls.context() is not mine


def test_a_certificate_that_changes_after_a_401_is_tried_at_once(tmp_path, authority, secure):
    alice, bob = authority.client("alice"), authority.client("bob")
    certificate, key = tmp_path / "c", tmp_path / "k"
    certificate.write_bytes(alice.certificate.read_bytes())
    key.write_bytes(alice.key.read_bytes())

    async def run():
        steps = [reply(200), refuse(401, "Unauthorized"), reply(200)]
        async with ScriptedServer(steps).running(secure) as server:
            tls = Tls(
                authority=Pem("a", path=authority.pair.certificate),
                certificate=Pem("c", path=certificate),
                key=Pem("k", path=key),
            )
            async with Client(Connection(server.url, tls=tls, credentials=Fixed())) as api:
                await api.get(kinds.NODE, "", "n")
                certificate.write_bytes(bob.certificate.read_bytes())
                key.write_bytes(bob.key.read_bytes())
                await api.get(kinds.NODE, "", "n")
            return server.connections

    assert asyncio.run(run()) == 2


def test_requests_and_answers_larger_than_any_buffer_arrive_whole_over_tls(authority, secure):
    asked, answered = b"x" * 3_000_000, b'"' + b"y" * 3_000_000 + b'"'

    async def run():
        async with ScriptedServer([reply(200, answered)]).running(secure) as server:
            trusting = Connection(server.url, tls=Tls(authority=Pem("ca", path=authority.pair.certificate)))
            async with Client(trusting) as api:
                for _ in range(2):
                    assert await api.request("POST", "/x", body=asked) == answered
            return server

    server = asyncio.run(run())
    assert [each.body for each in server.asked] == [asked] * 2
    assert server.connections == 1


def test_a_stream_over_tls_gives_each_line_as_it_comes(authority, secure):
    async def run():
        steps = [chunked(b"one\ntw", b"o\n", b"three\n", then="hang")]
        async with ScriptedServer(steps).running(secure) as server:
            trusting = Connection(server.url, tls=Tls(authority=Pem("ca", path=authority.pair.certificate)))
            async with Client(trusting) as api:
                lines = api.stream(kinds.POD, silence=60)
                return [await anext(lines) for _ in range(3)]

    assert asyncio.run(run()) == [b"one", b"two", b"three"]


@contextlib.contextmanager
def silent_at_the_end(secure):
    """A server that begins an answer, and then neither reads nor says goodbye."""
    over = threading.Event()

    def serve():
        begun, _ = listening.accept()
        with secure.wrap_socket(begun, server_side=True) as sock:
            sock.recv(1 << 16)
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
            over.wait(waiting.PATIENCE)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            serving.join()


def test_a_connection_that_was_given_up_does_not_outlive_its_channel(authority, secure):
    trusting = ssl.create_default_context(cafile=authority.pair.certificate)

    async def run(url):
        channel = AiohttpChannel(url, "", "", 1 << 20)
        parts = channel.stream(Request(method="GET", path="/x"), Head("x", {}), trusting, Answer(None), 10)
        assert [await anext(parts), await anext(parts)] == [b"", b"one"]
        await parts.aclose()
        await channel.close()

    with silent_at_the_end(secure) as url:
        asyncio.run(run(url))
    gc.collect()  # a socket that is still open says so now, and fails the test
