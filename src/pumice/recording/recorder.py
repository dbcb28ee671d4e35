"""The recorder: listens to one scheduler and hands what it hears to the thread that writes."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

from pumice import __version__
from pumice.api import kinds
from pumice.cache.effects import Note
from pumice.cache.inputs import InputListener
from pumice.recording import lines, segments, state, writing
from pumice.recording.effects import Ledger
from pumice.recording.redaction import Redaction
from pumice.recording.writer import Beginning, Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pumice.api import decoding
    from pumice.api.meta import KubeObject
    from pumice.cache.assignment import Assignment
    from pumice.cache.effects import Effect, Outcome, World
    from pumice.cache.options import Options
    from pumice.cache.reflector import EventType
    from pumice.framework.configuration import Configuration
    from pumice.recording import graph
    from pumice.scheduler import Scheduler

_KNOWN: Final = frozenset(kinds.KINDS)
PATIENCE: Final = 60.0


class Tap:
    """A world that also tells what is sent to it."""

    def __init__(self, world: World, sent: Callable[[Effect], None]) -> None:
        self._send = world.send
        self._sent = sent

    def send(self, effect: Effect, /) -> None:
        """Take an effect over."""
        self._sent(effect)
        self._send(effect)


class Recorder(InputListener):
    """Writes down one run. What it does in the deciding thread is to append to lists, and to write the state down when a segment begins."""

    def __init__(
        self,
        folder: Path,
        limit: int,
        options: Options,
        assignment: Assignment | None = None,
        *,
        tell: Callable[[str, str], None] = lambda _what, _why: None,
        began: float | None = None,
    ) -> None:
        self._options = options
        self._assignment = assignment
        self._redaction = Redaction()
        self._ledger = Ledger()
        self._run = secrets.token_hex(4)
        self._second = int(time.time() if began is None else began)
        self._segment = 0
        self._name = ""
        self._scheduler: Scheduler | None = None
        self._configured: lines.Configured | None = None
        self._taken: writing.Taken | None = None
        self._effects: list[Effect] = []
        self._gap = False  # whether something is missing since the segment began
        self.writer = Writer(folder, limit, self._redaction, tell)

    def join(self, world: World) -> Tap:
        """Return a world in the place of another, so that what is sent is heard."""
        return Tap(world, self._sent)

    def follow(self, scheduler: Scheduler) -> None:
        """Name the scheduler whose state is written when a segment begins."""
        self._scheduler = scheduler

    def close(self, patience: float = PATIENCE) -> None:
        """Write what waits, and end; a disk that does not answer is waited for so many seconds."""
        if self._segment:
            self._offer(lines.End(last=True))
        self.writer.end(patience)

    # -- what is heard -----------------------------------------------------------------------------------------

    def _sent(self, effect: Effect) -> None:
        if isinstance(effect, Note) and effect.kind not in _KNOWN:
            return  # the process about itself, not a decision
        self._ledger.send(effect)
        self._effects.append(effect)

    def configured(self, configuration: Configuration, now: int) -> None:
        """Take note of a configuration; with the first the run begins."""
        self._configured = lines.Configured(now=now, source=configuration.source, text=configuration.text)
        if self._segment == 0:
            self.writer.start()
            self._begin(None)
        else:
            self._offer(self._configured)

    def begins(self, now: int, *, standby: bool) -> None:
        """Start a step; one that is still open has broken down."""
        if self._taken is not None:
            self._taken.broke = True
            self._hand_over(self._taken)
        self._taken = writing.Taken(now)
        if self._scheduler is not None and not standby:
            self._taken.cycle = self._scheduler.cycles

    def looking(self) -> None:
        """Start a list of events."""
        if self._taken is not None:
            self._taken.looks.append([])

    def looked(self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed) -> None:
        """Take note of an event."""
        if self._taken is not None:
            self._taken.looks[-1].append((kind, event_type, found))

    def settled(self, outcome: Outcome) -> None:
        """Take note of an outcome."""
        if self._taken is not None:
            self._taken.outcomes.append((self._ledger.number(outcome.effect), outcome))

    def ends(self, *, skipped: bool) -> None:
        """End a step, and begin a new segment if it is time."""
        taken, self._taken = self._taken, None
        if taken is None:
            return
        taken.skipped = skipped
        self._hand_over(taken)
        writer = self.writer
        is_time = self._name in ((writer.full, writer.overdue) if skipped else (writer.overdue,))
        if (self._gap and writer.may_begin) or (is_time and writer.accepts):
            self.rotate()

    def _hand_over(self, taken: writing.Taken) -> None:
        taken.effects, self._effects = self._effects, []
        self._offer(taken)

    def _offer(self, item: writing.Taken | lines.Line) -> None:
        if self._gap or not self.writer.accepts:
            self._gap = True
            self.writer.missed += isinstance(item, writing.Taken)
        else:
            self.writer.put(item)

    # -- segments ----------------------------------------------------------------------------------------------

    def rotate(self) -> None:
        """Begin another segment, with the state as it is now."""
        scheduler = self._scheduler
        if scheduler is None:
            return
        try:
            scheduler.renew()
            captured = state.capture(scheduler, self._ledger, self._redaction)
        except Exception as error:  # noqa: BLE001  a recording must never cost a cycle
            self.writer.refuse(f"the state cannot be written down: {type(error).__name__}: {error}")
            self._gap = True
            return
        if not self._gap:
            self.writer.put(lines.End())
        self._begin(captured)

    def _begin(self, captured: graph.Captured | None) -> None:
        """Begin a segment with a header, a state and the configuration in force."""
        self._segment += 1
        self._gap = False
        part = self._assignment
        header = lines.Header(
            format=lines.FORMAT,
            version=__version__,
            run=self._run,
            segment=self._segment,
            options=self._options,
            member="" if part is None else part.member,
            members=0 if part is None else part.members,
        )
        self._name = segments.name(self._second, self._run, self._segment)
        self.writer.put(header, self._name)
        self.writer.put(Beginning(captured))
        if self._configured is not None:
            self.writer.put(self._configured)
