"""What is sent to an API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_READS: Final = frozenset(("GET", "HEAD"))
_WITH_BODY: Final = frozenset(("POST", "PUT", "PATCH"))


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A path with its query, and a body that is bytes already."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = ""

    @property
    def write(self) -> bool:
        """Whether it may change something."""
        return self.method not in _READS

    @property
    def title(self) -> str:
        """What messages call it: the method and the path without its query."""
        return f"{self.method} {self.path.partition('?')[0]}"


class Head:
    """The headers of many requests, as a map and as they are sent; it shows nothing of them."""

    __slots__ = ("_lines", "headers")

    def __init__(self, host: str, headers: Mapping[str, str]) -> None:
        self.headers = headers
        lines = [f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
        if any(not line.isprintable() for line in lines):
            raise ValueError("a header has characters that none can carry")
        self._lines = "\r\n".join(lines).encode()

    def written(self, request: Request, prefix: str) -> bytes:
        """Return a request as it is sent to a server whose paths begin like this."""
        body = request.body
        first = f"{request.method} {prefix}{request.path} HTTP/1.1\r\n".encode()
        if body is None and request.method not in _WITH_BODY:
            return b"%b%b\r\n\r\n" % (first, self._lines)
        return b"%b%b\r\nContent-Length: %d\r\n\r\n%b" % (first, self._lines, len(body or b""), body or b"")
