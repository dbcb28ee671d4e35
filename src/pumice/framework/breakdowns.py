"""What breaks down in a cycle: whose function, about whom, and for how many cycles in a row.

The dispatcher notes every exception here, and every answer that cannot be one, and says by `PluginBreakdownError` whose it was. A function that broke down about
somebody in several cycles in a row is given a rest: for some cycles, more each time, it is not called about them, and counts as broken down all the same.
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar

import msgspec

from pumice.framework.subject import EvictionContext, Subject
from pumice.model.job import Job, SubJob
from pumice.model.queue import Queue
from pumice.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import CodeType, FrameType

P = ParamSpec("P")
R = TypeVar("R")
Key = tuple[str, str, str, str]

OPEN: Final = "open"
CONCLUDE: Final = "conclude"
CLOSE: Final = "close"
HANDLER: Final = "handler"
PLAN: Final = "plan"
LONGEST_REST: Final = 63
LONGEST_TEXT: Final = 200
_OURS: Final = "pumice.framework."


class Breakdown(msgspec.Struct, frozen=True):
    """An exception that somebody's code let out, or an answer that cannot be one; a name is empty where nobody knows it.

    `point` is where the plugin was asked (or `open`, `close`, `handler`, `plan`), `routine` and `place` the function and the line where it happened, `about` the job or queue that it was asked about.
    One that is `resting` was not called, because it broke down so the last times.
    """

    error: Exception
    action: str = ""
    plugin: str = ""
    point: str = ""
    routine: str = ""
    place: str = ""
    about: str = ""
    said: str = ""
    resting: bool = False

    def __str__(self) -> str:
        """Say who broke down and where, in words that stay the same while the reason does."""
        whose = f"plugin {self.plugin} broke down" if self.plugin else "a step broke down"
        at = f" at {self.point}" if self.point else ""
        where = f" ({', '.join(filter(None, (self.routine, self.place)))})" if self.routine or self.place else ""
        return f"{whose}{at}{where}: {self.said or said(self.error)}"


class PluginBreakdownError(Exception):
    """A function of a plugin broke down, and is known by name; whoever asked decides what that means."""

    def __init__(self, breakdown: Breakdown) -> None:
        super().__init__(str(breakdown))
        self.breakdown = breakdown


class WrongAnswerError(TypeError):
    """A function gave what cannot be an answer: of the wrong type or length, or not a number."""


class Streak(msgspec.Struct):
    """In how many cycles in a row a function broke down about somebody, how, and before which cycle it is not called again."""

    count: int
    again_in: int
    breakdown: Breakdown


class Breakdowns:
    """The breakdowns of one cycle, each function once about everybody, and the first of each job or queue; `streaks` outlive the cycle.

    `trying` is the job that is being tried.
    """

    __slots__ = ("_cycle", "_rests", "_streaks", "action", "blamed", "found", "trying")

    def __init__(self, cycle: int = 0, streaks: dict[Key, Streak] | None = None) -> None:
        self._cycle = cycle
        self._streaks = {} if streaks is None else streaks
        self._rests: dict[tuple[str, str, str], dict[str, Breakdown]] | None = None
        self.found: dict[Key, Breakdown] = {}
        self.blamed: dict[str, Breakdown] = {}
        self.trying: Job | None = None
        self.action = ""  # the one that runs

    def note(
        self, plugin: str, point: str, function: object, error: Exception, about: str = ""
    ) -> PluginBreakdownError:
        """Note that a function broke down; one that is known already, from deeper down or from before its rest, stays whose it was."""
        if isinstance(error, PluginBreakdownError):
            known = error.breakdown
            if known.resting:
                self.found.setdefault((known.plugin, known.point, known.routine, known.about), known)
            self.blamed.setdefault(about, known)
            return error
        key = (plugin, point, _identity(function), about)
        if key not in self.found:
            name, place = _whereabouts(error, _code(function))
            self.found[key] = Breakdown(error, self.action, plugin, point, name or _name(function), place, about)
        self.blamed.setdefault(about, self.found[key])
        return PluginBreakdownError(self.found[key])

    def note_unknown(self, error: Exception, culprit: str, about: str) -> Breakdown:
        """Note an exception that no dispatcher saw; `culprit` is the plugin whose code ran, if any."""
        if isinstance(error, PluginBreakdownError):
            found = error.breakdown
        else:
            name, place = _whereabouts(error, None)
            made = Breakdown(error, self.action, culprit, "", name, place, about)
            found = self.found.setdefault((culprit, "", name, about), made)
        return self.blamed.setdefault(about, found)

    def about(self, args: Sequence[object], position: int) -> str:
        """Return the job, or else the queue, that a question is about; a limit is asked on behalf of the job that is being tried."""
        found = args[position] if position < len(args) else None
        if isinstance(found, Queue):
            return self.trying.key if self.trying is not None and len(args) > 1 else f"queue {found.name}"
        if (key := _job_key(found)) is not None:
            return key
        return self.trying.key if self.trying is not None else ""

    def has(self, job: Job) -> bool:
        """Tell whether something broke down about a job."""
        return job.key in self.blamed

    # -- rest --------------------------------------------------------------------------------------------------

    def resting(self, plugin: str, point: str, function: object) -> dict[str, Breakdown]:
        """Return about whom a function is not to be called in this cycle."""
        if not self._streaks:
            return {}
        if self._rests is None:
            self._rests = {}
            for key, streak in self._streaks.items():
                if streak.again_in > self._cycle:
                    at_rest = msgspec.structs.replace(streak.breakdown, resting=True)
                    self._rests.setdefault(key[:3], {})[key[3]] = at_rest
        return self._rests.get((plugin, point, _identity(function)), {})

    def unasked(self) -> list[Breakdown]:
        """Return those of functions at rest that nobody asked in this cycle: they are broken all the same."""
        told = {str(found) for found in self.found.values()}
        at_rest = [streak.breakdown for streak in self._streaks.values() if streak.again_in > self._cycle]
        return [msgspec.structs.replace(each, resting=True) for each in at_rest if str(each) not in told]

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Forget about whom nobody will ask again."""
        for key in [key for key in self._streaks if key[3] and is_gone(key[3])]:
            del self._streaks[key]

    def end(self) -> None:
        """Count what broke down in this cycle; a function that was not at rest and did not break down starts afresh. Handlers are told everything, rest or not."""
        for key, breakdown in self.found.items():
            if not breakdown.resting and breakdown.point not in ("", HANDLER):
                known = self._streaks.get(key)
                count = 1 if known is None else known.count + 1
                rest = min(2 ** min(count - 1, 10) - 1, LONGEST_REST)
                # Without the exception, whose frames would keep the whole session.
                text = said(breakdown.error)
                kept = msgspec.structs.replace(breakdown, error=RuntimeError(text), said=text)
                self._streaks[key] = Streak(count, self._cycle + 1 + rest, kept)
        for key in [k for k, s in self._streaks.items() if k not in self.found and s.again_in <= self._cycle]:
            del self._streaks[key]

    @property
    def is_resting(self) -> bool:
        """Tell whether some function will have to be called again, though nothing may have changed by then."""
        return bool(self._streaks)


class Rest(Generic[P, R]):
    """A function that is not called about some, because it broke down about them in the last cycles."""

    def __init__(
        self, function: Callable[P, R], rests: dict[str, Breakdown], breakdowns: Breakdowns, position: int
    ) -> None:
        self.asked = function
        self.rests = rests
        self._breakdowns = breakdowns
        self._position = position

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, or break down as it did."""
        known = self.rests.get(self._breakdowns.about(args, self._position))
        if known is not None:
            raise PluginBreakdownError(known)
        return self.asked(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rest) and (self.asked, self.rests.keys()) == (other.asked, other.rests.keys())

    def __hash__(self) -> int:
        return hash(self.asked)


def said(error: Exception) -> str:
    """Write an exception in one line."""
    try:
        text = str(error) if isinstance(error, WrongAnswerError) else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  an exception of a plugin may break down as well
        text = type(error).__name__
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else f"{line[:LONGEST_TEXT]}…"


def culprit(error: Exception, plugins: Iterable[Any]) -> str:
    """Return the plugin whose code was running last where no dispatcher asked it, empty if none was."""
    listed = list(plugins)
    return next((name for frame in reversed(_frames(error)) if (name := _owner(frame, listed))), "")


def _owner(frame: FrameType, plugins: Sequence[Any]) -> str:
    """Return the plugin that a function belongs to: its own method, else one of a module that holds no other plugin."""
    bound, module = frame.f_locals.get("self"), frame.f_globals.get("__name__")
    own = [bound.name for plugin in plugins if plugin is bound and bound is not None]
    near = [plugin.name for plugin in plugins if type(plugin).__module__ == module]
    return str(own[0] if own else near[0] if len(near) == 1 else "")


def _frames(error: Exception) -> list[FrameType]:
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def _whereabouts(error: Exception, code: CodeType | None) -> tuple[str, str]:
    """Return the function and the line that say most: the last of the file that the function is from, else the last that is not the framework's."""
    trace, own, foreign = error.__traceback__, None, None
    while trace is not None:
        frame = trace.tb_frame
        if code is not None and frame.f_code.co_filename == code.co_filename:
            own = trace
        if not str(frame.f_globals.get("__name__", "")).startswith(_OURS):
            foreign = trace
        trace = trace.tb_next
    told = own or foreign
    if told is not None and not isinstance(error, WrongAnswerError):
        return _plain(told.tb_frame.f_code.co_qualname), _place(told.tb_frame.f_code, told.tb_lineno)
    return ("", "") if code is None else (_plain(code.co_qualname), _place(code, code.co_firstlineno))


def _place(code: CodeType, line: int) -> str:
    return f"{pathlib.PurePath(code.co_filename).name} line {line}"


def _plain(name: str) -> str:
    return name.replace(".<locals>", "")


def _unwrapped(function: object) -> object:
    """Return the function that somebody wrote, below what was wrapped around it."""
    while True:
        inner = getattr(function, "__wrapped__", None)
        if inner is None and isinstance(function, Rest):
            inner = function.asked
        if inner is None and not hasattr(function, "__code__"):
            inner = getattr(function, "func", None)
        if inner is None:
            return function
        function = inner


def _code(function: object) -> CodeType | None:
    code: CodeType | None = getattr(_unwrapped(function), "__code__", None)
    return code


def _name(function: object) -> str:
    plain = _unwrapped(function)
    return _plain(str(getattr(plain, "__qualname__", type(plain).__qualname__)))


def _identity(function: object) -> str:
    """Return what a function is known by from cycle to cycle: plugins register new objects each time."""
    code = _code(function)
    return _name(function) if code is None else f"{_name(function)}:{code.co_firstlineno}"


def _job_key(item: object) -> str | None:
    """Return the job that something belongs to, None if it is nothing of a job."""
    match item:
        case Job():
            return item.key
        case SubJob() | EvictionContext():
            return item.job.key
        case Task():
            return item.job_key
        case Subject():
            return item.task.job_key
    return None
