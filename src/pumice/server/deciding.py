"""The deciding thread: cycles at the pace of the schedule period, and between them whatever its mailbox says."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final, Protocol

from pumice.server import logs, mailbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.configuration import Configuration
    from pumice.framework.record import CycleRecord
    from pumice.scheduler import Scheduler
    from pumice.server.logs import Log
    from pumice.server.mailbox import Mailbox

WARM: Final = 0.25  # how often a standby takes in what has come, in seconds
REMIND: Final = 60.0  # how often a failure that stays the same is told of again


class Reporter(Protocol):
    """Whoever is told of finished cycles, and asked for dumps; called by the deciding thread."""

    def cycled(self, record: CycleRecord, microseconds: int) -> None:
        """Take note of a cycle."""

    def dump(self) -> None:
        """Write what is known to a file."""

    def summarise(self) -> None:
        """Log how things stand."""

    def view(self) -> None:
        """Gather the numbers of jobs and queues."""


class Decider:
    """Runs the scheduler until it is told to stop. A cycle that breaks down is told of; the next one tries again."""

    def __init__(
        self,
        scheduler: Scheduler,
        box: Mailbox,
        log: Log,
        reporter: Reporter,
        *,
        period: float,
        now: Callable[[], int],
    ) -> None:
        self._scheduler = scheduler
        self._box = box
        self._log = log
        self._reporter = reporter
        self._period = period
        self._now = now
        self._deciding = False
        self._told = ("", 0.0)
        self._frozen = False
        self.alive_at = time.monotonic()

    @property
    def deciding(self) -> bool:
        """Tell whether cycles are run: everything is listed, and the lease, if there is one, is ours."""
        return self._deciding

    def run(self) -> mailbox.Stop | mailbox.Fatal:
        """Decide until told to stop; the period runs from the end of one cycle to the start of the next."""
        while True:
            self._work()
            self.alive_at = time.monotonic()
            due = self.alive_at + (self._period if self._deciding else min(self._period, WARM))
            ended = self._wait(due)
            if ended is not None:
                return ended

    def _wait(self, due: float) -> mailbox.Stop | mailbox.Fatal | None:
        """Take messages until it is time for the next cycle."""
        while (message := self._box.take(due)) is not None:
            match message:
                case mailbox.Stop() | mailbox.Fatal():
                    return message
                case mailbox.Begin():
                    self._deciding = True
                    return None
                case mailbox.Reconfigure():
                    self._reconfigure(message.configuration)
                case mailbox.Dump():
                    self._guarded("dump", self._reporter.dump)
                case mailbox.View():
                    # Who asked may have given up meanwhile; nobody could be answered then.
                    if message.reply.set_running_or_notify_cancel():
                        self._guarded("gathering numbers", self._reporter.view)
                        message.reply.set_result(None)
                case mailbox.Summarise():
                    self._guarded("summary", self._reporter.summarise)
        return None

    def _reconfigure(self, found: Configuration) -> None:
        self._guarded("a new configuration, which is left alone,", lambda: self._scheduler.reconfigure(found))

    def _work(self) -> None:
        if self._deciding:
            self._guarded("cycle", self._cycle)
        else:
            self._guarded("taking in events", lambda: self._scheduler.cache.apply(self._now(), standby=True))

    def _cycle(self) -> None:
        started = time.perf_counter_ns()
        record = self._scheduler.cycle()
        spent = (time.perf_counter_ns() - started) // 1000
        for failure in self._scheduler.failures if not record.skipped else ():
            self._tell_of(failure, "a plugin or action broke down")
        if not record.skipped:
            self._log.detail(
                logs.CYCLES,
                "cycle",
                number=record.cycle,
                milliseconds=round(spent / 1000, 3),
                binds=record.binds,
                evictions=record.evictions,
            )
        self._reporter.cycled(record, spent)
        if not self._frozen and not record.skipped:
            # What was listed at the start stays for long: nobody needs to look for rubbish in it again and again.
            self._frozen = True
            gc.freeze()

    def _guarded(self, what: str, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  whatever breaks, the process goes on and the next cycle tries again
            self._tell_of(error, f"{what} broke down")

    def _tell_of(self, error: Exception, message: str) -> None:
        """Log a breakdown, and one that repeats itself only now and then."""
        text = f"{message}: {type(error).__name__}: {error}"
        now = time.monotonic()
        if text != self._told[0] or now - self._told[1] >= REMIND:
            self._told = (text, now)
            self._log.broke(message, error)
