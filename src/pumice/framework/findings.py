"""What a cycle has found out: phases, conditions, reasons and texts that are not model state, and how a trial takes its words back.

Everything is written through methods that keep a journal while a trial runs. Taking a trial back applies the journal backwards, so what was said before stays
exactly as it was, whatever the trial said, and the cost is that of what was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from pumice.api import names

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from pumice.api import scheduling
    from pumice.framework.extensions import Vote
    from pumice.framework.reasons import FitSummary
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.statuses import Status
    from pumice.model.task import Task

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Final = object()


class Standing:
    """Jobs that are in the same phase, status and queue with as many members in each status and as many that leave a node: what is true of one is true of all.

    That is so for jobs without roles and sub-groups that wait for nothing; every other one stands for itself.
    """

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        self.jobs: list[Job] = []


class LastTransaction(msgspec.Struct, frozen=True):
    """Where a discarded statement had put a task; what users are told about it."""

    status: Status
    node: str
    evicted: bool


class Refused(Protocol):
    """What jobs that wait were told."""

    @property
    def failure(self) -> FitSummary:
        """Why none of their pods found a node."""

    def tried(self, job: Job) -> Sequence[str]:
        """Return the pods of one of them, in the order in which they would be tried."""


class Forecast(msgspec.Struct, frozen=True):
    """When a job is expected to start: its condition, that time if it is known, where, and what would bring it forward."""

    condition: scheduling.PodGroupCondition
    expected: int | None
    nodes: dict[str, int]
    sooner: str = ""


class Journal:
    """How to take back, newest first, what was written while a trial ran; outside trials nothing is kept."""

    __slots__ = ("_entries", "depth")

    def __init__(self) -> None:
        self.depth = 0  # how many trials run inside each other
        self._entries: list[tuple[Any, Any, Any]] = []

    def begin(self) -> int:
        """Start a trial, maybe inside another one; returns the mark to go back to."""
        self.depth += 1
        return len(self._entries)

    @property
    def mark(self) -> int:
        """What to go back to in order to keep everything that was written so far."""
        return len(self._entries)

    def back_to(self, mark: int) -> None:
        """Take back everything that was written after a mark."""
        while len(self._entries) > mark:
            container, key, before = self._entries.pop()
            if isinstance(container, list):
                del container[key:]
            elif before is _ABSENT:
                container.pop(key, None)
            else:
                container[key] = before

    def end(self) -> None:
        """End a trial; what it wrote stays, as far as the trial around it stays."""
        self.depth -= 1
        if not self.depth:
            self._entries.clear()

    def put(self, mapping: dict[K, V], key: K, value: V) -> None:
        """Set an entry of a mapping."""
        if self.depth:
            self._entries.append((mapping, key, mapping.get(key, _ABSENT)))
        mapping[key] = value

    def drop(self, mapping: dict[K, Any], key: K) -> None:
        """Remove an entry of a mapping, if it is there."""
        if key in mapping:
            if self.depth:
                self._entries.append((mapping, key, mapping[key]))
            del mapping[key]

    def append(self, items: list[V], item: V) -> None:
        """Add to the end of a list."""
        if self.depth:
            self._entries.append((items, len(items), None))
        items.append(item)


class Findings:
    """The words of one cycle; read them as attributes, write them through the methods."""

    __slots__ = (
        "attempted",
        "awaited",
        "causes",
        "conditions",
        "dormant",
        "figures",
        "fit_errors",
        "forecasts",
        "job_texts",
        "journal",
        "kept_out",
        "last_transactions",
        "news",
        "notices",
        "phases",
        "queue_warnings",
        "warnings",
    )

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.phases: dict[str, str] = {}
        self.conditions: dict[str, tuple[scheduling.PodGroupCondition, ...]] = {}
        self.fit_errors: dict[str, dict[str, FitSummary]] = {}
        self.forecasts: dict[str, Forecast] = {}
        self.last_transactions: dict[str, LastTransaction] = {}
        self.attempted: dict[str, Job] = {}
        # Who is left out of the cycle, since it would only be told again what it was told.
        self.dormant: Mapping[str, Refused] = {}
        self.notices: list[tuple[Job, str]] = []
        self.warnings: list[tuple[Job, str]] = []  # about groups that say what cannot be meant
        self.queue_warnings: list[
            tuple[Queue, str, str]
        ] = []  # about queues of which a setting does not count in full, with the reason of the event
        self.kept_out: dict[str, Vote] = {}  # the votes by which groups were not let in
        # Worked out when the cycle is over, and kept for whoever asks next.
        self.causes: dict[Hashable, str] = {}
        self.job_texts: dict[str, str] = {}
        self.news: list[tuple[Job, Standing]] | None = None
        self.awaited: dict[str, str] = {}
        self.figures: list[Job] = []  # of whom nothing but numbers may be others than when they were last reported

    # -- jobs --------------------------------------------------------------------------------------------------

    def phase(self, job: Job) -> str:
        """Return the phase of a job as this cycle sees it."""
        return (self.phases and self.phases.get(job.key)) or job.status.phase or names.PHASE_PENDING

    def set_phase(self, job: Job, phase: str) -> None:
        """Change the phase of a job; written at close if it is still so."""
        self.journal.put(self.phases, job.key, phase)
        self.attempt(job)

    def attempt(self, job: Job) -> None:
        """Note that a job was looked at in earnest."""
        if job.key not in self.attempted:
            self.journal.put(self.attempted, job.key, job)
            if self.dormant and (told := self.dormant.get(job.key)) is not None:
                self.note_fit_of_all(job, told.tried(job), told.failure)

    def keep_out(self, job: Job, vote: Vote) -> None:
        """Note the vote by which a group was not let in."""
        if self.journal.depth:
            self.journal.put(self.kept_out, job.key, vote)
        else:  # without a call: thousands are refused in every cycle
            self.kept_out[job.key] = vote

    def condition(self, job: Job, condition: scheduling.PodGroupCondition) -> None:
        """Give a group a condition of this cycle."""
        self.journal.put(self.conditions, job.key, (*self.conditions.get(job.key, ()), condition))

    def condition_all(self, jobs: Sequence[Job], condition: scheduling.PodGroupCondition) -> None:
        """Give the groups of many jobs one condition of this cycle."""
        keys = [job.key for job in jobs]
        if self.journal.depth or not self.conditions.keys().isdisjoint(keys):
            for job in jobs:
                self.condition(job, condition)
        else:
            self.conditions.update(dict.fromkeys(keys, (condition,)))

    def foresee(self, job: Job, forecast: Forecast) -> None:
        """Say when a job is expected to start."""
        self.journal.put(self.forecasts, job.key, forecast)
        self.condition(job, forecast.condition)

    def notice(self, job: Job, text: str) -> None:
        """Tell a group's owner that it was not let in, and why."""
        self.journal.append(self.notices, (job, text))

    def warn(self, job: Job, text: str) -> None:
        """Tell a group's owner that it says what cannot be meant."""
        self.journal.append(self.warnings, (job, text))

    def warn_queue(self, queue: Queue, reason: str, text: str) -> None:
        """Tell a queue's owner that one of its settings does not count in full."""
        self.journal.append(self.queue_warnings, (queue, reason, text))

    # -- tasks -------------------------------------------------------------------------------------------------

    def note_fit(self, tasks: Iterable[Task], failure: FitSummary) -> None:
        """Remember why tasks found no node."""
        journal = self.journal
        for task in tasks:
            job = task.job
            if job is None:
                continue
            noted = self.fit_errors.get(job.key)
            if noted is None:
                journal.put(self.fit_errors, job.key, {task.uid: failure})
            else:
                journal.put(noted, task.uid, failure)

    def note_fit_of_all(self, job: Job, uids: Sequence[str], failure: FitSummary) -> None:
        """Remember one reason for tasks of a job about which nothing is known yet."""
        self.journal.put(self.fit_errors, job.key, dict.fromkeys(uids, failure))

    def errors(self, job: Job) -> dict[str, FitSummary]:
        """Return why tasks of a job found no node, by uid, the first that was tried first."""
        return self.fit_errors.get(job.key) or {}

    def forget_fit(self, job: Job, tasks: Iterable[Task] | None = None) -> None:
        """Forget why tasks of a job, by default all of them, found no node."""
        if tasks is None:
            self.journal.drop(self.fit_errors, job.key)
        elif noted := self.fit_errors.get(job.key):
            # A copy, so that taking it back restores the order too, by which the first reason is told.
            gone = {task.uid for task in tasks}
            self.journal.put(self.fit_errors, job.key, {k: v for k, v in noted.items() if k not in gone})

    def remember(self, task: Task, last: LastTransaction) -> None:
        """Remember where a discarded statement had put a task."""
        self.journal.put(self.last_transactions, task.uid, last)

    def forget_transaction(self, task: Task) -> None:
        """Forget where a discarded statement had put a task."""
        self.journal.drop(self.last_transactions, task.uid)
