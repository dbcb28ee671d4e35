"""The deciding thread: cycles when something has changed or at a fixed pace, and between them whatever its mailbox says."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, Protocol

from pumice.api import printable
from pumice.framework.breakdowns import Breakdown
from pumice.server.health import overdue
from pumice.server.logs import logs
from pumice.server.threads import mailbox
from pumice.server.threads.pacing import Pacing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from pumice.framework.configuration import Configuration
    from pumice.framework.record import CycleRecord
    from pumice.scheduler import Scheduler
    from pumice.server.logs.logs import Log
    from pumice.server.surroundings import Surroundings
    from pumice.server.threads.mailbox import Mailbox

EARLY: Final = 0.02  # for how long changes are gathered in a pause before they are taken in, in seconds
WARM: Final = 0.25  # how often a standby takes in what has come, in seconds
FEW: Final = 16  # binds that are sent before anything else is done
HEAD_START: Final = 0.0005  # seconds that they get for it
REMIND: Final = 60.0  # how often a failure that stays the same is told of again
REMEMBERED: Final = 64  # failures that are known to have been told of
LONGEST: Final = 300  # characters of an error in a line of text


class Reporter(Protocol):
    """Whoever is told of finished cycles, and asked for dumps; called by the deciding thread."""

    def cycled(self, record: CycleRecord, microseconds: int) -> None:
        """Take note of a cycle."""

    def broke(self, action: str, plugin: str) -> None:
        """Count a breakdown; either name is empty where it is not known."""

    def broken_after(self, found: Sequence[Breakdown], text: str) -> None:
        """Take note of everything that is broken after a cycle, functions at rest included, and of the words for it; nothing if all is well."""

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
        period: float | None,
        around: Surroundings,
        part: overdue.Part | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._box = box
        self._log = log
        self._reporter = reporter
        self._pacing = Pacing(period)
        self._now = around.wall
        self._seconds = around.seconds
        self._around = around
        scheduler.decided = self._give_way
        self._deciding = False
        self._told: dict[str, float] = {}
        self._frozen = False
        self._part = overdue.Part("deciding", "a cycle") if part is None else part  # whoever watches is told by it
        self.trouble = ""  # what broke down in the last cycle

    @property
    def deciding(self) -> bool:
        """Tell whether cycles are run: everything is listed, and the lease, if there is one, is ours."""
        return self._deciding

    def steps(self) -> mailbox.Steps:
        """Decide until told to stop."""
        while True:
            self._box.hush()
            started = self._seconds()
            self._part.begin("a cycle" if self._deciding else "taking in events")
            self._work()
            now = self._seconds()
            due = self._pacing.next(started, now, self._wakes_in())
            ended = yield from self._wait(due if self._deciding else min(due, now + WARM))
            if ended is not None:
                return ended

    def _wakes_in(self) -> float | None:
        """Return after how many seconds something is due that waits for a moment."""
        wake = self._scheduler.wake
        return None if wake is None else max(0.0, (wake - self._now()) / 1e6)

    def _wait(self, due: float) -> Generator[float, mailbox.Message | None, mailbox.Stop | mailbox.Fatal | None]:
        """Take messages until it is time for the next cycle; what comes in a long pause is taken in there, so that the cycle begins with little to take in."""
        early, heard = due, self._box.heard
        while True:
            self._part.due(due)
            message = yield min(due, early)
            match message:
                case None if early < due:
                    early = due
                    self._part.work("taking in events")
                    self._take_in()
                case None:
                    now = self._seconds()
                    due = early = self._pacing.after_more(now)
                    if due <= now or heard == self._box.heard:
                        return None
                    heard = self._box.heard
                case mailbox.Stop() | mailbox.Fatal():
                    return message
                case mailbox.Begin():
                    self._deciding = True
                    return None
                case mailbox.Changed():
                    now = self._seconds()
                    due, heard = min(due, self._pacing.after_change(now)), self._box.heard
                    early = now + EARLY if self._deciding and due - now > 2 * EARLY else due
                case mailbox.Echoed():
                    due = min(due, self._pacing.after_echo(self._seconds(), message.wait))
                case mailbox.Reconfigure() | mailbox.Dump() | mailbox.View() | mailbox.Summarise():
                    self._answer(message)

    def _answer(self, message: mailbox.Reconfigure | mailbox.Dump | mailbox.View | mailbox.Summarise) -> None:
        """Do what somebody outside wants."""
        match message:
            case mailbox.Reconfigure():
                if not self._box.awaits(mailbox.Reconfigure):  # else another one has taken its place
                    self._part.work("a new configuration")
                    self._reconfigure(message.configuration)
                    self._box.ring()
            case mailbox.Dump():
                self._part.work("a dump")
                self._guarded("dump", self._reporter.dump)
            case mailbox.Summarise():
                self._part.work("a summary")
                self._guarded("summary", self._reporter.summarise)
            case mailbox.View():
                # Who asked may have given up meanwhile; nobody could be answered then.
                if message.reply.set_running_or_notify_cancel():
                    self._part.work("gathering numbers")
                    self._guarded("gathering numbers", self._reporter.view)
                    message.reply.set_result(None)

    def _take_in(self) -> None:
        """Bring the model up to date without deciding anything."""
        self._box.hush()
        self._guarded("taking in events", lambda: self._scheduler.cache.apply(self._now(), standby=True))

    def _reconfigure(self, found: Configuration) -> None:
        self._guarded("a new configuration, which is left alone,", lambda: self._scheduler.reconfigure(found))

    def _work(self) -> None:
        if self._deciding:
            broken = self._guarded("cycle", self.cycle)
            if broken is not None:
                self.trouble = f"the last cycle broke down: {_said(broken)}"
                self._reporter.broke("", "")
        else:
            self._take_in()

    def _give_way(self, record: CycleRecord) -> None:
        """Let the I/O thread send a few binds before it has to share the interpreter with what is written about them; many would not be done anyway."""
        if 0 < record.binds <= FEW:
            self._around.sleep(HEAD_START)

    def cycle(self) -> None:
        """Let the scheduler decide once, and report it."""
        started = perf_counter_ns()
        record = self._scheduler.cycle()
        spent = (perf_counter_ns() - started) // 1000
        self._look_at_failures()
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
            self._frozen = True
            self._around.settle_memory()

    def _look_at_failures(self) -> None:
        """Tell of everything that broke down in a cycle that went on all the same."""
        named = self._scheduler.engine.breakdowns
        known = {id(each.error) for each in named}
        found = [*named, *(Breakdown(error) for error in self._scheduler.failures if id(error) not in known)]
        for each in found:
            if not each.resting:
                self._tell_of(each, "a plugin or action broke down")
                self._reporter.broke(each.action, each.plugin)
        lines = list(dict.fromkeys(map(_line, found)))
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        self.trouble = lines[0] + more if lines else ""
        self._reporter.broken_after(found, self.trouble)

    def _guarded(self, what: str, step: Callable[[], None]) -> Exception | None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  whatever breaks, the process goes on and the next cycle tries again
            self._tell_of(Breakdown(error), f"{what} broke down")
            return error
        return None

    def _tell_of(self, found: Breakdown, message: str) -> None:
        """Log a breakdown, and one that repeats itself only now and then."""
        names = {"plugin": found.plugin, "action": found.action, "at": found.point, "place": found.place}
        fields = {name: value for name, value in names.items() if value} | {"error": _said(found.error)}
        text = f"{message}: {fields}"
        now = self._seconds()
        if now - self._told.get(text, -REMIND) >= REMIND:
            self._told.pop(text, None)
            while len(self._told) >= REMEMBERED:
                del self._told[next(iter(self._told))]
            self._told[text] = now
            self._log.broke(message, found.error, **fields)


def _line(found: Breakdown) -> str:
    """Say in one line who broke down, and how."""
    error = found.said or _said(found.error)
    if found.point:
        where = ", ".join(filter(None, (found.routine, found.place)))
        told = f"plugin {found.plugin} broke down at {found.point} ({where}): {error}"
        return f"{told}; it is not called about the same for some cycles" if found.resting else told
    culprit = f"plugin {found.plugin}: " if found.plugin else ""
    whose = f"action {found.action}" if found.action else "a step"
    return f"{whose} broke down in the last cycle: {culprit}{error}"


def _said(error: Exception) -> str:
    text = printable.printable(f"{type(error).__name__}: {error}")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
