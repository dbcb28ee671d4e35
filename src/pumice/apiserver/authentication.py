"""Who asks: a client certificate, the administrator's token, or the token of a service account. Whoever shows nothing is anonymous."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from pumice.apiserver import statuses
from pumice.apiserver.access import tokens, users

if TYPE_CHECKING:
    from aiohttp import web

    from pumice.apiserver.access.tokens import Tokens
    from pumice.apiserver.access.users import User


class Authenticator:
    """Knows one token, whoever has a certificate of the cluster's authority, and the tokens that the cluster has issued."""

    def __init__(self, token: str, issued: Tokens | None = None) -> None:
        self.expect(token)
        self._administrator = users.User("kubernetes-admin", (users.MASTERS, users.AUTHENTICATED))
        self._issued = issued

    def expect(self, token: str) -> None:
        """Accept this token from now on, and no longer the one before."""
        self._expected = token.encode()

    def identify(self, request: web.BaseRequest) -> User:
        """Give who sends a request; a token that is shown and not good is refused."""
        header = request.headers.get("Authorization", "")
        if header[:7].lower() == "bearer " and self._is_administrators(header[7:]):
            return self._administrator
        if (user := _certified(request)) is not None:
            return user
        if header[:7].lower() != "bearer " or not header[7:].strip():
            return users.ANONYMOUS
        try:
            return self.of_token(header[7:].strip())[0]
        except tokens.TokenError:
            raise statuses.Problem(401, "Unauthorized") from None

    def of_token(self, token: str, audiences: tuple[str, ...] = (tokens.ISSUER,)) -> tuple[User, list[str]]:
        """Give whom a token is of, and for which audiences; raise `TokenError` for one that is not good."""
        if self._is_administrators(token):
            return self._administrator, list(audiences)
        if self._issued is None:
            raise tokens.TokenError("no tokens are issued")
        return self._issued.user(token, audiences)

    def _is_administrators(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._expected)


def _certified(request: web.BaseRequest) -> User | None:
    transport = request.transport
    certificate: dict[str, Any] | None = transport.get_extra_info("peercert") if transport is not None else None
    if not certificate:
        return None
    parts = [pair for relative in certificate.get("subject", ()) for pair in relative]
    name = next((value for key, value in parts if key == "commonName"), "")
    groups = tuple(value for key, value in parts if key == "organizationName")
    return users.User(name, (*groups, users.AUTHENTICATED)) if name else None
