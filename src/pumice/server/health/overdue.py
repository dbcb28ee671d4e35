"""Which parts of a process do not go on: each says what it does, or until when it waits, and somebody outside of it looks.

```
  part ── begin("cycle") … due(moment) ──▶ stand ◀── look(now) ── watchdog
```

What is due and not begun is *late*: told after 5 s, and after 30 s the process is better ended. What was begun and goes on is *busy*: told after 30 s, ended after
a deadline that is the operator's. Only time counts in which the one who looks could look: if the process was stopped, or its machine asleep or starved, nobody is
blamed for that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LATE_TOLD: Final = 5.0  # seconds after which it is told that nothing was begun
LATE_ENDED: Final = 30.0  # and after which the process ends
BUSY_TOLD: Final = 30.0  # seconds after which it is told that something goes on
EVERY: Final = 0.5  # seconds from one look to the next
LONGEST_STEP: Final = 2 * EVERY  # how much of the time between two looks counts
BEAT: Final = 1.0  # seconds in which whatever has nothing to do turns once all the same


class Stand(NamedTuple):
    """What a part does since it has begun so many turns; if that is nothing, until when."""

    turn: int
    work: str
    due: float


class Watched(Protocol):
    """A part of the process. `ends` tells whether the process is nothing without it, `deadline` how long one work may take."""

    name: str
    what: str
    ends: bool
    deadline: float

    def stand(self, now: float, /) -> Stand:
        """Say what it does."""


class Part:
    """A part that says itself what it does: one thread writes, others read. It rests until it says something."""

    def __init__(self, name: str, what: str, *, ends: bool = True, deadline: float = math.inf) -> None:
        self.name = name
        self.what = what
        self.ends = ends
        self.deadline = deadline
        self._stand = Stand(0, "", math.inf)

    def begin(self, work: str = "") -> None:
        """Begin what was due."""
        self._stand = Stand(self._stand.turn + 1, work, math.inf)

    def work(self, work: str) -> None:
        """Do something else; what is due stays so."""
        self._stand = Stand(self._stand.turn, work, math.inf)

    def due(self, moment: float) -> None:
        """Wait, until a moment of the monotonic clock at the latest."""
        self._stand = Stand(self._stand.turn, "", moment)

    def rest(self) -> None:
        """Wait for nothing in particular."""
        self.due(math.inf)

    def stand(self, _now: float, /) -> Stand:
        """Say what it does."""
        return self._stand


class Turning:
    """A part that counts its turns, one within each second; those in which it need not are told by `rests`."""

    deadline = math.inf

    def __init__(
        self, name: str, what: str, count: Callable[[], int], *, rests: Callable[[], bool] = bool, ends: bool = True
    ) -> None:
        self.name = name
        self.what = what
        self.ends = ends
        self._count = count
        self._rests = rests
        self._turn = -1
        self._due = math.inf

    def stand(self, now: float, /) -> Stand:
        """Say until when it has to turn."""
        turn = self._count()
        if turn != self._turn or self._rests():
            self._turn, self._due = turn, now + BEAT
        return Stand(turn, "", self._due)


class Finding(msgspec.Struct, frozen=True):
    """What was found about a part; `over` if it goes on again."""

    part: str
    problem: str
    seconds: float
    ends: bool = False
    over: bool = False


class _Seen:
    """What is known of one part from earlier looks."""

    def __init__(self, part: Watched) -> None:
        self.part = part
        self.stand = Stand(-1, "", math.inf)
        self.late = 0.0
        self.busy = 0.0
        self.told = ""

    def look(self, now: float, step: float) -> Iterator[Finding]:
        stand, before = self.part.stand(now), self.stand
        self.stand = stand
        if stand.turn != before.turn:
            self.late = 0.0
        if stand is not before or not stand.work:
            self.busy = 0.0
        if stand.work:
            self.busy += step if stand is before else 0.0
        elif now > stand.due:
            self.late += min(step, now - stand.due)
        else:
            self.late = 0.0
        yield from self._judge()

    def _judge(self) -> Iterator[Finding]:
        problem, seconds = self.problem(), self.late or self.busy
        ends = self.ends()
        kind = "late" if self.late >= LATE_TOLD else "busy" if problem else ""
        if ends or (problem and kind != self.told):
            self.told = kind
            yield Finding(self.part.name, problem, seconds, ends=ends)
        elif not problem and self.told:
            self.told = ""
            yield Finding(self.part.name, "", 0.0, over=True)

    def ends(self) -> bool:
        return self.part.ends and (self.late >= LATE_ENDED or self.busy >= self.part.deadline)

    def problem(self) -> str:
        """Say what is wrong, if it is long enough."""
        if self.late >= LATE_TOLD:
            return f"{self.part.what} was due {self.late:.0f}s ago and has not begun"
        if self.busy >= min(BUSY_TOLD, self.part.deadline):
            return f"{self.stand.work} has been going on for {self.busy:.0f}s"
        return ""


class Watch:
    """Looks at parts; by one thread, while any may ask what was found."""

    def __init__(self) -> None:
        self._seen: list[_Seen] = []
        self._looked: float | None = None
        self.stalls: dict[str, int] = {}

    def add(self, part: Watched) -> None:
        """Look at one more."""
        self._seen.append(_Seen(part))
        self.stalls[part.name] = 0

    def look(self, now: float) -> list[Finding]:
        """Look at every part; returns what is new."""
        step = 0.0 if self._looked is None else min(max(0.0, now - self._looked), LONGEST_STEP)
        self._looked = now
        found = [each for seen in list(self._seen) for each in seen.look(now, step)]
        for each in found:
            self.stalls[each.part] += not each.over
        return found

    def late(self) -> str:
        """Say which parts are late without which the process is nothing; empty if all is well."""
        return self._told(lambda seen: seen.part.ends and seen.late >= LATE_TOLD)

    def notes(self) -> str:
        """Say what goes on for long, and which other parts are late."""
        return self._told(lambda seen: not (seen.part.ends and seen.late >= LATE_TOLD))

    def _told(self, chosen: Callable[[_Seen], bool]) -> str:
        said = [(seen.part.name, seen.problem()) for seen in list(self._seen) if chosen(seen)]
        return "; ".join(f"{name}: {problem}" for name, problem in said if problem)

    def samples(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Give the numbers for metrics."""
        for seen in list(self._seen):
            yield "pumice_overdue_seconds", (seen.part.name,), round(seen.late, 3)
            yield "pumice_busy_seconds", (seen.part.name,), round(seen.busy, 3)
        for name, count in list(self.stalls.items()):
            yield "pumice_stalls_total", (name,), count
