"""Ask a server over HTTP with nothing but the standard library: the tests' own look at a cluster, independent of the client under test."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import ssl
import time
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed import waiting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_KEPT_SECONDS = 20.0
"""How long a connection is kept: less than the 75 and 90 seconds after which the servers of `pumice up` and Kubernetes end one."""


class Answer(NamedTuple):
    """A status and the decoded body; a body that is not JSON is kept as text."""

    status: int
    body: Any


class CallError(Exception):
    """The server answered with a status of 300 or above; `answer` holds all of it."""

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message)
        self.answer = answer


class Caller:
    """Sends requests to an API server, over a connection that is kept for the next one; without a token it is anonymous."""

    def __init__(self, port: int, token: str, ca_file: Path) -> None:
        self.port = port
        self.token = token
        self.context = ssl.create_default_context(cafile=ca_file)
        self._kept: list[tuple[float, http.client.HTTPConnection]] = []
        weakref.finalize(self, _close, self._kept)

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Return the decoded body; raise CallError for a status of 300 or above.

        A server that has just begun to serve a kind says for a moment that it is not ready; that is waited for.
        """
        answer = self.answer(method, path, body, **options)
        until = time.monotonic() + waiting.PATIENCE
        while _is_warming_up(answer) and time.monotonic() < until:
            time.sleep(0.1)
            answer = self.answer(method, path, body, **options)
        if answer.status >= http.client.MULTIPLE_CHOICES:
            text = answer.body.get("message", "") if isinstance(answer.body, dict) else answer.body
            raise CallError(f"{method} {path}: {answer.status} {text}", answer)
        return answer.body

    def answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        headers: Mapping[str, str] | None = None,
        timeout: float = waiting.PATIENCE,
    ) -> Answer:
        """Return the answer whatever its status; OSError if the server cannot be reached."""
        connection = self._connection(timeout)
        sent = {"Content-Type": content_type, "Accept": accept, **(headers or {})}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        answer = _exchange(connection, method, path, None if body is None else json.dumps(body), sent)
        if connection.sock is not None:
            self._kept.append((time.monotonic(), connection))
        return answer

    def close(self) -> None:
        """End the connections that are kept; whoever serves in this process is not to be stopped before that."""
        _close(self._kept)

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """Take a connection that nobody uses and the other side has not ended, or a new one."""
        while self._kept:
            since, connection = self._kept.pop()
            if time.monotonic() - since < _KEPT_SECONDS and not select.select([connection.sock], [], [], 0)[0]:
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.context)

    def is_ready(self) -> bool:
        """Tell whether the server says that it is ready."""
        try:
            return self.answer("GET", "/readyz", timeout=2.0).status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


def _is_warming_up(answer: Answer) -> bool:
    return answer.status == http.client.TOO_MANY_REQUESTS and "storage is (re)initializing" in str(answer.body)


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=waiting.PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def etcd_is_healthy(path: Path) -> bool:
    """Tell whether the etcd behind a Unix socket serves."""
    try:
        with contextlib.closing(_SocketConnection(path)) as connection:
            return _exchange(connection, "GET", "/health", None, {}).status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False


def compact_etcd(path: Path) -> None:
    """Make the etcd behind a Unix socket forget every revision but the current one."""
    revision = _etcd(path, "/v3/kv/range", {"key": "AA==", "limit": "1"})["header"]["revision"]
    _etcd(path, "/v3/kv/compaction", {"revision": revision, "physical": True})


def _etcd(path: Path, method: str, body: Any) -> Any:
    with contextlib.closing(_SocketConnection(path)) as connection:
        answer = _exchange(connection, "POST", method, json.dumps(body), {})
    if answer.status != http.client.OK:
        raise CallError(f"etcd {method}: {answer.status} {answer.body}", answer)
    return answer.body


def _exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: str | None, headers: Mapping[str, str]
) -> Answer:
    """Send a request and read its answer; the connection is closed if that breaks down, or its server wants it."""
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
    except BaseException:
        connection.close()
        raise
    try:
        return Answer(response.status, json.loads(text))
    except ValueError:
        return Answer(response.status, text)


def _close(kept: list[tuple[float, http.client.HTTPConnection]]) -> None:
    while kept:
        kept.pop()[1].close()
