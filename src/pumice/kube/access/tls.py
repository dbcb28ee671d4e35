"""Certificates: whom we trust, and as whom we come."""

from __future__ import annotations

import os
import ssl
import time
from typing import TYPE_CHECKING, Final

from pumice import plain_files
from pumice.kube.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REREAD: Final = 60.0


LARGEST: Final = 4 << 20  # bytes of a file of certificates


class Pem:
    """PEM text from a file, which is read again from time to time, or from the kubeconfig itself; `field` names it in messages."""

    def __init__(self, field: str, *, path: Path | None = None, data: bytes = b"") -> None:
        self.field = field
        self._path = path
        self._data = data

    def __bool__(self) -> bool:
        return self._path is not None or bool(self._data)

    def __repr__(self) -> str:
        return f"Pem({self.field!r}, {'file ' + str(self._path) if self._path else 'inline' if self._data else 'none'})"

    def read(self) -> bytes:
        """Return the text as it is now."""
        if self._path is None:
            return self._data
        try:
            with plain_files.opened(self._path) as file:
                found = file.read(LARGEST + 1)
        except OSError as error:
            raise ConfigurationError(
                f"{self.field}: cannot read {self._path}: {error.strerror}; check the path and its permissions"
            ) from None
        if len(found) > LARGEST:
            raise ConfigurationError(f"{self.field}: {self._path} is larger than {LARGEST} bytes; this is no PEM")
        return found


class KeyPair:
    """A client certificate and its key; equal pairs are one identity."""

    __slots__ = ("certificate", "key")

    def __init__(self, certificate: bytes, key: bytes) -> None:
        self.certificate = certificate
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyPair) and (self.certificate, self.key) == (other.certificate, other.key)

    def __hash__(self) -> int:
        return hash((self.certificate, self.key))

    def __repr__(self) -> str:
        return "KeyPair(hidden)"


class Tls:
    """The TLS context of a connection, made anew when what it was made of has changed."""

    def __init__(
        self,
        *,
        authority: Pem | None = None,
        certificate: Pem | None = None,
        key: Pem | None = None,
        insecure: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._authority = authority or Pem("certificate-authority")
        self._certificate = certificate or Pem("client-certificate")
        self._key = key or Pem("client-key")
        self.insecure = insecure
        self._now = now
        self._read_at = float("-inf")
        self._parts: tuple[bytes, bytes, bytes] = (b"", b"", b"")
        self._made: tuple[tuple[bytes, KeyPair | None], ssl.SSLContext] | None = None

    def __repr__(self) -> str:
        return f"Tls(insecure={self.insecure}, {self._authority!r}, {self._certificate!r}, {self._key!r})"

    def context(self, pair: KeyPair | None = None) -> ssl.SSLContext:
        """Return the context for new connections; a key pair of a credential plugin stands before the configured one."""
        now = self._now()
        if now - self._read_at >= REREAD:
            self._read(now)
        authority, certificate, key = self._parts
        if pair is None and certificate:
            pair = KeyPair(certificate, key)
        if self._made is None or self._made[0] != (authority, pair):
            self._made = (authority, pair), self._build(authority, pair)
        return self._made[1]

    def reread(self) -> bool:
        """Read files at once, as after a refusal; say whether they have changed."""
        before = self._parts
        if self._made is not None:
            self._read(self._now())
        return before != self._parts

    def _read(self, now: float) -> None:
        """Read all files; once they were good, ones that are being replaced or do not fit together are left for the next time."""
        try:
            parts = self._authority.read(), self._certificate.read(), self._key.read()
            if self._made is not None and parts != self._parts:
                self._build(parts[0], KeyPair(parts[1], parts[2]) if parts[1] else None)
            self._parts = parts
        except ConfigurationError:
            if self._made is None:
                raise
        self._read_at = now

    def _build(self, authority: bytes, pair: KeyPair | None) -> ssl.SSLContext:
        if self.insecure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif authority:
            context = _trusting(authority, self._authority.field)
        else:
            context = ssl.create_default_context()  # reads every authority of the system
        if pair is not None:
            _present(context, pair, self._certificate.field)
        return context


def _trusting(authority: bytes, field: str) -> ssl.SSLContext:
    """Make a context that trusts these authorities and no others."""
    try:
        return ssl.create_default_context(cadata=authority.decode())
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(
            f"{field}: no PEM certificate in its {len(authority)} bytes; it must hold BEGIN CERTIFICATE blocks"
        ) from None


def _present(context: ssl.SSLContext, pair: KeyPair, field: str) -> None:
    """Load a client certificate; the interface takes files only, so for that moment both are in one that is on no disk."""
    with os.fdopen(os.memfd_create("pair"), "wb") as file:
        file.write(pair.certificate + b"\n" + pair.key)
        file.flush()
        try:
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=_no_password)
        except (ssl.SSLError, ValueError):
            raise ConfigurationError(
                f"{field}: certificate and key are not a matching, unencrypted PEM pair; check both, or fetch the credentials anew"
            ) from None


def _no_password() -> str:
    """Refuse an encrypted key instead of asking at the terminal."""
    raise ValueError
