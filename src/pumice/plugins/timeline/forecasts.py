"""Forecasts: when jobs that wait are expected to start, where, for whom they wait, and why that has moved.

Who holds room says so. Others are planned in the same way behind them, each with those before it in place, and nothing is held. That is looked at again when a tenth of the time that was left, and at
least a minute, has passed, or when what was planned cannot be any more: a forecast that moved by less would not be written.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.api import duration, names, scheduling
from pumice.framework.findings import Forecast
from pumice.plugins.timeline import texts, waits
from pumice.plugins.timeline.planning import Wanted
from pumice.plugins.timeline.profile import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pumice.framework.searching import Search
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.plugins.timeline.estimates import Estimates
    from pumice.plugins.timeline.ledger import Booking, Ledger
    from pumice.plugins.timeline.planning import Planner
    from pumice.plugins.timeline.profile import Profile

MOVED = duration.MINUTE
TENTH = 10
MOST = 5  # searches in a cycle for those who hold nothing, each some 15 ms at 1,000 nodes; others follow a second later


class Told(msgspec.Struct, eq=False):
    """What was told of a job: the condition, the time that was expected, and when to look again."""

    forecast: Forecast
    booking: Booking | None
    again: int


class Shadow(msgspec.Struct, eq=False):
    """Room over time with what is only planned in it too."""

    profile: Profile
    bookings: dict[str, Booking]


class Waiting(msgspec.Struct, frozen=True, eq=False):
    """Jobs that found no room in this cycle, in the order in which they were tried; those that were not looked at since they would find none; and those that nobody tried, after all others."""

    tried: Mapping[str, Job]
    resting: Mapping[str, Job]
    others: Mapping[str, Job]

    def __iter__(self) -> Iterator[str]:
        return itertools.chain(self.tried, self.resting, self.others)

    def in_order(self, session: Session) -> dict[str, Job]:
        """Return all of them in planning order."""
        if not self.resting:
            return {**self.tried, **self.others}
        listed = session.job_order.sort([*self.tried.values(), *self.resting.values()])
        return {**{job.key: job for job in listed}, **self.others}


class Forecasts:
    """What was told, from cycle to cycle."""

    def __init__(self, ledger: Ledger, planner: Planner, estimates: Estimates) -> None:
        self._ledger = ledger
        self._planner = planner
        self._estimates = estimates
        self._told: dict[str, Told] = {}
        self.is_behind = False  # whether some are left to be planned a second later

    def tell(self, session: Session, waiting: Waiting, yielded: Iterable[str]) -> None:
        """Say of every job that waits, in planning order, when it is expected to start; who was not looked at is told only what is new."""
        pending = session.cluster.pending_jobs
        for key in self._told.keys() - pending.keys():
            del self._told[key]
        self.is_behind = False
        held, before = self._ledger.bookings, dict(self._told)
        for key, booking in held.items():
            job = session.cluster.jobs[key]
            known = self._told.get(key)
            if known is None or known.booking is not booking or session.started >= known.again:
                self._tell(session, job, booking, names.REASON_RESERVED, self._ledger.bookings)
        if session.search is not None and any(self._is_due(session, key) for key in waiting if key not in held):
            behind = {key: job for key, job in waiting.in_order(session).items() if key not in held}
            self._plan(session, session.search, behind, set(yielded))
        ahead = dict(held)
        for key in dict.fromkeys((*held, *waiting)):
            told = self._told.get(key)
            if told is None:
                continue
            if key in waiting.resting:
                if (known := before.get(key)) is not None and known.forecast.condition is told.forecast.condition:
                    continue
                session.findings.attempt(waiting.resting[key])
            forecast = self._in_full(session, told, ahead) if session.is_asked else told.forecast
            session.findings.foresee(session.cluster.jobs[key], forecast)

    def _in_full(self, session: Session, told: Told, ahead: dict[str, Booking]) -> Forecast:
        """Return a forecast with what would bring it forward, behind what is planned before it."""
        if told.booking is None:
            return told.forecast
        ahead[told.booking.job] = told.booking
        sooner = waits.sooner(waits.awaited(session, self._ledger, told.booking, ahead))
        return msgspec.structs.replace(told.forecast, sooner=sooner)

    def _is_due(self, session: Session, key: str) -> bool:
        """Tell whether the forecast of a job that holds nothing has to be looked at."""
        told, now = self._told.get(key), session.started
        if told is None or told.forecast.condition.reason == names.REASON_RESERVED or now >= told.again:
            return True
        return told.booking is not None and told.booking.start <= now

    def _plan(self, session: Session, search: Search, waiting: Mapping[str, Job], yielded: set[str]) -> None:
        """Plan jobs that hold nothing one after the other, as far as they have to be."""
        shadow = Shadow(self._ledger.profile.copy(), dict(self._ledger.bookings))
        standing: list[Booking] = []
        last = self._planner.searches + MOST
        for key, job in waiting.items():
            told = self._told.get(key)
            if told is not None and not self._is_due(session, key) and key not in yielded:
                if told.booking is not None:
                    standing.append(told.booking)
                continue
            if self._planner.searches >= last:
                session.wake_at(session.started + duration.SECOND)
                self.is_behind = True
                return
            _lay(session, shadow, standing)
            standing = []
            length = self._estimates.of(session.cluster, job).length
            wanted = Wanted(job, length, session.started + 1)
            booking = self._planner.book(session, search, wanted, shadow)
            self._tell(session, job, booking, names.REASON_PLANNED, shadow.bookings)
            if booking is not None:
                standing.append(booking)

    # -- words -------------------------------------------------------------------------------------------------

    def _tell(
        self, session: Session, job: Job, booking: Booking | None, reason: str, bookings: Mapping[str, Booking]
    ) -> None:
        """Make the forecast of a job, unless it is the one that stands."""
        now, before = session.started, self._before(job)
        if booking is None:
            text = waits.unknown(session, self._ledger, self._planner, self._estimates, job)
            condition = _condition(names.REASON_UNKNOWN, text)
            self._told[job.key] = Told(Forecast(condition, None, {}), None, now + MOVED)
            return
        start = max(booking.start, now)
        again = now + max(MOVED, (start - now) // TENTH)
        if before is not None and before[0].reason == reason and not _has_moved(before[1], start, now):
            self._told[job.key] = Told(Forecast(before[0], before[1], booking.nodes), booking, again)
            return
        awaited = waits.awaited(session, self._ledger, booking, bookings)
        text = f"expected at {texts.moment(start, now)} on {texts.nodes(booking.nodes)}{waits.told(awaited, now)}"
        if before is not None and before[1] is not None and _has_moved(before[1], start, now):
            why = waits.cause(session, self._ledger, awaited, booking, later=start > before[1])
            text = f"{text}; moved from {texts.moment(before[1], now)}: {why}"
        self._told[job.key] = Told(Forecast(_condition(reason, text), start, booking.nodes), booking, again)

    def _before(self, job: Job) -> tuple[scheduling.PodGroupCondition, int | None] | None:
        """Return what was told of a job, after a restart by its condition, and the time that it gives."""
        told = self._told.get(job.key)
        if told is not None:
            return told.forecast.condition, told.forecast.expected
        for condition in job.status.conditions:
            if condition.type == names.CONDITION_START_FORECAST and condition.status == "True":
                plain = _condition(condition.reason, condition.message)
                return plain, texts.expected(condition.message, condition.last_transition_time or "")
        return None


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


def _has_moved(before: int | None, start: int, now: int) -> bool:
    """Tell whether a time is another one: by more than a minute, and more than a tenth of what is left; or the one that was given is over."""
    if before is None or before <= now < start:
        return True
    return abs(start - before) > max(MOVED, (max(start, before) - now) // TENTH)


def _lay(session: Session, shadow: Shadow, bookings: Iterable[Booking]) -> None:
    """Take the room of bookings off a shadow, as far as their nodes are there."""
    nodes, width = session.cluster.nodes, len(session.cluster.vocabulary)
    rows, amounts, starts, stops = [], [], [], []
    for booking in bookings:
        shadow.bookings[booking.job] = msgspec.structs.replace(booking, laid=True)
        for name, amount in booking.amounts.items():
            record = nodes.by_name.get(name)
            if record is not None and record.row < nodes.count and len(amount) == width:
                rows.append(record.row)
                amounts.append(amount)
                starts.append(booking.start)
                stops.append(min(booking.stop, NEVER))
    if rows:
        arrays = (np.array(each, dtype=np.int64) for each in (rows, amounts, starts, stops))
        shadow.profile.take(*arrays)
