"""Everything there is to know before an API server can be spoken to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.kube import errors
from pumice.kube.access import proxies
from pumice.kube.access.credentials import Credentials, Fixed
from pumice.kube.access.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Mapping


class Scheduled(msgspec.Struct, frozen=True):
    """What is known of the scheduler of a cluster: whose pods it schedules, and the file of its configuration; what is empty is not known."""

    names: tuple[str, ...] = ()
    configuration: str = ""


class Connection:
    """An API server, how to trust it, and who we are there; `origin` says where that was found, for messages, and `scheduled` what is known of its scheduler."""

    def __init__(
        self,
        server: str,
        *,
        tls: Tls | None = None,
        tls_server_name: str = "",
        proxy_url: str = "",
        namespace: str = "default",
        credentials: Credentials | None = None,
        origin: str = "",
        scheduled: Scheduled | None = None,
    ) -> None:
        self.server = server.rstrip("/")
        self.tls = tls or Tls()
        self.tls_server_name = tls_server_name
        self.proxy_url = proxy_url
        self.namespace = namespace
        self.credentials: Credentials = credentials or Fixed()
        self.origin = origin
        self.scheduled = scheduled or Scheduled()

    def __repr__(self) -> str:
        return f"Connection({self.server!r}, {self.origin!r}, {self.tls!r}, {self.credentials!r})"

    def refused(self, headers: Mapping[str, str]) -> bool:
        """Learn that the server did not accept these headers and our certificate; say whether there are newer ones to try."""
        newer_headers = self.credentials.refused(headers)
        return self.tls.reread() or newer_headers

    @property
    def encrypted(self) -> bool:
        """Whether the server is spoken to over TLS."""
        return self.server.startswith("https://")


def checked_server(text: str, field: str, *, encrypted: bool = False) -> str:
    """Return a server's address as a URL, or say what is wrong with it; without a scheme it is `encrypted` that decides."""
    url = text if "://" in text else f"{'https' if encrypted else 'http'}://{text}"
    parts = proxies.split(url)
    if parts.scheme not in proxies.SCHEMES or not parts.hostname:
        raise errors.ConfigurationError(f"{field}: not the address of a server; write it as https://HOST:PORT")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise errors.ConfigurationError(
            f"{field}: the address of {parts.hostname} must not hold a user, a query or a fragment; "
            "put credentials in the users section"
        )
    return url.rstrip("/")
