"""Who asks: a bearer token or a client certificate. Nobody is anonymous, and whoever is known may do everything."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver import statuses

if TYPE_CHECKING:
    from aiohttp import web

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"


class User(msgspec.Struct, frozen=True):
    """Somebody who is known."""

    name: str
    groups: tuple[str, ...]


class Authenticator:
    """Knows one token, and whoever has a certificate of the cluster's authority."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        self._administrator = User("kubernetes-admin", (MASTERS, AUTHENTICATED))

    def identify(self, request: web.BaseRequest) -> User:
        """Give who sends a request, or refuse it."""
        header = request.headers.get("Authorization")
        if header is not None and hmac.compare_digest(header.encode("utf-8", "replace"), self._expected):
            return self._administrator
        if header is None and (user := _certified(request)) is not None:
            return user
        raise statuses.Problem(401, "Unauthorized")


def _certified(request: web.BaseRequest) -> User | None:
    transport = request.transport
    certificate: dict[str, Any] | None = transport.get_extra_info("peercert") if transport is not None else None
    if not certificate:
        return None
    parts = [pair for relative in certificate.get("subject", ()) for pair in relative]
    name = next((value for key, value in parts if key == "commonName"), "")
    groups = tuple(value for key, value in parts if key == "organizationName")
    return User(name, (*groups, AUTHENTICATED)) if name else None
