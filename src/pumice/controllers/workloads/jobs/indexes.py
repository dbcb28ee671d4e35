"""Completion indexes as Jobs write them: "0,2-5,7"."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse(text: object, most: int) -> set[int]:
    """Read indexes below a number; what cannot be read counts as nothing."""
    found: set[int] = set()
    for part in str(text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first), most - 1) + 1))
    return found


def write(indexes: Iterable[int]) -> str:
    """Write indexes, runs of three and more as ranges."""
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(indexes), None]:
        if index is not None and run and index == run[-1] + 1:
            run.append(index)
            continue
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts += map(str, run)
        run = [] if index is None else [index]
    return ",".join(parts)
