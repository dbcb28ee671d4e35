"""Who somebody is, and what they may list, as the API server says: TokenReviews and SubjectAccessReviews."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec
from aiohttp.log import server_logger

from pumice.api import kinds
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN_REVIEW: Final = kinds.Kind(
    name="TokenReview", group="authentication.k8s.io", version="v1", plural="tokenreviews", namespaced=False
)
ACCESS_REVIEW: Final = kinds.Kind(
    name="SubjectAccessReview", group="authorization.k8s.io", version="v1", plural="subjectaccessreviews", namespaced=False
)  # fmt: skip
EVERYBODY: Final = "system:authenticated"
CHANGES_EACH_TIME: Final = "authentication.kubernetes.io/credential-id"
"""What every token of somebody has another of; whoever signs in again is the same person."""


class Person(msgspec.Struct, frozen=True):
    """Somebody as the API server knows them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Question(NamedTuple):
    """Whether something may be listed, in a namespace or in all of them; with a name, whether that one may be read."""

    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class ReviewError(Exception):
    """A review that could not be had just now, or a token that nobody knows; the words are for whoever signs in."""


class Reviews(Protocol):
    """Whoever is asked."""

    async def person(self, token: str) -> Person:
        """Say whose token this is, or raise a `ReviewError`."""

    async def may(self, person: Person, question: Question) -> bool:
        """Say whether somebody may list something, or raise a `ReviewError`."""


class Creating(Protocol):
    """The part of the client that reviews need."""

    async def create(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object."""


class ApiReviews:
    """Asks the API server."""

    def __init__(self, client: Creating) -> None:
        self._client = client

    async def person(self, token: str) -> Person:
        """Say whose token this is, by a TokenReview for the audience of the API server."""
        try:
            status = await self._review(TOKEN_REVIEW, {"token": token})
        except errors.KubeError as error:
            server_logger.warning("a token cannot be checked: %s", error)
            raise ReviewError("the token cannot be checked just now; the log of the page says why") from error
        user = status.get("user") or {}
        if not status.get("authenticated") or not user.get("username"):
            raise ReviewError(
                "the API server does not know this token; it may have ended. "
                "kubectl create token ACCOUNT -n NAMESPACE makes another"
            )
        extra = user.get("extra") or {}
        return Person(
            name=str(user["username"]),
            groups=tuple(user.get("groups") or ()),
            uid=str(user.get("uid") or ""),
            extra=tuple((key, tuple(extra[key])) for key in sorted(extra) if key != CHANGES_EACH_TIME),
        )

    async def may(self, person: Person, question: Question) -> bool:
        """Say whether somebody may list something, by a SubjectAccessReview."""
        asked = {"verb": "get" if question.name else "list", "group": question.group, "resource": question.resource}
        where = {"namespace": question.namespace, "name": question.name}
        spec = {
            "user": person.name,
            "groups": list(person.groups),
            "uid": person.uid,
            "extra": {key: list(values) for key, values in person.extra},
            "resourceAttributes": {**asked, **{key: value for key, value in where.items() if value}},
        }
        try:
            status = await self._review(ACCESS_REVIEW, spec)
        except errors.KubeError as error:
            raise ReviewError(f"what you may see cannot be asked for just now: {error}") from error
        return status.get("allowed") is True

    async def _review(self, kind: kinds.Kind, spec: dict[str, Any]) -> dict[str, Any]:
        manifest = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {}, "spec": spec}
        status = (await self._client.create(kind, manifest)).get("status")
        return status if isinstance(status, dict) else {}


def ends(token: str) -> float | None:
    """Read when a token ends, in seconds since 1970; None where it does not say, or is of a kind that cannot."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
    found = claims.get("exp") if isinstance(claims, dict) else None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def of_certificate(subject: Any) -> Person | None:
    """Take the common name of a certificate for the user and its organisations for the groups, as the API server does; None without a name, or with several."""
    named = [pair for part in subject or () for pair in part]
    name, *others = [value for key, value in named if key == "commonName"] or [""]
    if not name or others:
        return None
    groups = dict.fromkeys([*(value for key, value in named if key == "organizationName"), EVERYBODY])
    return Person(name, tuple(groups))
