"""Who may look: requests that come from elsewhere are refused before anything is read, and nothing but the files of the page is given to whoever has not signed in."""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OWN_SITE: Final = ("", "same-origin", "none")
OPEN: Final = "/api/session"
"""The one path below /api/ that is open to whoever has not signed in."""


def refused(status: HTTPStatus, text: str) -> web.Response:
    """Refuse a request; the page shows the text."""
    return web.json_response({"problem": text}, status=status)


class Guard:
    """Knows the token that was printed, and the hosts by which a browser may call this server."""

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self.hosts: frozenset[str] = frozenset()
        self._cookie = "pumice"

    def listens(self, host: str, port: int) -> None:
        """Hear where the server listens: names of other machines that point here are not answered."""
        names = {host, "localhost", "127.0.0.1", "::1"}
        self.hosts = frozenset(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names)
        self._cookie = f"pumice-{port}"  # cookies do not tell ports apart

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what comes from elsewhere, and whoever has not signed in."""
        problem = self._problem(request)
        response = problem or await _answered(request, handler)
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    def _problem(self, request: web.Request) -> web.Response | None:
        host = request.headers.get("Host", "")
        if host.lower() not in self.hosts:
            return refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server is not called by that name; use the address that was printed",
            )
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() != f"{request.scheme}://{host.lower()}":
            return refused(HTTPStatus.FORBIDDEN, "requests from other pages are not answered")
        if request.path.startswith("/api/"):
            if request.headers.get("Sec-Fetch-Site", "") not in _OWN_SITE:
                return refused(HTTPStatus.FORBIDDEN, "requests from other pages are not answered")
            if request.path != OPEN and not self.knows(request.cookies.get(self._cookie, "")):
                return refused(HTTPStatus.UNAUTHORIZED, "open the address that was printed, with its token, or sign in")
        return None

    def knows(self, token: str) -> bool:
        """Tell whether a token is the one that was printed, in a time that says nothing about it."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    async def sign_in(self, request: web.Request) -> web.Response:
        """Exchange the token for a cookie that scripts cannot read."""
        try:
            given = await request.json()
        except ValueError:
            given = None
        token = given.get("token") if isinstance(given, dict) else None
        if not isinstance(token, str) or not self.knows(token):
            return refused(
                HTTPStatus.UNAUTHORIZED, "this token is not the one that was printed; a restart prints a new one"
            )
        response = web.json_response({})
        response.set_cookie(self._cookie, self.token, httponly=True, samesite="Strict", secure=request.secure, path="/")
        return response


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        return refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error.text or "too much at once")
    except web.HTTPException as error:
        return refused(HTTPStatus(error.status), f"{request.method} {request.path}: {error.reason.lower()}")
