"""How many examples tests draw: a few in a normal run, which is to end soon, and all of them where `PUMICE_FUZZ` is set (`make fuzz`); and numbers that look like any."""

from __future__ import annotations

import os
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FUZZ = bool(os.environ.get("PUMICE_FUZZ"))


def drawn(many: int, few: int = 0) -> int:
    """Return how many of so many examples this run draws; `few`, or a quarter, in a normal one."""
    return many if FUZZ else few or -(-many // 4)


def seeds(many: int, *few: int) -> Sequence[int]:
    """Return the seeds of this run: the first so many, or in a normal one a few of them, in which that happens which a test is about."""
    return range(many) if FUZZ else few


def number_by(*parts: object) -> int:
    """Return a number that depends on nothing but the parts, in any process."""
    return zlib.crc32(repr(parts).encode())
