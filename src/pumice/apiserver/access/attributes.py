"""What a request would do, as roles speak of it: read off its method and path, before anything else is known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.apiserver import selectors, statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.access.users import User

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_OF_NAMESPACES: Final = frozenset({"status", "finalize"})


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody would do: to a resource, or to a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """Give the resource with its subresource, as rules name them."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def of_request(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Read what a request would do; a path is taken apart as by whoever serves it, empty parts included."""
    parts = path.strip("/").split("/")
    start = {"api": 2, "apis": 3}.get(parts[0], 0)
    if not start or len(parts) <= start:
        return Attributes(verb=method.lower(), path=path)
    group, rest = ("" if start == 2 else parts[1]), parts[start:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    verb = _verb(method, query, named=bool(name))
    if not name and verb in ("list", "watch"):
        name = _selected(query.get("fieldSelector", ""))
    return Attributes(
        verb=verb,
        group=group,
        resource=rest[0],
        subresource="/".join(rest[2:3]),
        namespace=namespace,
        name=name,
    )


def _verb(method: str, query: Mapping[str, str], *, named: bool) -> str:
    if method in ("GET", "HEAD"):
        return "get" if named else "watch" if query.get("watch") in _TRUE else "list"
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    return _VERBS.get(method, method.lower())


def _selected(text: str) -> str:
    try:
        return selectors.named(text)
    except statuses.Problem:  # whoever serves the list says so
        return ""


def refusal(user: User, wanted: Attributes, reason: str) -> statuses.Problem:
    """Say that somebody may not do something, in the words of kube-apiserver."""
    tail = f": {reason}" if reason else ""
    if wanted.path:
        return statuses.Problem(403, f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"{tail}')
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    why = f'User "{user.name}" cannot {wanted.verb} resource "{wanted.full_resource}" in API group "{wanted.group}" {where}{tail}'
    head = statuses.qualified(wanted.resource, wanted.group) + (f' "{wanted.name}"' if wanted.name else "")
    details = {"kind": wanted.resource}
    details |= {"name": wanted.name} if wanted.name else {}
    details |= {"group": wanted.group} if wanted.group else {}
    return statuses.Problem(403, f"{head} is forbidden: {why}", details=details)
