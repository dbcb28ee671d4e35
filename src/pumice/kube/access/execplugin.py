"""Credential plugins: a program that prints an ExecCredential, run when there is none or the last one has expired."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import timestamp
from pumice.kube.access import credentials
from pumice.kube.access.tls import KeyPair
from pumice.kube.errors import ConfigurationError, CredentialsError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
TIMEOUT: Final = 30.0
LARGEST: Final = 1 << 20
HOLD_OFF: Final = 5.0


class Variable(credentials.Hidden, frozen=True):
    """One variable of a plugin's environment."""

    name: str
    value: str = ""


class ExecEntry(credentials.Hidden, frozen=True, rename="camel"):
    """The `exec` section of a user."""

    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False


class _Status(credentials.Hidden, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Printed(credentials.Hidden, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


_PRINTED: Final = msgspec.json.Decoder(_Printed)  # made once: plugins of several clients are read in several threads


class _Held(credentials.Hidden, frozen=True):
    """What the plugin gave last, and until when."""

    headers: Mapping[str, str]
    pair: KeyPair | None
    since: float
    expires: float


class ExecPlugin:
    """Credentials from a program; whoever needs them while it runs waits for the same run.

    What it writes to its error output may hold secrets, so it is shown nowhere; a failure is remembered for a few seconds so that many
    requests do not start many programs.
    """

    def __init__(
        self,
        settings: ExecEntry,
        *,
        field: str,
        folder: Path,
        environ: Mapping[str, str],
        cluster: Callable[[], dict[str, Any]],
        extra: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
        time_limit: float = TIMEOUT,
    ) -> None:
        _check(settings, field)
        self._settings = settings
        self._field = field
        self._command = str(folder / settings.command) if os.sep in settings.command else settings.command
        self._environ = environ
        self._cluster = cluster
        self._extra = dict(extra or {})
        self._now = now
        self._time_limit = time_limit
        self._held: _Held | None = None
        self._failed: tuple[float, str] | None = None
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"ExecPlugin({self._command!r})"

    async def headers(self) -> Mapping[str, str]:
        """Return the headers of credentials that have not expired."""
        return (await self._current()).headers

    async def key_pair(self) -> KeyPair | None:
        """Return the client certificate that the plugin gave."""
        return (await self._current()).pair

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Forget the credentials the server refused, unless they are so new that others will fare no better."""
        if self._held is not None and self._held.headers is headers:
            if 0 <= self._now() - self._held.since < HOLD_OFF:
                return False
            self._held = None
        return True

    async def _current(self) -> _Held:
        if self._held is not None and self._now() < self._held.expires:
            return self._held
        async with self._lock:
            if self._held is not None and self._now() < self._held.expires:
                return self._held
            if self._failed is not None and self._now() < self._failed[0]:
                raise CredentialsError(self._failed[1])
            try:
                self._held = self.read(await self._run())
            except CredentialsError as error:
                self._failed = self._now() + HOLD_OFF, str(error)
                raise
            self._failed = None
            return self._held

    async def _run(self) -> bytes:
        process = self._start()
        try:
            printed, code = await asyncio.to_thread(_collect, process, self._time_limit)
        finally:
            _kill(process)
        if code is None:
            raise self._failure(f"gave no answer within {self._time_limit:g} s")
        if len(printed) > LARGEST:
            raise self._failure(f"printed more than {LARGEST} bytes")
        if code != 0:
            raise self._failure(f"failed with exit status {code}")
        return printed

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603  the kubeconfig names the program, as it does for kubectl
                [self._command, *(self._settings.args or ())],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            what = error.strerror if isinstance(error, OSError) else "its arguments hold a null byte"
            raise self._failure(f"cannot be started: {what}", hint=True) from None

    def _environment(self) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": False}
        if self._settings.provide_cluster_info:
            spec["cluster"] = self._cluster()
        info = {"kind": "ExecCredential", "apiVersion": self._settings.api_version, "spec": spec}
        chosen = {variable.name: variable.value for variable in self._settings.env or ()}
        return {**self._environ, **chosen, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}

    def read(self, printed: bytes) -> _Held:
        """Read what the command has printed."""
        try:
            answer = _PRINTED.decode(printed)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._failure("printed no ExecCredential") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._settings.api_version:
            raise self._failure(f"printed no ExecCredential of {self._settings.api_version}")
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._failure("printed an ExecCredential without a token or a client certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failure("printed only one of client certificate and key")
        headers = credentials.Headers(self._extra)
        if status.token:
            headers = credentials.bearer(credentials.check_token(status.token, self._field), self._extra)
        pair = None
        if status.client_certificate_data:
            pair = KeyPair(status.client_certificate_data.encode(), status.client_key_data.encode())
        return _Held(headers, pair, self._now(), self._expiry(status.expiration_timestamp))

    def _expiry(self, text: str) -> float:
        if not text:
            return float("inf")
        try:
            return timestamp.parse(text) / 1e6
        except timestamp.TimestampError:
            raise self._failure("printed an expirationTimestamp that is no time") from None

    def _failure(self, what: str, *, hint: bool = False) -> CredentialsError:
        advice = f"; {self._settings.install_hint.strip()[:500]}" if hint and self._settings.install_hint else ""
        return CredentialsError(f"{self._field}: {self._command} {what}; run it by hand to see why{advice}")


def _collect(process: subprocess.Popen[bytes], limit: float) -> tuple[bytes, int | None]:
    """Return what a program prints, up to one byte more than allowed, and its exit status, None if the time was up."""
    deadline = time.monotonic() + limit
    parts: list[bytes] = []
    room = LARGEST + 1
    with process, selectors.DefaultSelector() as selector:
        assert process.stdout is not None  # noqa: S101  it was started with a pipe
        selector.register(process.stdout, selectors.EVENT_READ)
        try:
            while room and selector.select(max(0.0, deadline - time.monotonic())):
                if not (part := os.read(process.stdout.fileno(), room)):
                    return b"".join(parts), process.wait(max(0.0, deadline - time.monotonic()))
                parts.append(part)
                room -= len(part)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _kill(process)
    return b"".join(parts), None if room else 0


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program that still runs, and what it has started; one that has ended may leave its number to a stranger."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _check(settings: ExecEntry, field: str) -> None:
    if not settings.command:
        raise ConfigurationError(f"{field}.command is not set; name the credential plugin")
    if settings.api_version not in VERSIONS:
        raise ConfigurationError(
            f"{field}.apiVersion {settings.api_version!r} is not supported; use {' or '.join(VERSIONS)}"
        )
    if settings.interactive_mode == "Always":
        raise ConfigurationError(
            f"{field}.interactiveMode is Always, but nobody can be asked here; use a plugin that can do without"
        )
