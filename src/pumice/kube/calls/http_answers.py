"""The answer to a request over HTTP/1.1, put together from bytes that were cut anywhere; no input or output.

```
 head ──▶ body of a known length ─────────────────────▶ done
   ▲ └──▶ size of a chunk ──▶ chunk ──▶ its end ─┐
   │        ▲   └ 0 ──▶ trailers ────────────────┼────▶ done
  1xx       └────────────────────────────────────┘
     └──▶ body that lasts as long as the connection ──▶ done when that ends
```

Only as much of HTTP is understood as servers use to answer requests for JSON. Whatever else arrives is refused: a wrong guess about where an answer ends would
take the next one for a part of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_HEAD: Final = 1 << 16
_LONGEST_SIZE: Final = 1 << 10  # bytes of the line before a chunk, what extends it included

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?")
_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_END: Final = b"\r\n"


class GarbledAnswerError(Exception):
    """Bytes that are no answer."""


class Answer:
    """An answer that arrives: its parts pile up until somebody takes them, at most `most` bytes of them all told if they are counted."""

    __slots__ = ("_bodiless", "_held", "_left", "_most", "_next", "done", "headers", "keeps", "parts", "size", "status")

    def __init__(self, most: int | None, *, bodiless: bool = False) -> None:
        self.status = 0  # until the head has arrived
        self.headers: dict[str, str] = {}  # names in lower case
        self.parts: list[bytes] = []
        self.size = 0
        self.done = False
        self.keeps = False  # whether the connection serves more requests after this one
        self._most = most
        self._bodiless = bodiless
        self._held = b""
        self._left = 0
        self._next: Callable[[bytes], bytes] = self._head

    @property
    def body(self) -> bytes:
        """What has arrived and was not taken."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    def take(self) -> bytes:
        """Give what has arrived since the last time."""
        body = self.body
        self.parts.clear()
        return body

    def feed(self, data: bytes) -> None:
        """Take bytes from the connection."""
        rest = self._held + data if self._held else data
        self._held = b""
        while rest:
            if self.done:
                self.keeps = False  # nobody has asked for more
                return
            rest = self._next(rest)

    def end(self) -> None:
        """Learn that the connection has ended."""
        if self.status and self._next == self._rest:
            self.done = True
        if not self.done:
            raise GarbledAnswerError("the connection ended within the answer")

    # -- the head ----------------------------------------------------------------------------------------------

    def _head(self, data: bytes) -> bytes:
        head, found, rest = data.partition(b"\r\n\r\n")
        if len(head) > LARGEST_HEAD:
            raise GarbledAnswerError(f"the head of the answer has more than {LARGEST_HEAD} bytes")
        if not found:
            return self._hold(data)
        first, _, lines = head.partition(_END)
        status = _STATUS_LINE.fullmatch(first)
        if status is None:
            raise GarbledAnswerError("the answer does not begin as one of HTTP/1.1 does")
        number = int(status[2])
        if number == 101:
            raise GarbledAnswerError("the server wants to speak something else than HTTP/1.1")
        if number >= 200:
            self.status = number
            self.headers = _headers(lines)
            self._find_body(persistent=status[1] == b"1")
        return rest

    def _find_body(self, *, persistent: bool) -> None:
        """Find out how the body is delimited."""
        headers = self.headers
        self.keeps = persistent and "close" not in headers.get("connection", "").lower()
        encoding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if self._bodiless or self.status in (204, 304):
            self.done = True
        elif encoding is not None:
            if encoding.lower() != "chunked" or length is not None:
                raise GarbledAnswerError("it is not clear where the answer ends")
            self._next = self._chunk_size
        elif length is not None:
            if _DIGITS.fullmatch(length) is None:
                raise GarbledAnswerError("the length of the answer is no number")
            self._left = int(length)
            if self._most is not None and self._left > self._most:
                raise errors.OversizeError(f"the answer has {length} bytes; at most {self._most} are read")
            self._next = self._body
            self.done = self._left == 0
        else:
            self.keeps = False
            self._next = self._rest

    # -- the body ----------------------------------------------------------------------------------------------

    def _body(self, data: bytes) -> bytes:
        rest = self._piece(data)
        self.done = self._left == 0
        return rest

    def _rest(self, data: bytes) -> bytes:
        self._left = len(data)
        return self._piece(data)

    def _chunk_size(self, data: bytes) -> bytes:
        line, found, rest = data.partition(_END)
        if len(line) > _LONGEST_SIZE:
            raise GarbledAnswerError("the size of a chunk is no number")
        if not found:
            return self._hold(data)
        size = _SIZE.fullmatch(line)
        if size is None:
            raise GarbledAnswerError("the size of a chunk is no number")
        self._left = int(size[1], 16)
        self._next = self._chunk if self._left else self._trailers
        return rest

    def _chunk(self, data: bytes) -> bytes:
        rest = self._piece(data)
        if not self._left:
            self._next = self._chunk_end
        return rest

    def _chunk_end(self, data: bytes) -> bytes:
        if len(data) < len(_END):
            return self._hold(data)
        if not data.startswith(_END):
            raise GarbledAnswerError("a chunk is longer than was said")
        self._next = self._chunk_size
        return data[len(_END) :]

    def _trailers(self, data: bytes) -> bytes:
        line, found, rest = data.partition(_END)
        self._left += len(line)
        if self._left > LARGEST_HEAD:
            raise GarbledAnswerError(f"what follows the answer has more than {LARGEST_HEAD} bytes")
        if not found:
            self._left -= len(line)
            return self._hold(data)
        self.done = not line
        return rest

    def _piece(self, data: bytes) -> bytes:
        """Take a piece of the body."""
        piece, rest = (data, b"") if len(data) <= self._left else (data[: self._left], data[self._left :])
        self._left -= len(piece)
        self.size += len(piece)
        if self._most is not None and self.size > self._most:
            raise errors.OversizeError(f"the answer has more than {self._most} bytes, which is all that is read")
        self.parts.append(piece)
        return rest

    def _hold(self, data: bytes) -> bytes:
        """Wait for more."""
        self._held = data
        return b""


def _headers(lines: bytes) -> dict[str, str]:
    """Read the lines of a head; of a name that comes twice the values are joined, and lengths must then agree."""
    headers: dict[str, str] = {}
    if not lines:
        return headers
    text = lines.decode("latin-1")
    each = text.split("\r\n")
    if "\0" in text or text.count("\n") >= len(each):
        raise GarbledAnswerError("a line in the head of the answer holds what no line can hold")
    for line in each:
        name, found, value = line.partition(":")
        if not found or not name or " " in name or "\t" in name:
            raise GarbledAnswerError("a line in the head of the answer is no header")
        name = name.lower()
        if name not in headers:
            headers[name] = value.strip(" \t")
        elif name != "content-length" or headers[name] != value.strip(" \t"):
            headers[name] += ", " + value.strip(" \t")
    return headers
