"""Names and hashes in the alphabet of Kubernetes, without chance: the same owner and number give the same name, so a wish that is uttered twice is one object.

A number whose pod has been seen is spent, so no pod has the name of one before it (`queueing/name_book.py`).
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.controllers.queueing.observed import Observed

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST: Final = 58  # of a name before its suffix, as the API server has it for names that it makes up


def suffix(*parts: object) -> str:
    """Give five letters that depend on the parts alone."""
    number = int.from_bytes(hashlib.blake2s("/".join(map(str, parts)).encode(), digest_size=8).digest(), "big")
    letters = ""
    for _ in range(5):
        number, rest = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[rest]
    return letters


def free_names(prefix: str, namespace: str, uid: str, observed: Observed, *parts: object) -> Iterator[str]:
    """Give names for pods of an owner that no pod has had, those first that come first."""
    origin = observed.names.origin(uid)
    for number in observed.names.free(uid, parts):
        found = prefix[:_LONGEST] + suffix(uid, *([origin] if origin else ()), *parts, number)
        observed.names.ask(uid, parts, number, found)
        if observed.find(kinds.POD, namespace, found) is None:
            yield found
        else:
            observed.names.spend(uid, found)


def template_hash(template: Any, collisions: int = 0) -> str:
    """Give the hash of a pod template as names and labels carry it: FNV-1a of 32 bits, in letters that spell no words."""
    value = 0x811C9DC5
    for byte in json.dumps([template, collisions] if collisions else template, sort_keys=True).encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))
