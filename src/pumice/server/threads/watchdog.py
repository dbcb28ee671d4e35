"""The thread that notices if the process stops in silence: it tells where every thread is, and ends the process if that does not cure itself.

It waits for nobody: a log that blocks, or an event loop that does not answer, gets a few seconds. What keeps the interpreter itself, so that no thread of Python's
runs, also keeps the Lease from being renewed and probes from being answered; that is noticed by others.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import TYPE_CHECKING, Final

from pumice.server.health import overdue
from pumice.server.logs import stacks

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.server.logs.logs import Log

TELL: Final = 3.0  # seconds that a log gets for what is told
FAREWELL: Final = 8.0  # seconds that the rest of the process gets to end in good order, which releases its Lease
ENDING: Final = 30.0  # seconds after the end of a loop within which the process should have ended, executors that are waited for included
STATUS: Final = 1


class Watchdog(threading.Thread):
    """Looks at the parts of a process twice a second. `leave` ends the process; `before_leaving` come before it, the last one first."""

    def __init__(
        self, log: Log, watch: overdue.Watch | None = None, *, leave: Callable[[int], object] = os._exit
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self.watch = overdue.Watch() if watch is None else watch
        self.before_leaving: list[Callable[[], object]] = []
        self._log = log
        self._leave = leave
        self._over = False

    def run(self) -> None:
        """Look until the process ends, or it is told to stop."""
        while not self._over:
            self.look(time.monotonic())
            time.sleep(overdue.EVERY)

    def stop(self) -> None:
        """Look no more: what was watched has not begun, and the process may go on without it."""
        self._over = True

    def look(self, now: float) -> None:
        """Look once, and act on what is found."""
        found = self.watch.look(now)
        for each in found:
            bounded(lambda each=each: self._tell(each), TELL)  # type: ignore[misc]
        if any(each.ends for each in found):
            bounded(self._part, FAREWELL)
            self._leave(STATUS)

    def _tell(self, found: overdue.Finding) -> None:
        if found.over:
            self._log.info("it goes on again", part=found.part)
            return
        for name, stack in stacks.of_threads():
            self._log.error("stack", thread=name, innermost_first=stack)
        if found.ends:
            self._log.error("ending", part=found.part, problem=found.problem)
        else:
            self._log.error("overdue", part=found.part, problem=found.problem)

    def _part(self) -> None:
        for step in reversed(self.before_leaving):
            step()


def bounded(step: Callable[[], object], patience: float) -> None:
    """Do something in a thread of its own, and wait for it no longer than so many seconds."""
    doing = threading.Thread(target=step, name="watchdog-step", daemon=True)
    doing.start()
    doing.join(patience)


async def beat(part: overdue.Part, seconds: Callable[[], float] = time.monotonic) -> None:
    """Show that the running event loop turns, until cancelled; from then on the process has a while to end."""
    try:
        while True:
            part.begin()
            part.due(seconds() + overdue.BEAT)
            await asyncio.sleep(overdue.BEAT)
    finally:
        part.due(seconds() + ENDING)
