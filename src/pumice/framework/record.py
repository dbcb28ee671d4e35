"""The decision record: what was decided in a cycle, about whom, and why.

Events, conditions, explanations and the scenario trace are views of this one record. Verdicts about a job stay until the job is looked at
again, so that an explanation can be given at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.framework.findings import Journal

if TYPE_CHECKING:
    from collections.abc import Sequence

TRACE_LIMIT: Final = 10_000
BIND: Final = "bind"
"""Who says that a bind failed: the cluster, whatever the policy."""


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What one action (or the cache) said in one cycle, about one job or about none."""

    cycle: int
    source: str
    said: object
    job: str = ""

    @property
    def text(self) -> str:
        """What was said; written out when somebody reads it, which is seldom."""
        return str(self.said)


class CycleRecord:
    """The record of all cycles of one scheduler; `trace` is that of the latest."""

    __slots__ = (
        "_dropped",
        "_lines",
        "_problems",
        "_states",
        "_verdicts",
        "binds",
        "cycle",
        "evictions",
        "figures",
        "is_followed",
        "journal",
        "plans",
        "skipped",
        "stood",
        "time",
    )

    def __init__(self, *, keeps_figures: bool = False, is_followed: bool = True) -> None:
        self.journal = Journal()  # a trial that is taken back takes its lines and verdicts with it
        self.cycle = 0
        self.time = 0
        self.binds = 0
        self.evictions = 0
        self.plans = 0  # that evicted somebody, since the start
        self.skipped = False
        self.stood: dict[str, object] = {}  # how jobs stood when they were last reported
        # Of those that wait: the numbers of that moment, and how much was taken; None if nobody wants to know when they change.
        self.figures: dict[str, object] | None = {} if keeps_figures else None
        self.is_followed = is_followed  # whether somebody reads what is said of whoever waits as it changes
        self._lines: list[Verdict] = []
        self._dropped = 0
        self._verdicts: dict[str, dict[str, Verdict]] = {}  # by source, then by job
        self._states: dict[str, str] = {}
        self._problems: dict[str, dict[str, str]] = {}

    # -- writing -----------------------------------------------------------------------------------------------

    def begin(self, cycle: int, time: int) -> None:
        """Start the record of a cycle."""
        self.cycle, self.time = cycle, time
        self.binds = self.evictions = 0
        self.skipped = False
        self._lines = []
        self._dropped = 0

    def next_plan(self) -> int:
        """Return the number of a plan that is about to evict."""
        self.plans += 1
        return self.plans

    def say(self, source: str, text: object, job: str = "") -> None:
        """Add a line to the trace."""
        lines = self._lines
        if len(lines) >= TRACE_LIMIT:
            self._dropped += 1
        elif self.journal.depth:
            self.journal.append(lines, Verdict(self.cycle, source, text, job))
        else:  # without a call, as in `judge`
            lines.append(Verdict(self.cycle, source, text, job))

    def judge(self, job: str, source: str, text: object) -> None:
        """Say something about a job that stays true until the same source speaks about it again.

        The text may be anything that does not change; it is written out when somebody reads it.
        """
        verdict = Verdict(self.cycle, source, text, job)
        said = self._verdicts.get(source)
        if said is None:
            said = self._verdicts[source] = {}
        lines, journal = self._lines, self.journal
        # Thousands of jobs are judged in every cycle, so a call is made only where something may have to be taken back.
        if journal.depth:
            journal.put(said, job, verdict)
        else:
            said[job] = verdict
        if len(lines) >= TRACE_LIMIT:
            self._dropped += 1
        elif journal.depth:
            journal.append(lines, verdict)
        else:
            lines.append(verdict)

    def acquit(self, job: str, source: str) -> None:
        """Take back what a source said about a job."""
        if (said := self._verdicts.get(source)) is not None and job in said:
            self.journal.drop(said, job)

    def begin_policy(self) -> None:
        """Take back all that was said of jobs as another policy comes into force, but for failed binds: what it does not say itself is true no more."""
        self._verdicts = {source: said for source, said in self._verdicts.items() if source == BIND}

    def state(self, job: str, text: str) -> None:
        """Note how a job stands at the end of a cycle."""
        self._states[job] = text

    def stands(self, job: str, how: object) -> None:
        """Keep how a job stands, as something to compare with."""
        self.stood[job] = how

    def is_news(self, job: str, how: object) -> bool:
        """Tell whether a job stands otherwise than when it was last reported, and keep how it stands."""
        if self.stood.get(job) == how:
            return False
        self.stood[job] = how
        return True

    def forget(self, job: str) -> None:
        """Drop what was said of a job that is gone; objects of it that are there and bad are so still."""
        for source, said in list(self._verdicts.items()):
            said.pop(job, None)
            if not said:
                del self._verdicts[source]
        self._states.pop(job, None)
        self.stood.pop(job, None)
        if self.figures is not None:
            self.figures.pop(job, None)

    def disable(self, job: str, subject: str, text: str) -> None:
        """Note a bad object; it stays until it is cleared."""
        self._problems.setdefault(job, {})[subject] = text
        self.say("cache", f"{subject}: {text}")

    def enable(self, job: str, subject: str) -> None:
        """Note that an object is no longer bad."""
        problems = self._problems.get(job)
        if problems is not None:
            problems.pop(subject, None)
            if not problems:
                del self._problems[job]

    # -- reading -----------------------------------------------------------------------------------------------

    @property
    def latest(self) -> Sequence[Verdict]:
        """What was said in the latest cycle, in its order."""
        return self._lines

    def trace(self) -> list[str]:
        """Return the lines of the latest cycle."""
        lines = [f"{v.source}: {v.job}: {v.said}" if v.job else f"{v.source}: {v.said}" for v in self._lines]
        return [*lines, f"… and {self._dropped} more lines"] if self._dropped else lines

    def lines(self, job: str) -> list[tuple[str, str]]:
        """Return what was said of a job in the latest cycle: who spoke, and what."""
        return [(line.source, line.text) for line in self._lines if line.job == job]

    def problems(self, job: str = "") -> dict[str, str]:
        """Return the bad objects of a job (or those of no job) and what is wrong with each."""
        return dict(self._problems.get(job, {}))

    def verdicts(self, job: str) -> Sequence[Verdict]:
        """Return what was last said about a job, in the order in which the sources first spoke of anybody."""
        return [said[job] for said in self._verdicts.values() if job in said]

    def verdict(self, job: str, source: str) -> Verdict | None:
        """Return what one source last said about a job."""
        said = self._verdicts.get(source)
        return None if said is None else said.get(job)

    def explain(self, job: str) -> str:
        """Say in a few lines how a job stands and why; nothing about a job that nobody has seen."""
        state = self._states.get(job)
        lines = [] if state is None else [f"{job}: {state}"]
        lines += [f"  {verdict.source} (cycle {verdict.cycle}): {verdict.text}" for verdict in self.verdicts(job)]
        lines += [f"  {subject}: {text}" for subject, text in self.problems(job).items()]
        return "\n".join(lines)
