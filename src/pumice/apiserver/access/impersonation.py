"""Speaking for another: whoever may `impersonate` a user, a group, an account or what else is said of one acts as that one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pumice.apiserver import statuses
from pumice.apiserver.access import users
from pumice.apiserver.access.attributes import Attributes

if TYPE_CHECKING:
    from aiohttp import web

    from pumice.apiserver.access.authorization import Authorizer
    from pumice.apiserver.access.users import User

_PREFIX: Final = "Impersonate-"
_EXTRA: Final = "impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"


def acting(request: web.BaseRequest, user: User, authorizer: Authorizer) -> User:
    """Give whom a request is made for: its sender, or the one it speaks for."""
    headers = request.headers
    if not any(name.startswith(_PREFIX) for name in map(str.title, headers)):
        return user
    name, stated = headers.get("Impersonate-User", ""), headers.getall("Impersonate-Group", [])
    uid, extra = headers.get("Impersonate-Uid", ""), _extra(request)
    if not name:
        if not (stated or uid or extra):
            return user
        message = f"requested {stated or uid or extra} without impersonating a user"
        raise statuses.Problem(500, f"Internal error occurred: {message}")
    parts = users.account_parts(name)
    for wanted in _wanted(name, parts, stated, uid, extra):
        authorizer.check(user, wanted)
    groups = tuple(stated) if stated or parts is None else users.account_groups(parts[0])[:-1]
    common = users.UNAUTHENTICATED if name == users.ANONYMOUS.name else users.AUTHENTICATED
    if not {users.UNAUTHENTICATED, common} & set(groups):
        groups = (*groups, common)
    return users.User(name, groups, uid, tuple((key, tuple(values)) for key, values in sorted(extra.items())))


def _wanted(
    name: str, parts: tuple[str, str] | None, groups: list[str], uid: str, extra: dict[str, list[str]]
) -> list[Attributes]:
    """Give what the sender must be allowed, one by one."""
    if parts is None:
        found = [Attributes(verb="impersonate", resource="users", name=name)]
    else:
        found = [Attributes(verb="impersonate", resource="serviceaccounts", namespace=parts[0], name=parts[1])]
    found += [Attributes(verb="impersonate", resource="groups", name=group) for group in groups]
    found += [
        Attributes(verb="impersonate", group=_GROUP, resource="userextras", subresource=key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        found.append(Attributes(verb="impersonate", group=_GROUP, resource="uids", name=uid))
    return found


def _extra(request: web.BaseRequest) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        if name.lower().startswith(_EXTRA):
            found.setdefault(unquote(name.lower().removeprefix(_EXTRA)), []).append(value)
    return found
