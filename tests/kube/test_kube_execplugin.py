"""Credential plugins: how they are run, what they may print, how long what they print is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from pathlib import Path

import pytest

from pumice.kube import errors
from pumice.kube.access.execplugin import HOLD_OFF, LARGEST, ExecEntry, ExecPlugin, Variable
from testbed import waiting

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"
PROGRAM = """#!{python}
import json, os, sys
count = {folder!r} + "/count"
number = (int(open(count).read()) if os.path.exists(count) else 0) + 1
open(count, "w").write(str(number))
{body}
"""
ANSWER = """
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
open({folder!r} + "/seen", "w").write(json.dumps({{"info": info, "argv": sys.argv[1:], "extra": os.environ.get("EXTRA"), "stdin": sys.stdin.read()}}))
print(json.dumps({{"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": {status}}}))
"""


class Plugin:
    """A program in a folder, and credentials that use it."""

    def __init__(self, folder, now):
        self.folder = folder
        self.now = now

    def program(self, body):
        path = self.folder / "plugin"
        path.write_text(PROGRAM.format(python=sys.executable, folder=str(self.folder), body=body))
        path.chmod(0o755)

    def answering(self, status):
        self.program(ANSWER.format(folder=str(self.folder), status=status))

    def credentials(self, *, time_limit=20.0, **settings):
        settings.setdefault("command", "./plugin")
        settings.setdefault("api_version", V1)
        return ExecPlugin(
            ExecEntry(**settings),
            field="/k/config: user 'eve': exec",
            folder=self.folder,
            environ={"PATH": "/usr/bin:/bin"},
            cluster=lambda: {"server": "https://h", "config": {"audience": "x"}},
            now=lambda: self.now,
            time_limit=time_limit,
        )

    @property
    def runs(self):
        count = self.folder / "count"
        return int(count.read_text()) if count.exists() else 0

    @property
    def seen(self):
        return json.loads((self.folder / "seen").read_text())


@pytest.fixture
def plugin(tmp_path):
    return Plugin(tmp_path, 1_800_000_000.0)


@pytest.mark.parametrize("version", [V1, BETA])
def test_a_plugin_gets_its_arguments_and_is_asked_for_its_version(plugin, version):
    plugin.answering('{"token": "tok-1"}')
    source = plugin.credentials(
        api_version=version, args=["get", "--x"], env=[Variable("EXTRA", "e")], provide_cluster_info=True
    )
    assert dict(asyncio.run(source.headers())) == {"Authorization": "Bearer tok-1"}
    assert plugin.seen == {
        "info": {
            "kind": "ExecCredential",
            "apiVersion": version,
            "spec": {"interactive": False, "cluster": {"server": "https://h", "config": {"audience": "x"}}},
        },
        "argv": ["get", "--x"],
        "extra": "e",
        "stdin": "",
    }


def test_the_cluster_is_told_only_if_that_was_asked_for(plugin):
    plugin.answering('{"token": "tok-1"}')
    asyncio.run(plugin.credentials().headers())
    assert plugin.seen["info"]["spec"] == {"interactive": False}


def test_credentials_are_kept_until_they_expire(plugin):
    async def run():
        plugin.answering('{"token": f"tok-{number}", "expirationTimestamp": "2027-01-15T08:01:00Z"}')
        source = plugin.credentials()
        plugin.now = 1_800_000_000.0  # 2027-01-15T08:00:00Z
        await source.headers()
        plugin.now += 59.9
        await source.headers()
        assert plugin.runs == 1
        plugin.answering('{"token": f"tok-{number}"}')
        plugin.now += 0.1
        assert (await source.headers())["Authorization"] == "Bearer tok-2"
        plugin.now += 1e9
        await source.headers()
        assert plugin.runs == 2

    asyncio.run(run())


def test_all_who_need_credentials_wait_for_one_run(plugin):
    async def run():
        plugin.answering('{"token": "tok-1"}')
        source = plugin.credentials()
        found = await asyncio.gather(*(source.headers() for _ in range(20)))
        assert plugin.runs == 1
        assert len({id(headers) for headers in found}) == 1

    asyncio.run(run())


def test_a_refusal_forces_a_new_run_unless_the_credentials_are_brand_new(plugin):
    async def run():
        plugin.answering('{"token": f"tok-{number}"}')
        source = plugin.credentials()
        first = await source.headers()
        assert not source.refused(first)
        plugin.now += HOLD_OFF
        assert source.refused(first)
        assert (await source.headers())["Authorization"] == "Bearer tok-2"
        assert source.refused(first)
        await source.headers()
        assert plugin.runs == 2

    asyncio.run(run())


def test_a_client_certificate_comes_with_the_credentials(plugin):
    plugin.answering('{"clientCertificateData": "CERT", "clientKeyData": "KEY"}')

    async def run():
        source = plugin.credentials()
        pair = await source.key_pair()
        return dict(await source.headers()), pair.certificate, pair.key

    assert asyncio.run(run()) == ({}, b"CERT", b"KEY")
    assert plugin.runs == 1


BAD = {
    "fails": ("print('tok-secret', file=sys.stderr); sys.exit(3)", "exit status 3"),
    "nothing": ("pass", "no ExecCredential"),
    "not-json": ("print('tok-secret')", "no ExecCredential"),
    "binary": ("sys.stdout.buffer.write(b'\\xff\\xfe')", "no ExecCredential"),
    "other-version": (
        "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': 'client.authentication.k8s.io/v2', 'status': {'token': 'tok-secret'}}))",
        "no ExecCredential of client.authentication.k8s.io/v1",
    ),
    "no-status": (f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}}}))", "without a token"),
    "half-pair": (
        f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}, 'status': {{'clientCertificateData': 'tok-secret'}}}}))",
        "only one of",
    ),
    "bad-token": (
        f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}, 'status': {{'token': 'tok-secret\\nX: y'}}}}))",
        "no header can carry",
    ),
    "bad-expiry": (
        f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}, 'status': {{'token': 'tok-secret', 'expirationTimestamp': 'soon'}}}}))",
        "expirationTimestamp",
    ),
    "flood": ("print('tok-secret' * 300000, flush=True); import time; time.sleep(60)", f"more than {LARGEST}"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_plugin_that_gives_nothing_usable_is_an_error_that_shows_no_secret(plugin, case):
    body, words = BAD[case]
    plugin.program(body)
    with pytest.raises(errors.CredentialsError) as caught:
        asyncio.run(plugin.credentials().headers())
    assert words in str(caught.value)
    assert "user 'eve': exec" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_plugin_that_hangs_is_ended_with_all_it_has_started(plugin):
    plugin.program(
        "import subprocess; child = subprocess.Popen(['sleep', '3600'])\n"
        f"open({str(plugin.folder)!r} + '/child', 'w').write(str(child.pid)); child.wait()"
    )
    with pytest.raises(errors.CredentialsError, match="within 4 s"):
        asyncio.run(plugin.credentials(time_limit=4.0).headers())
    stat = Path("/proc", (plugin.folder / "child").read_text(), "stat")
    with contextlib.suppress(FileNotFoundError):  # somebody may have collected it already
        waiting.until(lambda: stat.read_text().split()[2] == "Z")  # a killed process ends when the kernel gets to it


def test_a_missing_plugin_shows_the_install_hint(plugin):
    with pytest.raises(errors.CredentialsError, match=r"No such file.*run: apt install it"):
        asyncio.run(plugin.credentials(command="./gone", install_hint="run: apt install it").headers())


def test_a_failure_is_remembered_for_a_moment(plugin):
    async def run():
        plugin.program("sys.exit(1)")
        source = plugin.credentials()
        for _ in range(5):
            with pytest.raises(errors.CredentialsError):
                await source.headers()
        assert plugin.runs == 1
        plugin.now += HOLD_OFF
        plugin.answering('{"token": "tok-1"}')
        await source.headers()
        assert plugin.runs == 2

    asyncio.run(run())


def test_a_plugin_runs_on_an_event_loop_in_any_thread(plugin):
    plugin.answering('{"token": "tok-1"}')
    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(plugin.credentials().headers())))
    thread.start()
    thread.join(30)
    assert [dict(headers) for headers in found] == [{"Authorization": "Bearer tok-1"}]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"command": ""}, "command is not set"),
        ({"api_version": ""}, "apiVersion '' is not supported"),
        ({"api_version": "client.authentication.k8s.io/v1alpha1"}, "v1alpha1' is not supported; use"),
        ({"interactive_mode": "Always"}, "interactiveMode is Always"),
    ],
)
def test_settings_that_cannot_work_are_refused(plugin, settings, words):
    with pytest.raises(errors.ConfigurationError, match="user 'eve': exec") as caught:
        plugin.credentials(**settings)
    assert words in str(caught.value)
