"""Semantic versions: read strictly, compared by their rules, and brought into form where that is asked for."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 256
_VERSION: Final = re.compile(
    r"(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_LOOSE: Final = re.compile(r"v?(\d{1,19})(?:\.(\d{1,19}))?(?:\.(\d{1,19}))?([-+].*)?", re.ASCII | re.DOTALL)

Order = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]


def canonical(text: str) -> str:
    """Return a version without its build, which tells no two apart; raises a `ValueError` if it is none."""
    match = _VERSION.fullmatch(text[:_LONGEST])
    if match is None or len(text) > _LONGEST:
        raise ValueError(f"{text[:40]!r} is no semantic version")
    pre = match[4]
    for part in pre.split(".") if pre else ():
        if not part or (part.isdigit() and len(part) > 1 and part[0] == "0"):
            raise ValueError(f"{text[:40]!r} is no semantic version")
    return f"{match[1]}.{match[2]}.{match[3]}" + (f"-{pre}" if pre else "")


def normalized(text: str) -> str:
    """Strip a leading v, give a version its three numbers, and take zeros away that lead them."""
    match = _LOOSE.fullmatch(text[:_LONGEST])
    if match is None:
        return text
    numbers = [str(int(part or "0")) for part in (match[1], match[2], match[3])]
    return ".".join(numbers) + (match[4] or "")


def parts(version: str) -> tuple[int, int, int]:
    """Return the three numbers of a canonical version."""
    numbers = version.partition("-")[0].split(".")
    return int(numbers[0]), int(numbers[1]), int(numbers[2])


def order(version: str) -> Order:
    """Return what canonical versions are compared by: one with a pre-release comes before the one without."""
    _, dash, pre = version.partition("-")
    named = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in pre.split("."))
    return parts(version), not dash, named if dash else ()
