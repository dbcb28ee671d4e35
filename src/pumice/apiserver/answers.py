"""Answers as they travel: JSON with a code, warnings and the headers that clients heed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver import statuses

_encode = msgspec.json.Encoder().encode


def json(document: Mapping[str, Any], code: int = 200) -> web.Response:
    """Give a document."""
    return web.Response(body=_encode(document), status=code, content_type="application/json")


def raw(data: bytes, code: int = 200) -> web.Response:
    """Give a document that is encoded already."""
    return web.Response(body=data, status=code, content_type="application/json")


def problem(found: statuses.Problem) -> web.Response:
    """Give a refusal."""
    response = json(found.status(), found.code)
    if found.code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if found.code == 413:
        response.force_close()  # the rest of the body is not read
    if found.code == 429:
        response.headers["Retry-After"] = "10"
    elif "retryAfterSeconds" in (found.details or {}):
        response.headers["Retry-After"] = "1"
    return response


def warn(response: web.StreamResponse, warnings: list[str]) -> None:
    """Add what the client should know though its request was done."""
    for text in warnings[:50]:
        response.headers.add("Warning", f'299 - "{_quoted(text)}"')


def _quoted(text: str) -> str:
    plain = "".join(char if char.isprintable() and ord(char) < 127 else "?" for char in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')[:1000]
