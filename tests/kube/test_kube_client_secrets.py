"""No token, password or key in any representation, message or log line, also in tracebacks that show local variables."""

from __future__ import annotations

import asyncio
import functools
import logging
import traceback

import pytest
import virtual_loop
import yaml
from scripted import CLOSE, HANG, ScriptedServer, Step, refuse, reply

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access import connection, identity
from pumice.kube.calls.client import Client
from testbed import waiting

SECRETS = ("tok-hush", "pass-hush", "dG9r", "cGFzcy", "dTpw", "key-hush", "arg-hush", "env-hush", "proxy-hush")
USERS = {
    "token": {"token": "tok-hush"},
    "file": {"tokenFile": "token"},
    "basic": {"username": "u", "password": "pass-hush"},
    "exec": {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "args": ["arg-hush"],
            "env": [{"name": "E", "value": "env-hush"}],
        }
    },
}
STEPS = {
    "refused": refuse(403, "Forbidden"),
    "unauthorized": refuse(401, "Unauthorized"),
    "closed": CLOSE,
    "silent": HANG,
    "noise": Step((b"NOISE\r\n\r\n",), "close"),
    "half": Step((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",), "close"),
    "redirect": reply(302, Location="http://u:tok-hush@elsewhere/?t=tok-hush"),
    "server-error": refuse(500, "InternalError"),
}


@pytest.fixture
def load(tmp_path):
    def load(server, user):
        (tmp_path / "token").write_text("tok-hush")
        plugin = tmp_path / "plugin"
        plugin.write_text(
            "#!/bin/sh\necho tok-hush >&2\n"
            'echo \'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"tok-hush"}}\'\n'
        )
        plugin.chmod(0o755)
        content = {
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "eve", "user": USERS[user]}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "eve"}}],
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(content))
        return connection.load(str(path), environ={"PATH": "/bin:/usr/bin"})

    return load


def _shown(error):
    """Everything a careless log could show of an error: text, fields, chain, and the local variables of every frame of the client."""
    shown = [*traceback.format_exception(error), repr(error), str(error.failure), repr(vars(error))]
    chain = error
    while chain is not None:
        shown.append(repr(chain))
        frames = traceback.walk_tb(chain.__traceback__)
        shown += [repr(frame.f_locals) for frame, _ in frames if "pumice/kube/" in frame.f_code.co_filename]
        chain = chain.__cause__ or chain.__context__
    return "\n".join(shown)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("step", STEPS)
def test_an_error_shows_no_secret(load, caplog, user, step):
    caplog.set_level(logging.DEBUG)
    seen = []  # not the result of the task: of one that took its time, asyncio logs that

    async def run(patience):
        async with ScriptedServer([STEPS[step]]).running() as server:
            target = load(server.url, user)
            async with Client(target, timeout=patience) as api:
                with pytest.raises(errors.KubeError) as caught:
                    await api.request("POST", "/x", body={}, attempts=1)
            seen[:] = [each.headers["authorization"] for each in server.asked], caught.value, [target, api]

    if user == "exec":  # a process takes real time
        patient = functools.partial(asyncio.run, debug=True)
    else:
        patient = functools.partial(virtual_loop.run, sockets=True, debug=True)
    for patience in (0.5, 5.0, 50.0) if step == "silent" else (waiting.PATIENCE,):
        patient(run(patience))
        if seen[0]:
            break
    (asked,), error, shown = seen
    text = f"{shown!r} {shown[0]}"
    assert asked in ("Bearer tok-hush", "Basic dTpwYXNzLWh1c2g=")
    for secret in SECRETS:
        assert secret not in text
        assert secret not in _shown(error)
        assert secret not in caplog.text


@pytest.mark.parametrize("user", USERS)
def test_a_broken_watch_shows_no_secret(load, user):
    async def run():
        async with ScriptedServer([CLOSE]).running() as server, Client(load(server.url, user)) as api:
            with pytest.raises(errors.KubeError) as caught:
                await anext(api.stream(kinds.POD, silence=1))
            return caught.value

    error = asyncio.run(run())
    for secret in SECRETS:
        assert secret not in _shown(error)


def test_records_that_hold_secrets_hide_them():
    user = identity.User(token="tok-hush", password="pass-hush")  # noqa: S106  this is what is looked for
    assert "hush" not in repr(user)
    assert "hush" not in str(user)
    assert "hush" not in repr([user])
