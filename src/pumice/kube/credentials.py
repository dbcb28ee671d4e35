"""Who we are, as the headers of each request: nobody, a token, a token in a file, a name and a password.

Credentials that change are asked for before every request and answer from memory; after a 401 they are told which headers were refused, and
the request is sent once more if there are newer ones. Representations never show a secret.
"""

from __future__ import annotations

import base64
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pumice.kube.tls import KeyPair

REREAD: Final = 60.0
_LARGEST: Final = 1 << 20


class Credentials(Protocol):
    """What a connection authorises its requests with."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers to send; raise `CredentialsError` if there are none to be had."""

    async def key_pair(self) -> KeyPair | None:
        """Return a client certificate that comes with these credentials, if they bring one."""

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Learn that the server refused these headers; say whether it is worth asking for others."""


class Fixed:
    """Headers that never change."""

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self._headers: Mapping[str, str] = MappingProxyType(dict(headers or {}))

    def __repr__(self) -> str:
        return f"Fixed({', '.join(self._headers) or 'anonymous'})"

    async def headers(self) -> Mapping[str, str]:
        """Return the headers."""
        return self._headers

    async def key_pair(self) -> KeyPair | None:
        """Return nothing."""
        return None

    def refused(self, headers: Mapping[str, str]) -> bool:  # noqa: ARG002  there is only one set of headers
        """Say that there are no others."""
        return False


class TokenFile:
    """A bearer token in a file, as kubelets project it: read again each minute, and after the server has refused it."""

    def __init__(
        self, path: Path, *, extra: Mapping[str, str] | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._extra = dict(extra or {})
        self._now = now
        self._read_at = float("-inf")
        self._headers: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    async def headers(self) -> Mapping[str, str]:
        """Return the header with the token as it was within the last minute."""
        now = self._now()
        if self._headers is None or now - self._read_at >= REREAD:
            self._read(now)
        assert self._headers is not None  # noqa: S101  reading raised if there is nothing
        return self._headers

    async def key_pair(self) -> KeyPair | None:
        """Return nothing."""
        return None

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Read the file again if these are the headers of the last reading; say whether the token has changed."""
        if headers is self._headers:
            try:
                self._read(self._now())
            except errors.CredentialsError:
                return False
        return headers is not self._headers

    def _read(self, now: float) -> None:
        try:
            with self._path.open("rb") as file:
                token = check_token(file.read(_LARGEST).strip().decode("ascii"), f"token file {self._path}")
        except (OSError, ValueError) as error:
            if self._headers is not None:
                self._read_at = now
                return
            what = error.strerror if isinstance(error, OSError) else "it holds no plain text"
            raise errors.CredentialsError(
                f"cannot read the token file {self._path}: {what}; check that it is mounted and readable"
            ) from None
        self._read_at = now
        headers = bearer(token, self._extra)
        if headers != self._headers:
            self._headers = headers


def check_token(token: str, source: str) -> str:
    """Return a token that a header can carry, or refuse it without showing it."""
    if not token or not token.isascii() or not token.isprintable():
        what = "is empty" if not token else "has characters that no header can carry"
        raise errors.CredentialsError(f"the token of {source} {what}; fetch a new one")
    return token


def bearer(token: str, extra: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the header for a token, and others with it."""
    return MappingProxyType({"Authorization": f"Bearer {token}", **(extra or {})})


def basic(name: str, password: str, extra: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the header for a name and a password, and others with it."""
    text = base64.b64encode(f"{name}:{password}".encode()).decode()
    return MappingProxyType({"Authorization": f"Basic {text}", **(extra or {})})
