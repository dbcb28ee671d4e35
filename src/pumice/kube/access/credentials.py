"""Who we are, as the headers of each request: nobody, a token, a token in a file, a name and a password.

Credentials that change are asked for before every request and answer from memory; after a 401 they are told which headers were refused, and
the request is sent once more if there are newer ones. Representations never show a secret.
"""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pumice.kube.access.tls import KeyPair

REREAD: Final = 60.0
_LARGEST: Final = 1 << 20


class Headers(dict[str, str]):
    """Headers that show only their names."""

    def __repr__(self) -> str:
        return f"Headers({', '.join(self)})"


class Hidden(msgspec.Struct, frozen=True):
    """A record that shows nothing of itself, neither in messages nor in tracebacks with local variables."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hidden)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


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
        self._headers = Headers(headers or {})

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
            self._read(self._now())
        return headers is not self._headers

    def _read(self, now: float) -> None:
        """Read the token; while the file is being replaced the last one stays."""
        try:
            headers = bearer(self._token(), self._extra)
        except errors.CredentialsError:
            if self._headers is None:
                raise
        else:
            if headers != self._headers:
                self._headers = headers
        self._read_at = now

    def _token(self) -> str:
        try:
            with self._path.open("rb") as file:
                text = file.read(_LARGEST).decode("ascii", "replace")
        except OSError as error:
            raise errors.CredentialsError(
                f"cannot read the token file {self._path}: {error.strerror}; check that it is mounted and readable"
            ) from None
        return check_token(text.strip(), f"the file {self._path}")


def check_token(token: str, source: str) -> str:
    """Return a token that a header can carry, or refuse it without showing it."""
    if not token or not token.isascii() or not token.isprintable():
        what = "is empty" if not token else "has characters that no header can carry"
        raise errors.CredentialsError(f"the token of {source} {what}; put a new one there")
    return token


def bearer(token: str, extra: Mapping[str, str] | None = None) -> Headers:
    """Return the header for a token, and others with it."""
    return Headers({"Authorization": f"Bearer {token}", **(extra or {})})


def basic(name: str, password: str, extra: Mapping[str, str] | None = None) -> Headers:
    """Return the header for a name and a password, and others with it."""
    text = base64.b64encode(f"{name}:{password}".encode()).decode()
    return Headers({"Authorization": f"Basic {text}", **(extra or {})})
