"""Tokens in files, refusals that force newer credentials, and the account of a pod."""

from __future__ import annotations

import asyncio

import pytest
from scripted import ScriptedServer, refuse, reply

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access import connection, credentials, incluster
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def test_a_token_file_is_read_again_after_a_minute(token_file):
    async def run():
        clock = Clock()
        source = credentials.TokenFile(token_file, now=clock)
        first = await source.headers()
        token_file.write_text("second")
        clock.now += 59
        assert await source.headers() is first
        clock.now += 1
        return dict(first), dict(await source.headers())

    assert asyncio.run(run()) == ({"Authorization": "Bearer first"}, {"Authorization": "Bearer second"})


@pytest.mark.parametrize("content", [None, b"", b"  \n", b"bad\ntoken", b"\xff\xfe"])
def test_a_token_file_that_is_being_replaced_keeps_the_last_token(token_file, content):
    async def run():
        clock = Clock()
        source = credentials.TokenFile(token_file, now=clock)
        first = await source.headers()
        token_file.unlink() if content is None else token_file.write_bytes(content)
        clock.now += 60
        assert await source.headers() is first
        assert not source.refused(first)

    asyncio.run(run())


@pytest.mark.parametrize("content", [None, b"", b"se cret\n\nse\x00cret", b"\xff"])
def test_a_token_file_that_was_never_good_is_an_error_that_names_it(token_file, content):
    token_file.unlink() if content is None else token_file.write_bytes(content)
    with pytest.raises(errors.CredentialsError) as caught:
        asyncio.run(credentials.TokenFile(token_file).headers())
    assert str(token_file) in str(caught.value)
    assert "cret" not in str(caught.value)
    assert caught.value.failure.code == "unavailable"


def test_a_401_reads_the_token_file_again_and_sends_the_request_once_more(token_file):
    async def run():
        async with ScriptedServer([reply(200), refuse(401, "Unauthorized"), reply(201)]).running() as server:
            source = credentials.TokenFile(token_file)
            async with Client(Connection(server.url, credentials=source)) as api:
                await api.get(kinds.NODE, "", "n")
                token_file.write_text("second")
                await api.bind("a", "p", "u", "n", {})
            return [asked.headers["authorization"] for asked in server.asked]

    assert asyncio.run(run()) == ["Bearer first", "Bearer first", "Bearer second"]


@pytest.mark.parametrize("kind", ["fixed", "file"])
def test_a_401_without_newer_credentials_is_an_error_that_names_their_origin(token_file, kind):
    async def run():
        async with ScriptedServer([refuse(401, "Unauthorized")]).running() as server:
            source = (
                credentials.TokenFile(token_file) if kind == "file" else credentials.Fixed(credentials.bearer("first"))
            )
            target = Connection(server.url, credentials=source, origin="user 'eve' of context 'prod' in /k/config")
            async with Client(target) as api:
                with pytest.raises(errors.ApiError) as caught:
                    await api.get(kinds.NODE, "", "n")
            return len(server.asked), caught.value

    asked, error = asyncio.run(run())
    assert (asked, error.status, error.failure.code) == (1, 401, "refused")
    assert "user 'eve' of context 'prod' in /k/config" in str(error)
    assert "fetch new ones" in str(error)
    assert "first" not in str(error)


def test_many_refusals_at_once_read_the_file_once_for_all(token_file):
    async def run():
        source = credentials.TokenFile(token_file)
        first = await source.headers()
        token_file.write_text("second")
        assert source.refused(first)
        second = await source.headers()
        assert source.refused(first)
        assert await source.headers() is second

    asyncio.run(run())


@pytest.fixture
def account(tmp_path):
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "namespace").write_text("batch\n")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("[fd00::1]", "https://[fd00::1]:443"),
        ("kubernetes.default", "https://kubernetes.default:443"),
    ],
)
def test_the_account_of_a_pod(account, host, server):
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    found = incluster.load(environ, account)
    assert (found.server, found.namespace) == (server, "batch")
    assert dict(asyncio.run(found.credentials.headers())) == {"Authorization": "Bearer pod-token"}


@pytest.mark.parametrize(
    ("missing", "words"), [("token", "automountServiceAccountToken"), ("port", "KUBERNETES_SERVICE_PORT")]
)
def test_an_account_that_cannot_work_is_an_error_with_a_next_step(account, missing, words):
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "x" if missing == "port" else "443"}
    if missing == "token":
        (account / "token").unlink()
    with pytest.raises(errors.ConfigurationError, match=words):
        incluster.load(environ, account)


def test_an_account_without_a_namespace_is_in_default_and_a_bad_authority_is_an_error(account):
    environ = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    (account / "namespace").unlink()
    assert incluster.load(environ, account).namespace == "default"
    (account / "ca.crt").write_text("no certificate")
    with pytest.raises(errors.ConfigurationError, match=r"ca\.crt"):
        incluster.load(environ, account)


def test_in_cluster_first_stands_before_the_default_kubeconfig_only(account, tmp_path, monkeypatch):
    monkeypatch.setattr(incluster, "ACCOUNT", account)
    monkeypatch.setattr(incluster.load, "__defaults__", (account,))
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    (home / ".kube" / "config").write_text(
        "{clusters: [{name: c, cluster: {server: 'http://file'}}], contexts: [{name: x, context: {cluster: c}}], current-context: x}"
    )
    environ = {"HOME": str(home), "KUBERNETES_SERVICE_HOST": "pod", "KUBERNETES_SERVICE_PORT": "1"}
    assert connection.load(in_cluster_first=True, environ=environ).server == "https://pod:1"
    assert connection.load(environ=environ).server == "http://file"
    assert connection.load(master="http://flag", in_cluster_first=True, environ=environ).server == "http://flag"
    assert connection.load(context="x", in_cluster_first=True, environ=environ).server == "http://file"
    (home / ".kube" / "config").unlink()
    assert connection.load(environ=environ).server == "https://pod:1"
