"""Certificates of our servers: made, looked at, and shown. An authority signs one certificate and its key is thrown away at once.

A new certificate therefore comes with a new authority. The old one stays in the bundle until it ends, so that a replica which still shows the old
certificate is believed as well.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

AUTHORITY: Final = "pumice-admission-ca"
LIFETIME: Final = dt.timedelta(days=365)
MARGIN: Final = dt.timedelta(days=90)  # before its end a certificate is replaced
_LONGEST_NAME: Final = 64  # of a common name


class Bundle(msgspec.Struct, frozen=True):
    """A certificate with its key, and the authorities that clients shall trust; all of it PEM."""

    authorities: bytes
    certificate: bytes
    key: bytes


def make(host_names: Sequence[str], now: dt.datetime, before: bytes = b"", authority_called: str = AUTHORITY) -> Bundle:
    """Make a certificate for some names; authorities that were trusted before are kept while they are good."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority_called)])
    key_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _builder(authority_name, authority_name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signing(), critical=True)
        .add_extension(key_id, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host_names[0][:_LONGEST_NAME])])
    signer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id)
    certificate = (
        _builder(subject, authority_name, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_reached(name) for name in host_names]), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    trusted = [authority, *(each for each in read_all(before) if each.not_valid_after_utc > now)][:3]
    return Bundle(b"".join(each.public_bytes(pem) for each in trusted), certificate.public_bytes(pem), secret)


def load(context: ssl.SSLContext, bundle: Bundle) -> None:
    """Load a certificate into a context; Python reads keys from files alone, so they are in a private folder for a moment."""
    with tempfile.TemporaryDirectory(prefix="pumice-certificate-") as folder:
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(bundle.certificate)
        key.touch(mode=0o600)
        key.write_bytes(bundle.key)
        context.load_cert_chain(certificate, key)


def problem(bundle: Bundle, host_names: Sequence[str], now: dt.datetime) -> str:
    """Say why a certificate must be replaced, or nothing."""
    try:
        certificate = x509.load_pem_x509_certificate(bundle.certificate)
        key = serialization.load_pem_private_key(bundle.key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        return f"it cannot be read: {error}"
    shape = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*shape) != certificate.public_key().public_bytes(*shape):
        return "its key is that of another certificate"
    missing = set(host_names) - names_of(certificate)
    if missing:
        return f"it is not for {', '.join(sorted(missing))}"
    if not any(signed(certificate, each) for each in read_all(bundle.authorities)):
        return "no authority beside it has signed it"
    left = certificate.not_valid_after_utc - now
    whole = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    if left < min(MARGIN, whole / 3):
        return f"it ends at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    return ""


def issuers(bundle: Bundle) -> bytes:
    """Give those of the authorities that have signed the certificate; all of them where that cannot be told."""
    try:
        certificate = x509.load_pem_x509_certificate(bundle.certificate)
    except ValueError:
        return bundle.authorities
    found = [each for each in read_all(bundle.authorities) if signed(certificate, each)]
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in found) or bundle.authorities


def ends(bundle: Bundle) -> str:
    """Say when a certificate ends, for the log."""
    return f"{x509.load_pem_x509_certificate(bundle.certificate).not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"


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
        .not_valid_after(now + LIFETIME)
    )


def _signing() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _reached(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def names_of(certificate: x509.Certificate) -> set[str]:
    """Return the names and addresses that a certificate is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Tell whether a certificate was signed by an authority."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def read_all(pem: bytes) -> list[x509.Certificate]:
    """Read certificates one after the other; none if they cannot be read."""
    try:
        return x509.load_pem_x509_certificates(pem) if pem.strip() else []
    except ValueError:
        return []
