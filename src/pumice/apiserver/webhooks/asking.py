"""Writes that may have to ask others: generators that yield calls and go on with what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pumice.apiserver import statuses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_Result = TypeVar("_Result")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a webhook: where it goes, whom its certificate must name, and what is sent."""

    webhook: str
    url: str  # as messages name it
    address: str  # where that is to be found
    server_name: str
    authorities: str  # in base64, or those of the system
    seconds: int
    body: bytes


class Outcome(msgspec.Struct, frozen=True):
    """What came of a call: an answer, or why there is none."""

    answer: Any = None
    failure: str = ""


Asking = Generator[list[Call], list[Outcome], _Result]


def at_once(steps: Asking[_Result]) -> _Result:
    """Carry out a write that has nobody to ask."""
    try:
        calls = next(steps)
    except StopIteration as end:
        result: _Result = end.value
        return result
    steps.close()
    raise statuses.Problem(500, f'the webhook "{calls[0].webhook}" would have to be asked, and nobody can wait for it')


async def awaited(
    steps: Asking[_Result], call: Callable[[Call], Awaitable[Outcome]], begun: list[Call] | None = None
) -> _Result:
    """Carry out a write, asking whom it wants asked; `begun` are the calls that it has asked for already."""
    try:
        calls = next(steps) if begun is None else begun
        while True:
            outcomes = await asyncio.gather(*(call(each) for each in calls))
            calls = steps.send(outcomes)
    except StopIteration as end:
        result: _Result = end.value
        return result
    finally:
        steps.close()
