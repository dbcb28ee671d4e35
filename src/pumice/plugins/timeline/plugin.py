"""timeline: start big jobs on time, and let others go first only where that delays nobody."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.api import names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code
from pumice.plugins.timeline import forecasts, plans, texts, turns
from pumice.plugins.timeline.estimates import Estimates, unreadable_default
from pumice.plugins.timeline.holders import Holders
from pumice.plugins.timeline.ledger import Ledger
from pumice.plugins.timeline.planning import NAME, Planner, View, left_for
from pumice.plugins.timeline.profile import NEVER
from pumice.plugins.timeline.starts import Starts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from pumice.framework.evaluation import Floats
    from pumice.framework.findings import Refused
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.searching import Search
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.job import Job
    from pumice.model.nodes import Nodes
    from pumice.model.task import Task

DAY: Final = 24 * 3_600_000_000
EVICTABLE: Final = "evictable"
EASY, CONSERVATIVE, OFF = "easy", "conservative", "off"
RESERVED: Final = "node(s) were reserved for other jobs"
TIE: Final = 0.001  # the least that tells scores apart
LATEST_FIRST: Final = 1_000_000.0  # points for each rank, far above what scores come to


class TimelineSettings(Settings):
    """How far is planned, and what is promised."""

    policy = settings.text(
        "timeline.policy",
        EASY,
        choices=(EASY, CONSERVATIVE, OFF),
        help="easy reserves for the first jobs that wait, conservative for every one, off for none",
    )
    depth = settings.whole(
        "timeline.depth", 1, minimum=1, replacement=1, help="how many reservations easy makes at once"
    )
    max_jobs = settings.whole(
        "timeline.maxJobs",
        500,
        minimum=0,
        replacement=500,
        help="how many jobs that wait are looked at in a cycle; 0 for all",
    )
    window = settings.period(
        "timeline.window",
        DAY,
        minimum=0,
        replacement=DAY,
        help="how far ahead starts are planned; 0s for any time",
    )
    resolution = settings.period(
        "timeline.resolution", 0, minimum=0, replacement=0, help="planned ends are rounded up to multiples of this"
    )
    default_estimate = settings.period(
        "timeline.defaultEstimate",
        None,
        minimum=1,
        replacement=None,
        help="how long jobs run of which nothing else says so; none by default: they run for ever",
    )
    learn = settings.truth(
        "timeline.learn",
        default=False,
        help="estimate by the last two runs of the same namespace, user and owner",
    )
    overrun = settings.text(
        "timeline.overrun",
        "extend",
        choices=("extend", EVICTABLE),
        help="evictable lets shuffle evict pods that run longer than estimated on nodes reserved for others; extend lets them run",
    )


class Timeline(Plugin):
    """Plan ahead by how long jobs are expected to run: jobs that find no room are promised a start, and others go first only where they delay nobody.

    `easy` reserves room for the first `timeline.depth` jobs that wait, `conservative` for every one of them. A job is expected to run as long as the annotation
    `pumice.dev/estimate` says on its PodGroup or its pods, else as the pods' `activeDeadlineSeconds`, the annotation `pumice.dev/default-estimate` of its queue, its earlier runs
    (`timeline.learn`) or `timeline.defaultEstimate` say; nothing ends it then. When a job is expected to start, and for whom it waits, is written to its PodGroup as condition `StartForecast`.
    """

    name = NAME
    points = frozenset({"JobDelay", "JobBlocked", "Predicate", "NodeOrder", "VictimTasks"})
    reads = Reads.COLUMNS
    settings = Configured(TimelineSettings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        told = self.settings
        self.estimates = Estimates(told.default_estimate, learn=told.learn)
        self.ledger = Ledger(self.estimates, told.resolution)
        self.planner = Planner(self.ledger, told.window)
        depth = told.depth if told.policy == EASY else told.max_jobs
        self.holders = Holders(self.ledger, self.planner, self.estimates, depth)
        self.forecasts = forecasts.Forecasts(self.ledger, self.planner, self.estimates)
        self._behind: dict[
            str, tuple[str, int, int]
        ] = {}  # whom jobs would delay, planned for when, and how much room had grown by then
        self._is_new = True

    def open(self, session: Session) -> None:
        """Register who may start where."""
        if self.settings.policy == OFF:
            return
        self.session = session
        self.blocked_jobs: dict[str, Job] = {}
        self._later: dict[str, Job] = {}  # whose queues have a reservation while others had none
        self.starts = Starts(session, self.ledger, self.estimates)
        self._seen = -1
        self._quiet: bool | None = None
        self._reserved = session.reason(self.name, Code.UNSCHEDULABLE, RESERVED)
        self.holders.begin()
        self._opened = list(self.ledger.bookings.values())
        if len(self._behind) > 2 * len(session.cluster.pending_jobs) + 64:
            self._behind = {key: each for key, each in self._behind.items() if key in session.cluster.pending_jobs}
        session.job_delay.add(self.delay)
        session.job_blocked.add(self.blocked)
        session.predicate.add(self.stays_free, reads=Reads.COLUMNS, apart=self.apart)
        session.score.add(self.points_for, reads=Reads.COLUMNS, apart=self.apart)
        if self.settings.overrun == EVICTABLE:
            session.victim_tasks.add(self.delaying)
        self.ledger.follow(session.cluster, session.started, self._restated(session))
        session.announced.standing_plans[self.name] = self

    def _restated(self, session: Session) -> list[int]:
        """Return the rows of pods whose jobs may say something else of how long they run; all of them if something was learnt."""
        cluster, now = session.cluster, session.started
        if self.estimates.watch(cluster, now, lambda task: self.ledger.started(task, now)):
            self.ledger.grown += 1  # whoever waits may run shorter than was thought
            return list(range(cluster.nodes.count))
        return [
            task.node.row
            for job in cluster.dirty_jobs.values()
            for task in job.tasks.values()
            if task.node is not None and task.node.row < cluster.nodes.count
        ]

    def stands(self, dormant: Mapping[str, Refused]) -> bool:
        """Tell whether what is reserved is for the same jobs, though some that find no room are not looked at in this cycle: they all hold a place, or nobody who holds one can start."""
        session, holders = self.session, self.holders
        if not self._looks_at_all():
            return False
        holders.tidy(session)
        if all(each.failure.queue or holders.is_for_later(session, key) for key, each in dormant.items()):
            return True
        if not holders.is_full or self.ledger.gained or self.ledger.profile.is_overbooked(session.started):
            return False
        return all(
            holders.is_for_later(session, key)
            and (key in dormant or not self.starts.fits_now(session.cluster.jobs[key]))
            for key in self.ledger.bookings
        )

    def woken(self, delayed: Mapping[str, Refused]) -> Iterable[str]:
        """Name those who have to be tried again: whose turn it is, before whom others are planned for another time, and everybody once there is more room than there was."""
        ledger, now, bookings = self.ledger, self.session.started, self.ledger.bookings
        if not self._is_quiet:
            return list(delayed)
        begun = set(ledger.promised.begun_by(now))
        found = []
        for key in delayed:
            holder, planned, grown = self._behind.get(key, ("", 0, -1))
            other = bookings.get(holder)
            stands = other is not None and other.start == planned and grown == ledger.grown and holder not in begun
            if not stands or key in begun or not (key in bookings or self.holders.is_full):
                found.append(key)
        return found

    def awaits(self, job: str) -> bool:
        """Tell whether a job waits for the time of its reservation, and would find no room before."""
        booking = self.ledger.bookings.get(job)
        if booking is None or booking.tight != self.ledger.grown or booking.start <= self.session.started:
            return False
        return booking.laid and self._is_quiet

    @property
    def _is_quiet(self) -> bool:
        """Whether all that was reserved when the cycle began stands as it was planned."""
        if self._quiet is None:
            self.holders.tidy(self.session)
            over = self.ledger.gained or self.ledger.profile.is_overbooked(self.session.started)
            self._quiet = self._looks_at_all() and not over
        return self._quiet

    def _looks_at_all(self) -> bool:
        """Tell whether nobody but jobs of one queue waits, and all of them are looked at in a cycle."""
        waiting, most = self.session.cluster.pending_jobs, self.settings.max_jobs
        return not self._is_new and not 0 < most < len(waiting) and len({job.queue for job in waiting.values()}) <= 1

    # -- who may start -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Where everybody holds room, bring it forward, or move it back, before anybody is placed: who is left out of the cycle has a say in that."""
        if self.settings.policy == CONSERVATIVE:
            self._catch_up()

    def _catch_up(self) -> None:
        """Bring the timeline and the reservations up to date with what was decided meanwhile."""
        session = self.session
        position = session.cluster.nodes.position
        if self._seen == position:
            return
        first = self._seen < 0
        changed = self.ledger.follow(session.cluster, session.started)
        if self._is_new and session.search is not None:
            self._is_new = False
            self._remember(session, session.search)
        if len(self.holders):
            self.holders.tidy(session)
            if (first or changed or self.ledger.gained) and session.search is not None:
                self.holders.revise(session, session.search)
        self._seen = session.cluster.nodes.position

    def _remember(self, session: Session, search: Search) -> None:
        """Give those their places back that held room before a restart."""
        for job in forecasts.remembered(session):
            if session.usable(job) and not self.holders.is_full:
                self.holders.reserve(session, search, job)

    def delay(self, job: Job) -> str | None:
        """Say whom a job would delay if it started now."""
        self._catch_up()
        if not len(self.holders):
            return None
        now, booking = self.session.started, self.holders.get(job.key)
        found = None
        if booking is not None and booking.start > now:
            found = self.starts.behind(job, booking)
        if found is None:
            if booking is not None:
                self.holders.step_aside(self.session, job.key)
                self._seen = -2
            found = self.starts.delay(job)
        if found is None:
            return None
        is_tight = booking is None or self.holders.is_tight(self.session, job, booking)
        self._behind[job.key] = (found.holder, found.planned, self.ledger.grown if is_tight else -1)
        return texts.would_delay(found, self.session.cluster.jobs[found.holder].title, now)

    def blocked(self, job: Job) -> None:
        """Reserve room for a job that found none, if it is its turn."""
        self._catch_up()
        session, search = self.session, self.session.search
        most, has_minimum = self.settings.max_jobs, job.tally.is_ready(job.min_member)
        if search is None or has_minimum or (most and len(self.blocked_jobs) >= most):
            return
        self.blocked_jobs[job.key] = job
        booking = self.holders.get(job.key)
        if booking is not None:
            if booking.start <= session.started:
                self.holders.plan_anew(session, search, booking)
        elif not self._is_limited(job):
            if self.settings.policy == EASY and turns.is_to_wait(session, self.holders, job):
                self._later[job.key] = job
            else:
                self.holders.reserve(session, search, job)

    def _is_limited(self, job: Job) -> bool:
        """Tell whether it is its queue that keeps a job waiting."""
        return any(failure.queue for failure in self.session.findings.errors(job).values())

    # -- nodes -------------------------------------------------------------------------------------------------

    def _view(self, job: Job | None) -> View | None:
        if self.planner.view is not None:
            return self.planner.view if job is not None and job.key == self.planner.job else None
        if not len(self.holders):
            return None
        horizon = self.starts.horizon(job)
        return self.starts.view(horizon) if horizon else None

    def apart(self, subject: Subject) -> Hashable:
        """Name what nodes have left for a job as long as it runs."""
        if self.planner.view is not None:
            mine = subject.job is not None and subject.job.key == self.planner.job
            return ("planned", self.planner.searches) if mine else None
        return self.starts.name(self.starts.horizon(subject.job)) if len(self.holders) else None

    def stays_free(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes that have too little room as long as the job runs, by what is reserved there for others."""
        view = self._view(subject.job)
        if view is None:
            return None
        request, index = subject.request, nodes.index
        left = left_for(view, index, nodes.used, nodes.pipelined, nodes.releasing if nodes.released else None)
        short = (left[:, request.asked] < request.needed).any(axis=1) & view.bound[index]
        return np.where(short, self._reserved, 0).astype(np.int16)

    def points_for(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Plan on the nodes that are free latest; start on those where something is reserved, if all else is equal."""
        view = self.planner.view
        if view is not None:
            if view.ranks is None or subject.job is None or subject.job.key != self.planner.job:
                return None
            return view.ranks[nodes.index].astype(np.float64) * LATEST_FIRST
        booked = self.starts.booked() if len(self.holders) else None
        return None if booked is None else booked[nodes.index].astype(np.float64) * TIE

    def delaying(self, running: Sequence[Task]) -> list[Task]:
        """Name pods that run longer than was estimated, and for whose room somebody waits who holds a reservation."""
        cluster, now = self.session.cluster, self.session.started
        booked = {name for booking in self.ledger.bookings.values() for name in booking.amounts}
        return [
            task
            for task in running
            if task.preemptable and task.node is not None and task.node.name in booked
            if self.ledger.is_over(cluster, task, now)
        ]

    # -- after a cycle -----------------------------------------------------------------------------------------

    def conclude(self, session: Session) -> None:
        """Say when jobs that wait are expected to start, and ask to be woken when something planned is due."""
        if self.settings.policy == OFF:
            return
        self._catch_up()
        now = session.started
        self._warn(session)
        if self._later and session.search is not None:
            turns.reserve(session, session.search, self.holders, self._later)
        resting = session.findings.dormant
        most = self.settings.max_jobs
        others = turns.left_out(session, (self.blocked_jobs, resting), most)
        room = most - len(self.blocked_jobs) - len(resting) - len(others)
        beyond = turns.beyond(session, room) if not most or room > 0 else {}
        others = {**others, **{key: session.cluster.jobs[key] for key in beyond}}
        waiting = plans.Waiting(self.blocked_jobs, resting, others, beyond)
        self.forecasts.tell(session, waiting, self.holders.given_up)
        if not self.blocked_jobs and not resting and not others and not len(self.holders):
            return
        begins = self.ledger.promised.begins(now)
        for moment in (*begins[begins > now][:1].tolist(), self.ledger.next_end):
            if now < moment < NEVER:
                session.wake_at(moment)

    def is_settled(self, session: Session) -> bool:
        """Tell whether all that is reserved is as it was when the cycle began, and for later: who was to wait for it is to wait for it still."""
        if self.settings.policy == OFF:
            return True
        bookings = list(self.ledger.bookings.values())
        if self.ledger.gained or self.holders.unknown or self.forecasts.is_behind or self.settings.overrun == EVICTABLE:
            return False
        same = len(bookings) == len(self._opened) and all(map(operator.is_, bookings, self._opened))
        return same and all(booking.laid and booking.start > session.started for booking in bookings)

    def _warn(self, session: Session) -> None:
        """Say, once, that an estimate cannot be read, or that starts are not planned as far ahead as a job runs."""
        window = self.settings.window
        for queue in session.cluster.queues.values():
            if not queue.bad and (problem := unreadable_default(queue)):
                session.findings.warn_queue(queue, names.EVENT_INVALID_SPEC, problem)
        for job in {**session.cluster.dirty_jobs, **self.blocked_jobs}.values():
            if job.group is None or job.bad:
                continue
            found = self.estimates.of(session.cluster, job)
            if found.unreadable:
                session.findings.warn(job, found.unreadable)
            if window and found.length is not None and found.length > window:
                told = f"its estimate of {texts.length(found.length)} is longer than timeline.window {texts.length(window)}"
                session.findings.warn(
                    job, f"{told}: who waits for it gets no start; set timeline.window above it, or 0"
                )
