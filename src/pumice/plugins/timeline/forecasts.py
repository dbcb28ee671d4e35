"""Forecasts: when jobs that wait are expected to start, where, for whom they wait, and why that has moved.

Who holds room says so. Others are planned in the same way behind them, each with those before it in place, and nothing is held; last of all members beyond the minimum of jobs that have theirs. That is due to be looked at again when a tenth of the time that was left,
and at least a minute, has passed, or the planned start has: a forecast that moved by less would not be written. Who was never told anything is planned at once. Of those who are due, one is looked at for
every four times at which there is a cycle, what was spared before included, and who has been due for the longest time comes first: a queue of thousands costs no more than what changes.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import msgspec

from pumice.api import duration, names, scheduling
from pumice.framework.findings import Forecast
from pumice.model.reading import instant
from pumice.plugins.timeline import texts, waits
from pumice.plugins.timeline.ledger import on_nodes
from pumice.plugins.timeline.planning import Wanted
from pumice.plugins.timeline.plans import Plan, Shadow, Told
from pumice.plugins.timeline.promises import Promises

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.framework.searching import Search
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.task import Task
    from pumice.plugins.timeline.estimates import Estimates
    from pumice.plugins.timeline.ledger import Booking, Ledger
    from pumice.plugins.timeline.planning import Planner
    from pumice.plugins.timeline.plans import Waiting
    from pumice.plugins.timeline.profile import Profile

MOVED = duration.MINUTE
TENTH = 10
MOST = 5  # searches in a cycle for those who hold nothing, each some 15 ms at 1,000 nodes; others follow a second later
PRICE = 4  # times at which there is a cycle, for a second look at one job
SPARED = 32 * PRICE  # no more looks are saved up, and so many are worth going through all who wait


class Forecasts:
    """What was told, from cycle to cycle."""

    def __init__(self, ledger: Ledger, planner: Planner, estimates: Estimates) -> None:
        self._ledger = ledger
        self._planner = planner
        self._estimates = estimates
        self._told: dict[str, Told] = {}
        self._reserved: dict[str, None] = {}  # those of them for whom room is held
        self._planned = Promises()  # what the others were told, as if it were promised
        self._begun = -1
        self._alarms: list[tuple[int, str]] = []
        self._due: dict[str, None] = {}  # who is to be looked at again, who is due for the longest time first
        self._order: list[str] = []  # who is planned, in planning order, as that was found last
        self._looks, self._time = SPARED, -1
        self._changed: dict[str, None] = {}
        self._left: dict[str, None] = {}  # who is left to be planned a second later

    @property
    def is_behind(self) -> bool:
        """Whether some are left to be planned a second later."""
        return bool(self._left)

    def tell(self, session: Session, waiting: Waiting, yielded: Iterable[str]) -> None:
        """Say of every job that waits, in planning order, when it is expected to start; who was not looked at is told only what is new."""
        self._catch_up(session, waiting)
        held, now = self._ledger.bookings, session.started
        due = [key for key in self._due if key in held]
        for key in dict.fromkeys((*self._ledger.news, *due)):
            if (booking := held.get(key)) is not None:
                known = self._told.get(key)
                if known is None or known.plan.first is not booking or now >= known.again:
                    job = session.cluster.jobs[key]
                    self._tell(session, job, Plan([booking]), names.REASON_RESERVED, (self._ledger.promised,))
        self._ledger.news.clear()
        if session.search is not None:
            lost = self._reserved.keys() - held.keys() if self._reserved else ()
            urgent = [key for key in (*lost, *yielded, *self._left) if key in waiting and key not in held]
            self._plan(session, session.search, waiting, urgent)
        self._foresee(session, waiting)

    def _foresee(self, session: Session, waiting: Waiting) -> None:
        """Say what was told of those that were tried, and of others what is new."""
        jobs, told, held = session.cluster.jobs, self._told, self._ledger.bookings
        if session.is_asked:
            ahead = Promises()
            ahead.begin(self._ledger.profile.nodes, len(session.cluster.vocabulary))
            for key in dict.fromkeys((*held, *waiting.in_order(session))):
                if (known := told.get(key)) is not None:
                    session.findings.foresee(jobs[key], self._in_full(session, known, ahead))
            return
        first = [key for key in self._changed if key in held]
        for key in dict.fromkeys((*first, *waiting.tried, *self._changed, *waiting.others)):
            known = told.get(key)
            if known is None or (key not in held and key not in waiting):
                continue
            if key in waiting.resting:
                session.findings.attempt(jobs[key])
            session.findings.foresee(jobs[key], known.forecast)

    def _in_full(self, session: Session, told: Told, ahead: Promises) -> Forecast:
        """Return a forecast with what would bring it forward, behind what is planned before it."""
        first, cluster = told.plan.first, session.cluster
        if first is None or on_nodes(cluster, first) is None:
            return told.forecast
        awaited = waits.awaited(session, self._ledger, first, [ahead], beyond=bool(told.plan.beyond))
        for booking in told.plan.bookings:
            if (found := on_nodes(cluster, booking)) is not None:
                ahead.put(booking.job, *found, booking.start, booking.stop)
        return msgspec.structs.replace(told.forecast, sooner=waits.sooner(awaited))

    # -- who is to be looked at --------------------------------------------------------------------------------

    def _catch_up(self, session: Session, waiting: Waiting) -> None:
        """Forget those who wait no more, and find out who is due."""
        cluster, now, told = session.cluster, session.started, self._told
        self._changed = {}
        looked_at = (*session.findings.attempted, *cluster.dirty_jobs)
        held = self._ledger.bookings
        over = [key for key in looked_at if key in told and key not in held and not waiting.as_before(key, told[key])]
        for key in (*(told.keys() - cluster.pending_jobs.keys()), *over):
            if key in told:
                self._forget(key)
        if self._begun != self._ledger.begun:
            self._begun = self._ledger.begun
            self._planned.begin(self._ledger.profile.nodes, len(cluster.vocabulary))
            for booking in self._all_planned():
                self._put(cluster, booking)
        while self._alarms and self._alarms[0][0] <= now:
            moment, key = heapq.heappop(self._alarms)
            if (known := told.get(key)) is not None and known.alarm == moment:
                self._due[key] = None
        if now > self._time:
            self._looks, self._time = min(self._looks + 1, SPARED), now

    def _forget(self, key: str) -> None:
        del self._told[key]
        self._due.pop(key, None)
        self._reserved.pop(key, None)
        if key in self._planned:
            self._planned.drop(key)

    def _note(self, session: Session, key: str, told: Told) -> None:
        """Keep what a job is told."""
        before = self._told.get(key)
        if before is None or before.forecast.condition is not told.forecast.condition:
            self._changed[key] = None
        self._told[key] = told
        self._due.pop(key, None)
        self._left.pop(key, None)
        heapq.heappush(self._alarms, (told.alarm, key))
        if key in self._planned:
            self._planned.drop(key)
        if told.is_reserved:
            self._reserved[key] = None
        else:
            self._reserved.pop(key, None)
            for booking in told.plan.bookings:
                self._put(session.cluster, booking)

    def _put(self, cluster: Cluster, booking: Booking) -> None:
        """Take what a job was told for promised, if its nodes are there."""
        if (found := on_nodes(cluster, booking)) is not None:
            self._planned.put(booking.job, *found, booking.start, booking.stop)

    # -- planning ----------------------------------------------------------------------------------------------

    def _plan(self, session: Session, search: Search, waiting: Waiting, urgent: Sequence[str]) -> None:
        """Plan those who hold nothing and have to be looked at: who comes last in planning order behind all others, anybody else when all are gone through."""
        held, told = self._ledger.bookings, self._told
        self._left = {}
        self._planned_until = self._planner.searches + MOST
        new = [key for key in (*waiting.tried, *waiting.others) if key not in told and key not in held]
        due = [key for key in self._due if key not in held and key in waiting]
        looks = min(len(due), self._looks // PRICE)
        if looks < len(due) and self._looks < SPARED:
            looks = 0
        chosen = dict.fromkeys((*urgent, *due[:looks]))
        self._looks -= PRICE * looks
        if new and (waiting.others or not self._is_last(session, new[0])):
            chosen.update(dict.fromkeys(new))
            new = []
        if chosen:
            behind = {key: job for key, job in waiting.in_order(session).items() if key not in held}
            self._go_through(session, search, behind, chosen, waiting.beyond)
            self._order = [key for key in behind if key in told]
        if new:
            self._plan_last(session, search, new)

    def _is_last(self, session: Session, key: str) -> bool:
        """Tell whether a job comes after all that are planned."""
        jobs, order = session.cluster.jobs, self._order
        while order and order[-1] not in self._told:
            order.pop()
        return not order or session.job_order.compare(jobs[order[-1]], jobs[key]) < 0

    def _plan_last(self, session: Session, search: Search, new: Sequence[str]) -> None:
        """Plan jobs that come after all others, in planning order."""
        jobs, cluster = session.cluster.jobs, session.cluster
        profile = self._ledger.profile.beside(self._planned.profile)
        ledger = self._ledger
        shadow = Shadow(profile, ledger.bookings, self._all_planned, (ledger.promised, self._planned))
        for key in new:
            if not self._may_search(session, key):
                continue
            self._order.append(key)
            if (booking := self._look(session, search, jobs[key], shadow).first) is not None:
                _take(cluster, profile, booking)

    def _all_planned(self) -> list[Booking]:
        return [booking for each in self._told.values() if not each.is_reserved for booking in each.plan.bookings]

    def _go_through(
        self,
        session: Session,
        search: Search,
        behind: Mapping[str, Job],
        chosen: Mapping[str, None],
        beyond: Mapping[str, Sequence[Task]],
    ) -> None:
        """Plan some jobs, each with those before it in planning order in place."""
        ledger = self._ledger
        before: list[Booking] = []
        ahead = Promises()
        ahead.begin(ledger.profile.nodes, len(session.cluster.vocabulary))
        laid, left = 0, len(chosen)
        for key, job in behind.items():
            if not left:
                break
            if key in chosen:
                left -= 1
                if not self._may_search(session, key):
                    continue
                found = ((each, on_nodes(session.cluster, each)) for each in before[laid:])
                ahead.put_all([(each.job, *nodes, each.start, each.stop) for each, nodes in found if nodes is not None])
                laid = len(before)
                shadow = Shadow(
                    ledger.profile.beside(ahead.profile), ledger.bookings, before.copy, (ledger.promised, ahead)
                )
                self._look(session, search, job, shadow, beyond.get(key, ()))
            if (known := self._told.get(key)) is not None:
                before += known.plan.bookings

    def _may_search(self, session: Session, key: str) -> bool:
        """Tell whether there may be another search in this cycle; whom that leaves out has its turn a second later."""
        if self._planner.searches < self._planned_until:
            return True
        session.wake_at(session.started + duration.SECOND)
        self._left[key] = None
        return False

    def _look(self, session: Session, search: Search, job: Job, shadow: Shadow, beyond: Sequence[Task] = ()) -> Plan:
        """Find out when a job, or its members beyond the minimum, can start, and tell it."""
        length = self._estimates.of(session.cluster, job).run(session.started)
        found: list[Booking] = []
        left, since = beyond, session.started + 1
        beside = msgspec.structs.replace(shadow, planned=lambda: (*shadow.planned(), *found))
        while not found or (left and self._planner.searches < self._planned_until):
            booking = self._planner.book(session, search, Wanted(job, length, since, beyond=left), beside)
            if booking is None:
                break
            found.append(booking)
            placed = dict(booking.places)
            left, since = [task for task in left if task.uid not in placed], booking.start
            if left:
                _take(session.cluster, shadow.profile, booking)
        plan = Plan(found, beyond)
        self._tell(session, job, plan, names.REASON_PLANNED, shadow.promised)
        return plan

    # -- words -------------------------------------------------------------------------------------------------

    def _tell(self, session: Session, job: Job, plan: Plan, reason: str, promised: Iterable[Promises]) -> None:
        """Make the forecast of a job, unless it is the one that stands."""
        now, before, booking = session.started, self._before(job, plan), plan.first
        if job.key in self._planned:
            self._planned.drop(job.key)
        if booking is None:
            wanted = Wanted(job, self._estimates.of(session.cluster, job).run(now), now + 1, beyond=plan.beyond)
            text = waits.unknown(session, self._ledger, self._planner, wanted)
            condition = _condition(names.REASON_UNKNOWN, f"{text}{plan.whose(now)}")
            stands = before is not None and before[0] == condition
            forecast = Forecast(before[0] if before is not None and stands else condition, None, {})
            self._note(session, job.key, Told(forecast, plan, now + MOVED))
            return
        start = max(booking.start, now)
        again = now + max(MOVED, (start - now) // TENTH)
        by = known.by if (known := self._told.get(job.key)) is not None else None
        if before is not None and before[0].reason == reason and not _has_moved(before[1], start, now):
            self._note(session, job.key, Told(Forecast(before[0], before[1], booking.nodes), plan, again, by))
            return
        awaited = waits.awaited(session, self._ledger, booking, promised, beyond=bool(plan.beyond))
        stood = _stands_since(job, reason, now)
        text = f"expected at {texts.moment(start, stood)} on {texts.nodes(booking.nodes)}"
        text += f"{plan.whose(stood)}{waits.told(awaited, stood)}"
        if before is not None and before[1] is not None and _has_moved(before[1], start, now):
            why = waits.cause(session, self._ledger, awaited, by, later=start > before[1])
            text = f"{text}; moved from {texts.moment(before[1], stood)}: {why}"
        forecast = Forecast(_condition(reason, text), start, booking.nodes)
        self._note(session, job.key, Told(forecast, plan, again, waits.reckoned(awaited, now)))

    def _before(self, job: Job, plan: Plan) -> tuple[scheduling.PodGroupCondition, int | None] | None:
        """Return what was told of a job, after a restart by its condition, and the time that it gives; None if that was for other members."""
        told = self._told.get(job.key)
        if told is not None:
            return told.forecast.condition, told.forecast.expected
        for condition in job.status.conditions:
            stands = condition.type == names.CONDITION_START_FORECAST and condition.status == "True"
            if stands and plan.is_of_the_same(condition.message):
                plain = _condition(condition.reason, condition.message)
                return plain, texts.expected(condition.message, condition.last_transition_time or "")
        return None


def _take(cluster: Cluster, profile: Profile, booking: Booking) -> None:
    """Take the room of a booking off what there is, if its nodes are there."""
    if (found := on_nodes(cluster, booking)) is not None:
        profile.change(found[0], -found[1], booking.start, booking.stop)


def remembered(session: Session) -> list[Job]:
    """Return the jobs for which room was held before a restart, by when it was."""
    found: list[tuple[str, str, Job]] = []
    for job in session.cluster.pending_jobs.values():
        for condition in job.status.conditions:
            stands = condition.type == names.CONDITION_START_FORECAST and condition.status == "True"
            if stands and condition.reason == names.REASON_RESERVED:
                found.append((condition.last_transition_time or "", job.key, job))
    return [job for _, _, job in sorted(found, key=lambda each: each[:2])]


def _condition(reason: str, message: str) -> scheduling.PodGroupCondition:
    return scheduling.PodGroupCondition(
        type=names.CONDITION_START_FORECAST, status="True", reason=reason, message=message
    )


def _stands_since(job: Job, reason: str, now: int) -> int:
    """Return since when a forecast has stood: one of the same kind keeps its time, and what is written without a date is of that day."""
    for condition in job.status.conditions:
        if condition.type == names.CONDITION_START_FORECAST and (condition.status, condition.reason) == (
            "True",
            reason,
        ):
            return instant(condition.last_transition_time) or now
    return now


def _has_moved(before: int | None, start: int, now: int) -> bool:
    """Tell whether a time is another one: by more than a minute, and more than a tenth of what is left; or the one that was given is over."""
    if before is None or before <= now < start:
        return True
    return abs(start - before) > max(MOVED, (max(start, before) - now) // TENTH)
