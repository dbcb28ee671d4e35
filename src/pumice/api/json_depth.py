"""How deep JSON is nested, found out before anything is built of it."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

_ESCAPED: Final = re.compile(rb"\\.", re.DOTALL)
_TEXT: Final = re.compile(rb'"[^"]*"')
_OTHERS: Final = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord('"'): 0}


def exceeds(data: bytes, most: int) -> bool:
    """Tell whether lists and objects of a text are nested deeper than so many levels; most texts have no more than that many brackets."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    if b"\\" in data:
        data = _ESCAPED.sub(b"", data)
    brackets = _TEXT.sub(b"", data.translate(None, _OTHERS))
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > most
