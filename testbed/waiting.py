"""Wait for what has to come: so long that a machine of which others take most is still not taken for a fault."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 240.0
_LONGEST_PAUSE = 0.5
_Answer = TypeVar("_Answer")


class NeverError(AssertionError):
    """What was waited for has not come."""


def until(
    question: Callable[[], _Answer],
    tell: Callable[[], object] = str,
    *,
    ended: Callable[[], bool] = bool,
    every: float = 0.05,
) -> _Answer:
    """Ask until the answer is true, and give it; `tell` says what there is to know if it never is, or whoever it depends on has `ended`.

    Where an answer takes long, as that of a program which is started to ask, pauses are four times as long, up to half a second: whoever waits leaves the processor to others.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        in_vain, asked = ended(), time.monotonic()
        if answer := question():
            return answer
        if in_vain:
            raise NeverError(f"it has ended\n{tell()}")
        _be_patient(time.monotonic() < deadline, tell)
        time.sleep(max(every, min(4 * (time.monotonic() - asked), _LONGEST_PAUSE)))


async def soon(question: Callable[[], _Answer], tell: Callable[[], object] = str, *, every: float = 0.02) -> _Answer:
    """Do the same in an event loop, by its clock; the question must not block."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + PATIENCE
    while not (answer := question()):
        _be_patient(clock() < deadline, tell)
        await asyncio.sleep(every)
    return answer


def _be_patient(in_time: bool, tell: Callable[[], object]) -> None:
    if not in_time:
        raise NeverError(f"not within {PATIENCE:g} s\n{tell()}")
