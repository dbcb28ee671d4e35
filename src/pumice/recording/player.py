"""The player: the scheduler itself, with what was recorded handed in where it was taken, and what it sends held against what was sent."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from pumice import __version__
from pumice.cache.assignment import Assignment
from pumice.cache.cache import Cache
from pumice.cache.effects import Failure, Outcome, Read
from pumice.cache.inputs import InputListener
from pumice.framework import configuration
from pumice.recording import effects, lines, segments, state, writing
from pumice.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pumice.cache.effects import Effect
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry


class Inputs(InputListener):
    """Hands in what one step took, when the cache asks for it."""

    def __init__(self) -> None:
        self.cache: Cache | None = None
        self.ledger = effects.Ledger()
        self.sent: list[Effect] = []
        self._looks: deque[list[lines.Event]] = deque()
        self._outcomes: list[list[Any]] = []

    def send(self, effect: Effect, /) -> None:
        """Take an effect over, as a world does; nobody performs it."""
        self.ledger.send(effect)
        self.sent.append(effect)

    def prepare(self, step: lines.ReadStep) -> None:
        """Have a step's inputs ready, or raise a `RecordingError`: nothing of a step that cannot be read is taken in."""
        try:
            self._looks = deque([[lines.event(each) for each in look] for look in step.events])
            self._outcomes = [lines.outcome(each) for each in step.outcomes]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            text = f"cycle {step.cycle}: what came in cannot be read: {type(error).__name__}: {error}"
            raise segments.RecordingError(text) from error

    def looking(self) -> None:
        """Hand in the events of the next look."""
        if self._looks and self.cache is not None:
            for each in self._looks.popleft():
                self.cache.feed(*each)

    def settling(self) -> None:
        """Hand in the outcomes."""
        found, self._outcomes = self._outcomes, []
        for each in found:
            if self.cache is not None and (outcome := self._outcome(each)) is not None:
                self.cache.settled(outcome)

    @property
    def left(self) -> bool:
        """Tell whether something was not asked for."""
        return any(self._looks)

    def _outcome(self, found: list[Any]) -> Outcome | None:
        number, failure, answer = found
        try:
            effect = self.ledger.effect(number)
        except KeyError:
            return None  # what was sent differs, which is told
        if isinstance(answer, dict) and isinstance(effect, Read):
            answer = {"apiVersion": effect.kind.api_version, "kind": effect.kind.name, **answer}
        return Outcome(effect=effect, failure=None if failure is None else Failure(*failure), object=answer)


class Played:
    """A step that was played: what was recorded, what was sent this time, and whether it is the same."""

    def __init__(self, step: lines.ReadStep, recorded: list[effects.Plain], sent: list[Effect], problem: str) -> None:
        self.step = step
        self.recorded = recorded
        self.sent = sent
        self.problem = problem

    @property
    def repeated(self) -> list[effects.Plain]:
        """The effects of this time."""
        found: list[effects.Plain] = msgspec.json.decode(writing.sent(self.sent))
        return found


class Player:
    """Plays segments in their order. One that follows the last is gone on with; any other starts from its own state."""

    def __init__(self, paths: Iterable[Path], known: Registry) -> None:
        self.segments = [segments.Segment(path) for path in paths]
        self.known = known
        self.inputs = Inputs()
        self.header: lines.Header | None = None
        self.started: list[tuple[segments.Segment, lines.Header]] = []
        self._scheduler: Scheduler | None = None
        self._known: state.Known | None = None
        self._time = 0
        self._followed = False  # whether the last segment said that another follows
        self._goes_on = False  # whether the segment that is read goes on from the last
        self.place = ""  # of the line that was read last
        self.is_restored = False  # whether what is known came out of a state

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler as it is now."""
        if self._scheduler is None:
            raise segments.RecordingError("the recording has no configuration before its first step")
        return self._scheduler

    def now(self) -> int:
        """Return the time of what is being played."""
        return self._time

    def steps(self) -> Iterator[tuple[lines.ReadStep, segments.Segment]]:
        """Give each step before it is played: `play` plays it."""
        for segment in self.segments:
            self._goes_on = False
            for line in segment.lines():
                self.place = f"{segment.path}: line {segment.line}"
                if isinstance(line, lines.ReadStep):
                    yield line, segment
                    continue
                try:
                    self._take(line, segment)
                except segments.RecordingError:
                    raise
                except Exception as error:
                    raise segments.RecordingError(
                        f"{self.place}: cannot be brought to life: {type(error).__name__}: {error}"
                    ) from error

    def _take(self, line: lines.ReadLine, segment: segments.Segment) -> None:
        """Take in a line that is no step."""
        match line:
            case lines.Header():
                self._goes_on = self._follows(line)
                self.header = line
                self._followed = False
                if not self._goes_on:
                    self.started.append((segment, line))
            case lines.State():
                self._take_state(line, segment, goes_on=self._goes_on)
            case lines.Configured() if self._goes_on:
                self._goes_on = False  # it is in force already
            case lines.Configured():
                self._configure(line)
            case lines.End():
                self._followed = not line.last

    def play(self, step: lines.ReadStep) -> Played:
        """Play one step."""
        inputs, scheduler = self.inputs, self.scheduler
        try:
            inputs.prepare(step)
            recorded = lines.effects(step)
        except (ValueError, RecursionError) as error:
            raise segments.RecordingError(f"{self.place}: {error}") from error
        self._time = step.now
        broke = False
        try:
            if step.cycle:
                scheduler.cycle()
            else:
                scheduler.cache.apply(step.now, standby=True)
        except Exception:  # noqa: BLE001  as the process does: the next cycle tries again
            broke = True
        sent, inputs.sent = inputs.sent, []
        return Played(step, recorded, sent, self._problem(step, sent, broke=broke))

    def _problem(self, step: lines.ReadStep, sent: list[Effect], *, broke: bool) -> str:
        """Say how a step differs from the recorded one; nothing if it does not."""
        if step.cycle and self.scheduler.cycles != step.cycle:
            return f"this is cycle {self.scheduler.cycles}, recorded was cycle {step.cycle}"
        if writing.sent(sent) != bytes(step.effects):
            return "other effects"
        if broke != step.broke:
            return f"the cycle {'broke down' if broke else 'went well'}, the recorded one did not"
        if self.inputs.left:
            return "events were looked at fewer times"
        return ""

    # -- segments ----------------------------------------------------------------------------------------------

    def _follows(self, header: lines.Header) -> bool:
        last = self.header
        return self._followed and last is not None and (header.run, header.segment) == (last.run, last.segment + 1)

    def _take_state(self, line: lines.State, segment: segments.Segment, *, goes_on: bool) -> None:
        if goes_on:
            self.scheduler.renew()
            return
        self.inputs = Inputs()
        self._scheduler = None
        header = self.header
        assert header is not None  # noqa: S101  a segment begins with one
        if line.table is None:
            part = Assignment(header.member, header.members) if header.member else None
            self._known = None
            self.inputs.cache = Cache(self.inputs, header.options, part)
            return
        if header.version != __version__:
            raise segments.RecordingError(
                f"{segment.path} begins with a state of pumice {header.version}, which this version ({__version__}) cannot read: "
                f"use pumice {header.version}, or replay from the first segment of the run"
            )
        try:
            self._known = state.restore(line.table, self.inputs, self.inputs.ledger)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise segments.RecordingError(
                f"{segment.path}: line {segment.line}: its state cannot be read: {error}"
            ) from error
        self.inputs.cache = self._known.cache
        self.is_restored = True

    def _configure(self, line: lines.Configured) -> None:
        """Bring a configuration to life, as it was at its time."""
        self._time = line.now
        loaded = self.load(line.text, line.source)
        if self._scheduler is None:
            self._scheduler = self._start(loaded)
            return
        with contextlib.suppress(Exception):  # as the process does: what cannot be brought to life is left alone
            self._scheduler.reconfigure(loaded)

    def load(self, text: str, source: str) -> Configuration:
        """Read a configuration of the recording."""
        try:
            loaded = configuration.load(text, self.known.catalog(), source)
        except configuration.ConfigurationError as error:
            raise segments.RecordingError(
                f"the configuration that was recorded ({source}) is refused: {'; '.join(map(str, error.problems))}"
            ) from error
        for plugin in loaded.plugins:
            if not self.known.plugins[plugin.name].pure:
                raise segments.RecordingError(
                    f"the configuration that was recorded ({source}) lists plugin {plugin.name} on line {plugin.line}, which asks somebody whose answers are in no recording: it cannot be replayed"
                )
        return loaded

    def _start(self, loaded: Configuration) -> Scheduler:
        cache: Any = self.inputs.cache
        made = Scheduler(cache, loaded, self.now, known=self.known)
        if self._known is not None:
            adopt(made, self._known)
        cache.inputs = self.inputs
        return made


def adopt(scheduler: Scheduler, known: state.Known) -> None:
    """Let a scheduler go on from what was known."""
    scheduler.reservations, scheduler.cycles = known.reservations, known.cycles
    scheduler.cache.is_given_up = known.reservations.is_given_up
