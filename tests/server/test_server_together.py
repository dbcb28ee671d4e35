"""Works that live together: the first that ends takes the others with it."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest

from pumice.server.threads import together


class Works:
    """Works of which each notes how it ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    async def waits(self) -> None:
        """Wait for ever, and take a moment to tidy up."""
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended.append("cancelled")

    async def ends(self) -> None:
        """End at once."""
        self.ended.append("done")

    async def breaks(self) -> None:
        """Break down."""
        await asyncio.sleep(0)
        raise ValueError("disk 3 is full")


@pytest.mark.parametrize("order", list(permutations(["waits", "waits", "ends"])))
def test_when_one_ends_the_others_are_cancelled_and_waited_for(order: tuple[str, ...]) -> None:
    works = Works()
    asyncio.run(together.until_one_ends([getattr(works, name)() for name in order]))
    assert sorted(works.ended) == ["cancelled", "cancelled", "done"]


def test_what_one_raises_is_raised_once_the_others_are_gone() -> None:
    works = Works()
    with pytest.raises(ValueError, match="disk 3 is full"):
        asyncio.run(together.until_one_ends([works.waits(), works.breaks(), works.waits()]))
    assert works.ended == ["cancelled", "cancelled"]


def test_who_is_cancelled_cancels_all() -> None:
    works = Works()

    async def outer() -> None:
        running = asyncio.create_task(together.until_one_ends([works.waits(), works.waits()]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(outer())
    assert works.ended == ["cancelled", "cancelled"]
