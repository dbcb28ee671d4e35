"""Takes JSON apart that is nested more deeply than the decoder goes.

One such object (a custom resource may keep whatever its author likes) must not make a whole list unreadable. Only texts on which the decoder has
given up come here; they are walked token by token, so depth costs nothing.
"""

from __future__ import annotations

import re
from typing import Final

# A text without its end is one token, and nothing is tried twice, so that every text is walked once.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{},:]', re.DOTALL)
_OPENING: Final = (b"[", b"{")
_CLOSING: Final = (b"]", b"}")


def cut(text: bytes, field: str) -> tuple[bytes, bytes]:
    """Take an object or a list out of a JSON object: the text with `null` in its place, and the field's own text, empty if there is none."""
    wanted, depth, key, start = f'"{field}"'.encode(), 0, b"", -1
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in _OPENING:
            if depth == 1 and key == wanted:
                start = match.start()
            depth += 1
        elif token in _CLOSING:
            depth -= 1
            if depth == 1 and start >= 0:
                return text[:start] + b"null" + text[match.end() :], text[start : match.end()]
        elif depth == 1 and token not in (b",", b":"):
            key = token
    return text, b""


def elements(text: bytes) -> list[bytes]:
    """Return the texts of the objects and lists in a JSON list."""
    depth, start, found = 0, 0, []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in _OPENING:
            if depth == 1:
                start = match.start()
            depth += 1
        elif token in _CLOSING:
            depth -= 1
            if depth == 1:
                found.append(text[start : match.end()])
    return found
