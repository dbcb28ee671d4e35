"""Who may look: requests that come from elsewhere are refused before anything is read, and nothing but the files of the page is given to whoever has not signed in."""

from __future__ import annotations

import abc
import asyncio
import hmac
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from aiohttp import web
from aiohttp.log import server_logger

from pumice.web import sight

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pumice.web.sight import Sight

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
LONGEST_TOKEN: Final = 16_384
MOST_BODY: Final = 1 << 15
"""Bytes that are read of somebody who has not signed in."""
PATIENCE: Final = 10.0
"""Seconds in which a body has to be there."""


def refused(status: HTTPStatus, text: str) -> web.Response:
    """Refuse a request; the page shows the text."""
    return web.json_response({"problem": text}, status=status)


class Looker(Protocol):
    """Somebody who has signed in."""

    name: str

    async def arrive(self) -> None:
        """Wait until it is known what they may see."""

    def is_there(self) -> bool:
        """Tell whether they still are."""

    def sight(self) -> Sight:
        """Say what they may see now."""

    def notes(self) -> list[str]:
        """Say what they should know of what they do not see."""


class _Owner:
    """Whoever has the token that was printed sees what the user who started the page may read."""

    name = ""

    async def arrive(self) -> None:
        pass

    def is_there(self) -> bool:
        return True

    def sight(self) -> Sight:
        return sight.EVERYTHING

    def notes(self) -> list[str]:
        return []


OWNER: Final[Looker] = _Owner()


class Guard(abc.ABC):
    """Checks every request; subclasses know the hosts by which a browser may call this server, and whoever has signed in."""

    @abc.abstractmethod
    def listens(self, host: str, port: int) -> None:
        """Hear where the server listens."""

    @abc.abstractmethod
    def called(self, host: str) -> bool:
        """Tell whether this server is called by a name: names of other machines that point here are not answered."""

    @abc.abstractmethod
    def looker(self, request: web.Request) -> Looker | None:
        """Say who asks; None if nobody who has signed in does."""

    @abc.abstractmethod
    async def sign_in(self, request: web.Request) -> web.Response:
        """Exchange what somebody gives for a cookie that scripts cannot read."""

    async def sign_out(self, _request: web.Request) -> web.Response:
        """Forget a cookie, where there are several."""
        return web.json_response({})

    def whose(self, request: web.Request) -> Looker:
        """Say who asks, of whom there is somebody."""
        found = self.looker(request)
        if found is None:
            raise web.HTTPUnauthorized(reason=self.nobody)
        return found

    nobody: str
    """What is said to whoever has not signed in."""

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what comes from elsewhere, and whoever has not signed in."""
        response = await self._answered(request, handler)
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return self._problem(request) or await handler(request)
        except web.HTTPRequestEntityTooLarge as error:
            return refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error.text or "too much at once")
        except (web.HTTPUnauthorized, web.HTTPBadRequest) as error:
            return refused(HTTPStatus(error.status), error.reason)
        except web.HTTPException as error:
            return refused(HTTPStatus(error.status), f"{request.method} {request.path}: {error.reason.lower()}")
        except Exception:
            if request.writer.output_size:
                raise  # too late for another answer: the connection is closed
            server_logger.exception("a request of the page breaks down")
            return refused(HTTPStatus.INTERNAL_SERVER_ERROR, "the answer breaks down; the log of the page says why")

    def _problem(self, request: web.Request) -> web.Response | None:
        host = request.headers.get("Host", "")
        if not self.called(host.lower()):
            return refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server is not called by that name; use the address that was printed, or name it with --web-hosts",
            )
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() != f"{request.scheme}://{host.lower()}":
            return refused(HTTPStatus.FORBIDDEN, "requests from other pages are not answered")
        if request.path.startswith("/api/"):
            if request.headers.get("Sec-Fetch-Site", "") not in _OWN_SITE:
                return refused(HTTPStatus.FORBIDDEN, "requests from other pages are not answered")
            if request.path != OPEN and self.looker(request) is None:
                return refused(HTTPStatus.UNAUTHORIZED, self.nobody)
        return None


class _Given(msgspec.Struct):
    token: str


async def body(request: web.Request, most: int) -> bytes:
    """Read what a request carries, as it is: how its text is encoded is not for a client to say, some encodings take minutes."""
    told = request.content_length
    data = bytearray()
    async with asyncio.timeout(PATIENCE):
        while (told is None or told <= most) and len(data) <= most:
            try:
                piece = await request.content.readany()
            except web.RequestPayloadError as error:
                raise web.HTTPBadRequest(reason="what was sent is not packed as it says") from error
            if not piece:
                return bytes(data)
            data += piece
    raise web.HTTPRequestEntityTooLarge(max_size=most, actual_size=max(told or 0, len(data)))


async def given_token(request: web.Request) -> str:
    """Read the token that somebody gives; empty if there is none that could be one."""
    try:
        token = msgspec.json.decode(await body(request, MOST_BODY), type=_Given).token
    except (msgspec.MsgspecError, ValueError, RecursionError, OSError, web.HTTPException):
        return ""
    return token if token.isascii() and len(token) <= LONGEST_TOKEN else ""


class PrintedToken(Guard):
    """Knows the token that was printed; on loopback, for whoever started the page."""

    nobody = "open the address that was printed, with its token, or sign in"

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self.hosts: frozenset[str] = frozenset()
        self.cookie = "pumice"

    def listens(self, host: str, port: int) -> None:
        """Hear where the server listens."""
        names = {host, "localhost", "127.0.0.1", "::1"}
        self.hosts = frozenset(f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names)
        self.cookie = f"pumice-{port}"  # cookies do not tell ports apart

    def called(self, host: str) -> bool:
        """Tell whether this server is called by a name."""
        return host in self.hosts

    def looker(self, request: web.Request) -> Looker | None:
        """Give the one there is to whoever has the token."""
        return OWNER if self.knows(request.cookies.get(self.cookie, "")) else None

    def knows(self, token: str) -> bool:
        """Tell whether a token is the one that was printed, in a time that says nothing about it."""
        return hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self.token.encode())

    async def sign_in(self, request: web.Request) -> web.Response:
        """Exchange the token for a cookie."""
        if not self.knows(await given_token(request)):
            return refused(
                HTTPStatus.UNAUTHORIZED, "this token is not the one that was printed; a restart prints a new one"
            )
        response = web.json_response({})
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", secure=request.secure, path="/")
        return response
