"""Where the certificate comes from: a Secret that all replicas share, or files that somebody else looks after."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any, Final, Protocol

from pumice import plain_files
from pumice.api import kinds
from pumice.kube import errors
from pumice.server.admission import certificates
from pumice.server.admission.certificates import Bundle

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Mapping, Sequence

SECRET: Final = kinds.Kind(name="Secret", group="", version="v1", plural="secrets", namespaced=True)
AUTHORITIES, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
_ATTEMPTS: Final = 5
_LARGEST_FILE: Final = 1 << 20


class CertificateError(Exception):
    """A certificate that cannot be had just now, in words for the operator."""


class Source(Protocol):
    """Gives the certificate that is to be shown now; every so often is soon enough to ask again. One that is patient may come later."""

    pause: float
    patient: bool

    async def read(self) -> Bundle:
        """Return it, or raise a `CertificateError`."""


class SecretWriter(Protocol):
    """The requests that a Secret is looked after with."""

    async def get(self, kind: kinds.Kind, namespace: str, name: str) -> dict[str, Any]:
        """Read an object."""

    async def create(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object."""

    async def patch(self, kind: kinds.Kind, namespace: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a body into an object."""


class SharedSecret:
    """A Secret: whoever finds none, or one that is about to end, makes one, and of two who do so at once the first counts."""

    pause = 30.0
    patient = True

    def __init__(
        self,
        client: SecretWriter,
        place: tuple[str, str],
        host_names: Sequence[str],
        now: Callable[[], dt.datetime],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._namespace, self._name = place
        self._host_names = host_names
        self._now = now
        self._tell = tell
        self._known = b""  # authorities of the last certificate, which is shown while a new one is announced

    async def read(self) -> Bundle:
        """Return the certificate that replicas share, made anew where need be."""
        try:
            for _ in range(_ATTEMPTS):
                found = await self._attempt()
                if found is not None:
                    self._known = found.authorities
                    return found
        except errors.KubeError as error:
            raise CertificateError(f"Secret {self._namespace}/{self._name} cannot be used: {error}") from error
        raise CertificateError(
            f"Secret {self._namespace}/{self._name} was changed by others {_ATTEMPTS} times in a row"
        )

    async def _attempt(self) -> Bundle | None:
        """Read the Secret and write it if it must be; None if somebody else was faster."""
        try:
            secret = await self._client.get(SECRET, self._namespace, self._name)
        except errors.ApiError as error:
            if error.status != 404:
                raise
            return await self._create()
        present = _decoded(secret.get("data"))
        why = certificates.problem(present, self._host_names, self._now())
        if not why:
            return present
        self._tell(f"the certificate is replaced: {why}")
        made = certificates.make(self._host_names, self._now(), present.authorities)
        version = secret["metadata"]["resourceVersion"]
        return await self._written(
            self._client.patch(
                SECRET, self._namespace, self._name, {"metadata": {"resourceVersion": version}, "data": encoded(made)}
            ),
            made,
        )

    async def _create(self) -> Bundle | None:
        self._tell(
            "the Secret is gone; a new certificate is made"
            if self._known
            else "there is no certificate yet; one is made"
        )
        made = certificates.make(self._host_names, self._now(), self._known)
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "kubernetes.io/tls",
            "data": encoded(made),
        }
        return await self._written(self._client.create(SECRET, manifest), made)

    async def _written(self, write: Any, made: Bundle) -> Bundle | None:
        try:
            await write
        except errors.ApiError as error:
            if error.status == 409:
                return None
            raise
        except errors.UnknownOutcomeError:
            return None  # the next look tells what became of it
        return made


class Files:
    """Three files that somebody else looks after, read anew at every look."""

    pause = 10.0
    patient = False

    def __init__(self, authorities: str, certificate: str, key: str) -> None:
        self._paths = (authorities, certificate, key)

    async def read(self) -> Bundle:
        """Return what is in the files now."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> Bundle:
        return Bundle(*map(read_file, self._paths))


def read_file(path: str) -> bytes:
    """Read a file of certificates, as far as one is sensible, or raise a `CertificateError`."""
    try:
        with plain_files.opened(path) as file:
            return file.read(_LARGEST_FILE)
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror}") from None


def encoded(bundle: Bundle) -> dict[str, str]:
    """Return the data of a Secret that holds a bundle."""
    parts = {AUTHORITIES: bundle.authorities, CERTIFICATE: bundle.certificate, KEY: bundle.key}
    return {name: base64.b64encode(value).decode() for name, value in parts.items()}


def _decoded(data: Any) -> Bundle:
    def part(name: str) -> bytes:
        try:
            return base64.b64decode(str((data or {}).get(name, "")), validate=True)
        except (binascii.Error, ValueError):
            return b""

    return Bundle(part(AUTHORITIES), part(CERTIFICATE), part(KEY))
