"""Make the certificates and keys of a test cluster with the `openssl` command."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_DAYS = ("-days", "30")
_AUTHORITY = """
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""
_LEAF = """
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = {usage}
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class CertificateError(Exception):
    """The openssl command is missing, or refused."""


class Pair(NamedTuple):
    """A certificate and its private key, both PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority in a folder, and what it has issued beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pair = Pair(folder / "ca.crt", folder / "ca.key")
        settings = folder / "ca.cnf"
        settings.write_text(_AUTHORITY)
        _openssl("req", "-x509", *_KEY, *_DAYS, "-config", settings, "-extensions", "authority", "-subj", "/CN=testbed-ca",
                 "-keyout", self.pair.key, "-out", self.pair.certificate)  # fmt: skip

    def server(self, name: str, hosts: Sequence[str]) -> Pair:
        """Issue a certificate for a server reached under these names and addresses (`DNS:localhost`, `IP:127.0.0.1`)."""
        return self._issue(
            name, f"/CN={name}", _LEAF.format(usage="serverAuth") + f"subjectAltName = {','.join(hosts)}\n"
        )

    def client(self, user: str, groups: Sequence[str] = ()) -> Pair:
        """Issue a certificate that an API server takes as this user in these groups."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        return self._issue(user.replace(":", "-"), subject, _LEAF.format(usage="clientAuth"))

    def _issue(self, name: str, subject: str, extensions: str) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        request, settings = self._folder / f"{name}.csr", self._folder / f"{name}.cnf"
        settings.write_text(extensions)
        _openssl(
            "req",
            "-new",
            *_KEY,
            "-config",
            self._folder / "ca.cnf",
            "-subj",
            subject,
            "-keyout",
            pair.key,
            "-out",
            request,
        )
        _openssl("x509", "-req", *_DAYS, "-in", request, "-CA", self.pair.certificate, "-CAkey", self.pair.key,
                 "-CAcreateserial", "-extfile", settings, "-out", pair.certificate)  # fmt: skip
        return pair


def _openssl(*arguments: str | Path) -> None:
    if shutil.which("openssl") is None:
        raise CertificateError("the openssl command is not on PATH: install it to start an API server")
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CertificateError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
