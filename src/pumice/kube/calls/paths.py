"""Paths of the API, from kinds and names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api.kinds import Kind

_PLAIN: Final = re.compile(r"[a-z0-9-][a-z0-9.-]*")


def path(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a collection, an object or a subresource; a namespaced kind without a namespace means all of them."""
    parts = ["/apis", kind.group, kind.version] if kind.group else ["/api", kind.version]
    if kind.namespaced and namespace:
        parts += ["namespaces", _segment(namespace)]
    parts.append(kind.plural)
    if name:
        parts.append(_segment(name))
    if subresource:
        parts.append(_segment(subresource))
    return "/".join(parts)


def with_query(path: str, query: Mapping[str, str | int | bool] | None) -> str:
    """Append a query; booleans are written as the API server reads them."""
    if not query:
        return path
    pairs = [(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in query.items()]
    return f"{path}?{urlencode(pairs, quote_via=quote)}"


def _segment(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text  # as almost every name is
    if text in (".", ".."):
        raise ValueError(f"{text!r} is not a name of an object")
    return quote(text, safe="")
