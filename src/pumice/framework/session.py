"""A session: one cycle's view of the cluster, with the functions of all plugins, and everything that is not model state.

Phases set by enqueue, conditions, fit errors and last transactions live here and in the decision record. What is only held at the end (pipelined
tasks, gangs that wait for room) is rolled back when the session closes, so the cluster between cycles is what the API server knows.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol, TypeVar

from pumice.framework import breakdowns, observing, waking
from pumice.framework.announced import Announced
from pumice.framework.attempts import Attempt
from pumice.framework.breakdowns import OPEN, PLAN, Breakdowns, PluginBreakdownError
from pumice.framework.findings import Findings, LastTransaction
from pumice.framework.gates import Gates
from pumice.framework.handlers import Follower, Handlers
from pumice.framework.independence import Independence
from pumice.framework.job_domains import JobDomains
from pumice.framework.lending import Lending
from pumice.framework.never_running import NeverRunning
from pumice.framework.outlet import Sender
from pumice.framework.outlooks import Outlooks
from pumice.framework.points import POINTS, Points
from pumice.framework.reasons import Code, FitSummary
from pumice.framework.registration import Roster
from pumice.framework.reservations import Reservations
from pumice.framework.statements import Statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.framework.configuration import Configuration
    from pumice.framework.evaluation import Evaluation
    from pumice.framework.evaluator import Evaluator
    from pumice.framework.handlers import Handler, ListHandler
    from pumice.framework.outlet import Outlet
    from pumice.framework.record import CycleRecord
    from pumice.framework.registration import Slot
    from pumice.framework.runs import Run
    from pumice.framework.searching import Search, StandingPlan
    from pumice.framework.statement import Statement
    from pumice.framework.subject import Subject
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job, SubJob
    from pumice.model.queue import Queue
    from pumice.model.task import Task

R = TypeVar("R")


class Opened(Protocol):
    """A plugin (`plugin.Plugin`), as far as a session opens it."""

    name: ClassVar[str]
    points: ClassVar[frozenset[str]]

    def open(self, session: Session) -> None:
        """Register functions at the extension points of a session."""


class Session(Points):
    """One cycle."""

    def __init__(
        self,
        cluster: Cluster,
        configuration: Configuration,
        evaluator: Evaluator,
        record: CycleRecord,
        outlet: Outlet,
        *,
        number: int,
        now: int,
        reservations: Reservations | None = None,
        observer: observing.Observer = observing.NOBODY,
        streaks: dict[breakdowns.Key, breakdowns.Streak] | None = None,
        lasting: dict[str, object] | None = None,
        is_asked: bool = False,
    ) -> None:
        self.cluster = cluster
        self.observer = observer
        self.configuration = configuration
        self.evaluator = evaluator
        self.shortcuts = evaluator.shortcuts
        self.record = record
        self.number = number
        self.breakdowns = Breakdowns(number, streaks)
        self.attempting: Attempt | None = None
        self.handlers = Handlers(self.breakdowns, lambda error: breakdowns.culprit(error, self._plugins))
        self.announced = Announced()
        self.findings = Findings(record.journal)
        self.scratch: dict[str, object] = {}  # what is worked out once for this cycle
        # What plugins follow together from cycle to cycle.
        self.lasting: dict[str, object] = {} if lasting is None else lasting
        self.is_asked = is_asked  # whether somebody wants to be told of jobs that nothing new can be said of, too
        self._progressed = False
        self.failures: list[Exception] = []  # of actions as a whole; those about somebody are among the breakdowns
        self._plugins: list[Opened] = []
        self.reads_time = False
        self.wake: int | None = None
        self.started = now
        self.reservations = reservations or Reservations()
        self.reserved: dict[str, Task] = {}
        # Those of them that are left out of the cycle, by uid, each with what says what trying it would have said.
        self.resting_holders: dict[str, Callable[[Job], None]] = {}
        self.topology = JobDomains(self)
        self.never_running = NeverRunning(self)
        self.outlooks = Outlooks(self)
        self.search: Search | None = None  # where a job would go at another time; while allocate serves jobs
        self.lending = Lending()
        self.gates = Gates(self)
        self.sender = Sender(self, outlet)
        self.statements = Statements(self)
        roster = Roster(len(configuration.tiers), final_veto=configuration.rules == "kube-batch")
        roster.breakdowns, roster.evaluator = self.breakdowns, evaluator
        self.declare(roster)
        self.independence = Independence(self, evaluator)

    @property
    def now(self) -> int:
        """The time of this cycle. Whoever reads it makes the cycle depend on time; `wake_at` then says when to look again."""
        self.reads_time = True
        return self.started

    @property
    def names_nodes(self) -> bool:
        """Whether a plugin names the node of a task."""
        return self.best_node.active

    @property
    def progressed(self) -> bool:
        """Whether anything was decided, so that the next cycle may decide more."""
        return self._progressed or bool(self.findings.phases)

    @progressed.setter
    def progressed(self, value: bool) -> None:
        self._progressed = value

    def wake_at(self, instant: int) -> None:
        """Ask for a cycle at a time, though nothing may have changed by then."""
        self.wake = instant if self.wake is None else min(self.wake, instant)

    # -- opening -----------------------------------------------------------------------------------------------

    def open(self, plugins: Sequence[tuple[Opened, Slot]]) -> None:
        """Let every plugin register its functions, in tier order; one that breaks down is out of this cycle."""
        self._plugins = [plugin for plugin, _ in plugins]
        for plugin, slot in plugins:
            self._roster.slot = slot
            mark = self.observer.mark()
            self._open(plugin)
            self.observer.spent("plugin open", plugin.name, mark)
        self._roster.slot = None
        self.evaluator.open(self.predicate, self.score, self.number)
        if self.sender.takes_gates_off:
            self.gates.open()

    def _open(self, plugin: Opened) -> None:
        """Open one plugin. One that breaks down registers nothing, but where it may refuse it refuses: nobody knows what it would have refused.

        By its points it says where that may be; one that says nothing may refuse anywhere.
        """
        handlers, divisions = len(self.handlers), len(self.announced.divisions)
        try:
            if rests := self.breakdowns.resting(plugin.name, OPEN, type(plugin).open):
                raise PluginBreakdownError(rests[""])  # noqa: TRY301  as if it had been called
            plugin.open(self)
        except Exception as error:  # noqa: BLE001  whatever a plugin raises
            broken = self.breakdowns.note(plugin.name, OPEN, type(plugin).open, error).breakdown
            self.handlers.keep(handlers)
            del self.announced.divisions[divisions:]

            def refuse(*_args: object) -> NoReturn:
                raise PluginBreakdownError(broken)

            for point in POINTS:
                extension = getattr(self, point.attribute)
                extension.remove(lambda each: each.plugin == plugin.name)
                if extension.refuses and (point.name in plugin.points or not plugin.points):
                    extension.stand_in(refuse)

    def follow(
        self, handler: ListHandler, *, may_refuse: bool = False, waiting: bool = False, one_job: bool = False
    ) -> None:
        """Follow placements in lists: called with runs of tasks and 1 when they take room, -1 when they give it back.

        With `may_refuse` it may answer with a reason, and is told of one task at a time; that one is then undone, and every handler, this one too, is told -1. With `waiting` it is also told,
        with 0, of tasks that merely begin or cease to wait, as victims do where it is supposed that they ask again. With `one_job` it says that it looks at nothing but
        each run and its job, so that it may be told of the runs of several jobs when all of them are applied.
        """
        self._add_follower(handler, by_run=False, may_refuse=may_refuse, waiting=waiting, one_job=one_job)

    def add_handler(
        self, handler: Handler, *, may_refuse: bool = False, waiting: bool = False, one_job: bool = False
    ) -> None:
        """Follow placements: called with a run of tasks and 1 when they take room, -1 when they give it back.

        What else is said of it, and what it may answer, is as with `follow`.
        """
        self._add_follower(handler, by_run=True, may_refuse=may_refuse, waiting=waiting, one_job=one_job)

    def _add_follower(
        self, handler: ListHandler | Handler, *, by_run: bool, may_refuse: bool, waiting: bool, one_job: bool
    ) -> None:
        slot = self._roster.slot
        follower = Follower("" if slot is None else slot.plugin, handler, by_run, waiting)
        self.handlers.add(follower, may_refuse=may_refuse, one_job=one_job)

    def ask_plans(self, question: Callable[[StandingPlan], R]) -> list[R]:
        """Ask those who plan ahead; whoever breaks down is not asked any more in this cycle."""
        answers = []
        for name, plan in list(self.announced.standing_plans.items()):
            try:
                answers.append(question(plan))
            except Exception as error:  # noqa: BLE001  whatever a plugin raises
                self.breakdowns.note(name, PLAN, type(plan), error)
                del self.announced.standing_plans[name]
        return answers

    def divide_runs(self, question: Callable[[Task], object]) -> None:
        """Let nodes be chosen apart for tasks to which a question has different answers, though they are equal otherwise."""
        self.announced.divisions.append(question)

    def tell(self, runs: Sequence[Run], sign: int) -> str | PluginBreakdownError | None:
        """Tell the handlers about runs of one direction that were applied (sign 1) or undone (-1); returns the first refusal.

        Jobs and their queues then move at once: shares are live, and whoever is ordered by what it holds is so as the handlers know it.
        """
        refusal = self.handlers.tell(runs, sign)
        queues: dict[str, None] = {}
        for run in runs:
            if (job := run.tasks[0].job) is not None:
                self.job_order.touch(job)
                queues[job.queue] = None
        for name in queues:
            if (queue := self.cluster.queues.get(name)) is not None:
                self.queue_order.touch(queue)
        return refusal

    def tell_of_many(self, runs: Sequence[Run], sign: int) -> str | PluginBreakdownError | None:
        """Tell the handlers about runs of many jobs, after which everybody is ordered anew."""
        refusal = self.handlers.tell(runs, sign)
        self.job_order.touch_all()
        self.queue_order.touch_all()
        return refusal

    # -- attempts ----------------------------------------------------------------------------------------------

    def attempt(self, job: Job, *, passing: bool = False) -> Attempt:
        """Begin to try a job: `with session.attempt(job):`. An exception gives the job up, and goes no further unless it is `passing` to an attempt around this one."""
        return Attempt(self, job, passing=passing)

    def settle_words(self) -> None:
        """Let what was said in an attempt stay, since something of it does."""
        if self.attempting is not None:
            self.attempting.settle()

    def give_up(self, job: Job, error: Exception) -> None:
        """Note that a job could not be tried to the end."""
        self.breakdowns.note_unknown(error, breakdowns.culprit(error, self._plugins), job.key)
        self.findings.attempt(job)

    # -- jobs --------------------------------------------------------------------------------------------------

    @functools.cached_property
    def awake(self) -> dict[str, Job]:
        """The jobs that had pending tasks when the first asked for them, but for those that are left out of the cycle."""
        return waking.of(self.lasting).among(self.cluster, self.findings.dormant)

    def readiness(self, job: Job) -> Callable[[], bool]:
        """Return the question whether a job is ready, for whoever asks it after every step; where minimums count nobody is asked before that is reached."""
        if not self.announced.minimums_count:
            return lambda: self.job_ready(job)
        tally, least = job.tally, job.min_member
        return lambda: tally.is_ready(least) and self.job_ready(job)

    def queue_of(self, job: Job) -> Queue | None:
        """Return the queue of a job, None if it is missing or invalid."""
        return self.cluster.queue_of(job)

    def usable(self, job: Job) -> bool:
        """Tell whether a job has a valid group and a valid queue."""
        if job.group is None or job.bad or (job.native and job.held):
            return False
        # Asked of every waiting job by every action, so without asking `queue_of`.
        queue = self.cluster.queues.get(job.queue)
        return queue is not None and not queue.bad

    def usable_jobs(self, jobs: Iterable[Job]) -> list[Job]:
        """Return those of many jobs that have a valid group and a valid queue."""
        valid = self.valid_queues()
        found = [job for job in jobs if job.group is not None and not job.bad and job.queue in valid]
        return [job for job in found if not (job.native and job.held)]

    def valid_queues(self) -> set[str]:
        """Return the names of queues that can be used."""
        return {name for name, queue in self.cluster.queues.items() if not queue.bad}

    def closed(self, job: Job) -> str | None:
        """Say why the queue of a job starts nothing new, whatever plugins are listed; None if it does, or if Volcano's rules leave that to them."""
        queue = self.cluster.queues.get(job.queue)
        return None if queue is None else self._closed(queue)

    def closed_queues(self) -> dict[str, str]:
        """Say the same of every queue that starts nothing new, by its name."""
        found = ((name, self._closed(queue)) for name, queue in self.cluster.queues.items())
        return {name: text for name, text in found if text is not None}

    def _closed(self, queue: Queue) -> str | None:
        if queue.is_open or self.configuration.compatibility == "volcano":
            return None
        return f"queue {queue.name}: {queue.closed}"

    def is_pipelined(self, job: Job) -> bool:
        """Ask whether enough of a job is placed or waits for release."""
        return self.job_pipelined(job).value > 0

    def is_sub_job_ready(self, job: Job, sub_job: SubJob) -> bool:
        """Ask whether a sub-job is ready; a job without policies answers for its only one."""
        return self.sub_job_ready(sub_job) if job.policies else self.job_ready(job)

    def is_sub_job_pipelined(self, job: Job, sub_job: SubJob) -> bool:
        """Ask whether a sub-job is ready or waits for release."""
        vote = self.sub_job_pipelined(sub_job) if job.policies else self.job_pipelined(job)
        return vote.value > 0

    def may_try(self, task: Task) -> bool:
        """Tell whether a task whose last bind failed has waited long enough; if not, ask for a cycle at that time."""
        if task.retry_at <= self.started:
            return True
        self.wake_at(task.retry_at)
        return False

    @functools.cached_property
    def gangs_are_kept(self) -> bool:
        """Tell whether gangs are kept whole: evicted whole below their minimum, finished first where they were left incomplete. Volcano and kube-batch do not."""
        settings = self.configuration
        return (
            settings.rules == "current" and settings.compatibility != "volcano" and settings.plugin("gang") is not None
        )

    def victim_queue_compare(self, left: Queue, right: Queue, claimant: Queue | None) -> int:
        """Compare two queues that victims come from, negative meaning that the first loses first; by default the last in order."""
        decided = self.victim_queue_order.compare(left, right, claimant) if claimant is not None else 0
        return decided or self.queue_order.compare(right, left)

    # -- nodes -------------------------------------------------------------------------------------------------

    def evaluate(self, subject: Subject) -> Evaluation:
        """Return the verdicts and scores of all nodes for a subject."""
        return self.evaluator.evaluate(subject)

    def reason(self, plugin: str, code: Code, text: str) -> int:
        """Return the number that stands for a reason in the answers of filters."""
        return self.evaluator.reasons.number(plugin, code, text)

    # -- statements --------------------------------------------------------------------------------------------

    def statement(self, claimant: Task | None = None) -> Statement:
        """Start a statement, maybe to make room for a claimant; one that is neither committed nor kept is undone when the session closes."""
        return self.statements.start(claimant)

    def keep(self, runs: Iterable[Run]) -> None:
        """Keep runs applied until the session closes."""
        self.statements.keep(runs)

    def remember(self, run: Run) -> None:
        """Remember where a discarded run had put its tasks."""
        for task, target in zip(run.tasks, run.targets, strict=True):
            self.findings.remember(task, LastTransaction(run.after, target.name if target else "", run.evicted))

    def refused(self, task: Task, reason: str) -> None:
        """Note that a plugin refused a placement."""
        self.findings.note_fit([task], FitSummary(0, (), reason))
        self.record.say("statement", f"{task.key}: placement refused: {reason}")

    def reserve(self, members: Sequence[Task], victims: Sequence[Task], patience: int) -> None:
        """Hold the nodes of a plan's members for them in the cycles to come, for so long after the last victim is gone."""
        self.reservations.add(members, victims, patience, self.started)

    def holds_room(self, job: Job) -> bool:
        """Tell whether some room is held for a job by a plan that was made for it."""
        holds = self.reservations.holds
        return bool(holds) and any(uid in holds for uid in job.tasks if uid in self.reserved or uid in job.pending)

    # -- closing -----------------------------------------------------------------------------------------------

    def rollback(self) -> None:
        """Undo everything that was only held, and whatever an action that broke down left behind."""
        self.statements.rollback()
