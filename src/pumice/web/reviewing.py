"""The guard inside a cluster: whoever comes shows a token that the API server knows, or a certificate of an authority that was named, and sees what they may list."""

from __future__ import annotations

import math
import ssl
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from pumice.web import guarding, reviews
from pumice.web.guarding import Guard, refused
from pumice.web.reviews import ReviewError
from pumice.web.sessions import Attempts, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pumice.web.access import Access
    from pumice.web.guarding import Looker
    from pumice.web.reviews import Person, Reviews
    from pumice.web.sight import Sight

COOKIE: Final = "__Host-pumice"
LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")
"""Names by which a port that is forwarded is called."""


class _Viewer:
    """Somebody whom the API server knows."""

    def __init__(self, person: Person, access: Access, is_there: Callable[[], bool]) -> None:
        self.name = person.name
        self._person, self._access = person, access
        self.is_there = is_there

    async def arrive(self) -> None:
        await self._access.meet(self._person)

    def sight(self) -> Sight:
        return self._access.sight(self._person)

    def notes(self) -> list[str]:
        return self._access.notes(self._person)


class Reviewed(Guard):
    """Takes tokens and certificates; `hosts` are the names by which browsers call this server, whatever the port."""

    nobody = "sign in with a token of this cluster"

    def __init__(self, asked: Reviews, access: Access, hosts: Collection[str]) -> None:
        self._reviews = asked
        self._access = access
        self._hosts = frozenset({*(each.lower() for each in hosts), *LOCAL})
        self.sessions = Sessions()
        self.attempts = Attempts()

    def listens(self, host: str, port: int) -> None:
        """Hear where the server listens, which says nothing about how it is called."""

    def called(self, host: str) -> bool:
        """Tell whether this server is called by a name."""
        name, colon, port = host.rpartition(":")
        return (name if colon and port.isdigit() else host) in self._hosts

    def looker(self, request: web.Request) -> Looker | None:
        """Say who asks: whoever has a session, else whoever shows a certificate."""
        given = request.cookies.get(COOKIE, "")
        session = self.sessions.find(given) if given else None
        if session is not None:
            return _Viewer(session.person, self._access, lambda: self.sessions.find(given) is not None)
        transport = request.transport
        certificate = None if transport is None else transport.get_extra_info("peercert")
        person = reviews.of_certificate(certificate.get("subject")) if certificate else None
        if certificate is None or person is None:
            return None
        ends = ssl.cert_time_to_seconds(certificate["notAfter"])
        if time.time() >= ends:
            return None  # it was good when the connection began
        return _Viewer(person, self._access, lambda: time.time() < ends)

    async def sign_in(self, request: web.Request) -> web.Response:
        """Exchange a token that the API server knows for a cookie."""
        address = request.remote or ""
        if wait := self.attempts.wait(address):
            return _too_many(wait)
        token = (await guarding.given_token(request)).strip()
        if not token:
            return refused(HTTPStatus.UNAUTHORIZED, "give a token; kubectl create token ACCOUNT -n NAMESPACE makes one")
        if wait := self.attempts.wait_for_all():
            return _too_many(wait)
        try:
            person = await self._reviews.person(token)
        except ReviewError as error:
            return refused(HTTPStatus.UNAUTHORIZED, str(error))
        self.attempts.succeeded(address)
        await self._access.meet(person)
        response = web.json_response({"user": person.name})
        self.sessions.end(request.cookies.get(COOKIE, ""))
        made = self.sessions.begin(person, reviews.ends(token))
        response.set_cookie(COOKIE, made, httponly=True, samesite="Strict", secure=True, path="/")
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        """Forget a session."""
        self.sessions.end(request.cookies.get(COOKIE, ""))
        response = web.json_response({})
        response.del_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
        return response


def _too_many(wait: float) -> web.Response:
    return refused(HTTPStatus.TOO_MANY_REQUESTS, f"too many attempts; try again in {math.ceil(wait)} s")
