"""Make the certificates of one cluster: an authority of its own, a server on loopback, the administrator, whoever else is to be known, and the key of service accounts. Keys never leave their folder."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DAYS: Final = 365
NAMES: Final = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
MASTERS: Final = "system:masters"


class Files:
    """Where the certificates of a cluster are."""

    def __init__(self, folder: Path) -> None:
        self.authority = folder / "ca.crt"
        self.authority_key = folder / "ca.key"
        self.account_key = folder / "sa.key"
        self.server = folder / "server.crt"
        self.server_key = folder / "server.key"
        self.client = folder / "admin.crt"
        self.client_key = folder / "admin.key"

    def complete(self, now: dt.datetime) -> bool:
        """Tell whether all are there and will be good for a day more."""
        paths = (self.authority, self.authority_key, self.account_key, self.server, self.server_key, self.client, self.client_key)  # fmt: skip
        if not all(path.is_file() for path in paths):
            return False
        try:
            found = [
                x509.load_pem_x509_certificate(path.read_bytes()) for path in (self.authority, self.server, self.client)
            ]
        except ValueError:
            return False
        return all(each.not_valid_after_utc > now + dt.timedelta(days=1) for each in found)


def ensure(folder: Path, addresses: Sequence[str] = ("127.0.0.1", "::1")) -> Files:
    """Give the certificates in a folder, made anew where some are missing or about to end."""
    files = Files(folder)
    now = dt.datetime.now(dt.UTC)
    if files.complete(now):
        return files
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority_key, authority = _authority(now)
    alternatives = [x509.DNSName(name) for name in NAMES]
    reached = [*alternatives, *(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses)]
    server_key, server = _issued(authority_key, authority, now, name="kube-apiserver", reached=reached)
    client_key, client = _issued(authority_key, authority, now, name="kubernetes-admin", groups=(MASTERS,))
    _write(files.authority, authority.public_bytes(serialization.Encoding.PEM))
    _write(files.authority_key, _pem(authority_key))
    _write(files.account_key, new_key())
    _write(files.server, server.public_bytes(serialization.Encoding.PEM))
    _write(files.server_key, _pem(server_key))
    _write(files.client, client.public_bytes(serialization.Encoding.PEM))
    _write(files.client_key, _pem(client_key))
    return files


def new_key() -> bytes:
    """Make a key."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def client(files: Files, name: str, groups: Sequence[str] = ()) -> tuple[bytes, bytes]:
    """Issue a certificate for somebody; gives it and its key."""
    key = serialization.load_pem_private_key(files.authority_key.read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{files.authority_key} is no key of an authority of ours")
    authority = x509.load_pem_x509_certificate(files.authority.read_bytes())
    own, issued = _issued(key, authority, dt.datetime.now(dt.UTC), name=name, groups=groups)
    return issued.public_bytes(serialization.Encoding.PEM), _pem(own)


def _authority(now: dt.datetime) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pumice-ca")])
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = (
        _builder(name, name, key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return key, builder.sign(key, hashes.SHA256())


def _issued(
    authority_key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    now: dt.datetime,
    *,
    name: str,
    groups: Sequence[str] = (),
    reached: Sequence[x509.GeneralName] = (),
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = ExtendedKeyUsageOID.SERVER_AUTH if reached else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _builder(subject, authority.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
    )
    if reached:
        builder = builder.add_extension(x509.SubjectAlternativeName(reached), critical=False)
    return key, builder.sign(authority_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=DAYS))
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, data: bytes) -> None:
    """Write a file that nobody else may read, whole or not at all."""
    aside = path.with_suffix(path.suffix + ".new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    aside.replace(path)
