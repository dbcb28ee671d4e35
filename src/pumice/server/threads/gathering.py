"""An event loop that takes answers in batches while many are on their way.

With every answer the loop would wake up, and the deciding thread and the API server would have to make room for it. Where dozens of writes are in flight a few milliseconds
more for each of them cost nothing, as the API server has others to answer meanwhile; to wake up once for several costs a fifth less.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class GatheringSelector(selectors.DefaultSelector):
    """Lets a moment pass before it looks which sockets can be read, unless something else is to be done at once; `gathering_pause` says how many seconds that may take by now."""

    def __init__(self, gathering_pause: Callable[[], float], sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__()
        self._gathering_pause = gathering_pause
        self._sleep = sleep

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until something can be read or written, for so many seconds at most."""
        if timeout is None or timeout > 0:
            pause = self._gathering_pause()
            if timeout is not None:
                pause = min(pause, timeout)
                timeout -= pause
            if pause > 0:
                self._sleep(pause)
        return super().select(timeout)


def loop(gathering_pause: Callable[[], float]) -> asyncio.AbstractEventLoop:
    """Make an event loop like the one that asyncio makes here, gathering where that one watches sockets."""
    made = asyncio.new_event_loop()
    if not isinstance(made, asyncio.SelectorEventLoop):
        return made
    made.close()
    return asyncio.SelectorEventLoop(GatheringSelector(gathering_pause))
