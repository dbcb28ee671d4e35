"""When and where a job can start: allocate's own search, at the times at which there may be room for it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from pumice.framework.searching import Moment
from pumice.plugins.timeline import needs
from pumice.plugins.timeline.ledger import Booking, amounts_by_node
from pumice.plugins.timeline.profile import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.framework.searching import Places, Search
    from pumice.framework.session import Session
    from pumice.framework.vectors import Mask
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord, Rows
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task
    from pumice.plugins.timeline.ledger import Ledger
    from pumice.plugins.timeline.profile import Profile

NAME = "timeline"
SEARCHES = 8  # so many times at which there is room by amounts are looked at one after the other


class Promised(Protocol):
    """Room over time, and to whom of those who do not run yet it is promised."""

    @property
    def profile(self) -> Profile:
        """The room."""

    @property
    def expected(self) -> Iterable[Booking]:
        """What is promised."""


class View(msgspec.Struct, frozen=True, eq=False):
    """What nodes have left for a job at some time, as long as it runs: the least room, and what was on them when that was worked out."""

    least: Matrix
    bound: Mask  # the rows where something else may be promised
    used: Matrix
    pipelined: Matrix
    releasing: Matrix
    ranks: Vector | None = None  # only where it is planned: who is free latest has the highest


class Wanted(msgspec.Struct, frozen=True, eq=False):
    """A job that looks for a time, how long it runs, and the times between which it looks; or of a job that has its minimum the members beyond that, as jobs of their own."""

    job: Job
    length: int | None
    since: int
    before: int = NEVER
    beyond: Sequence[Task] = ()

    @property
    def run(self) -> int:
        """How long it runs, maybe for ever."""
        return NEVER if self.length is None else self.length


class Planner:
    """Finds bookings; `view` is what nodes are asked about while a search runs for `job`."""

    def __init__(self, ledger: Ledger, window: int) -> None:
        self._ledger = ledger
        self._window = window
        self.view: View | None = None
        self.job: str = ""
        self.searches = 0

    def book(self, session: Session, search: Search, wanted: Wanted, promised: Promised) -> Booking | None:
        """Return room for a job at the first time at which its search finds places that stay free as long as it runs, beside what is promised."""
        horizon = min(wanted.before, self.horizon(session.started))
        kinds = needs.of(session, wanted.job, wanted.beyond).kinds
        moments = promised.profile.candidates(kinds, wanted.since, wanted.run)
        within = itertools.takewhile(lambda moment: moment < horizon, moments)
        for number, moment in enumerate(itertools.islice(within, SEARCHES)):
            if places := self._places(session, search, wanted, promised, moment):
                booking = _booking(wanted, moment, places)
                # Before the first of all times there is no room by amounts.
                booking.tight = self._ledger.grown if not number else -1
                return booking
        return self._bisect(session, search, wanted, promised, list(within))

    def is_first(self, session: Session, wanted: Wanted, booking: Booking, ledger: Ledger) -> bool:
        """Tell whether a job that holds room would have too little, by amounts, at any time before."""
        kinds = needs.of(session, wanted.job).kinds
        if not kinds or not booking.laid:
            return False
        profile, rows = ledger.profile, ledger.rows(session.cluster, booking)
        amounts = np.array(list(booking.amounts.values()))
        profile.change(rows, amounts, booking.start, booking.stop)
        first = next(iter(profile.candidates(kinds, wanted.since, wanted.run)), NEVER)
        profile.change(rows, -amounts, booking.start, booking.stop)
        return first >= wanted.before

    def _bisect(
        self, session: Session, search: Search, wanted: Wanted, promised: Promised, moments: Sequence[int]
    ) -> Booking | None:
        """Look at fewer and fewer of many times: once there is room, there mostly is room later as well."""
        found: Booking | None = None
        low, high = 0, len(moments)
        while low < high:
            middle = len(moments) - 1 if found is None else (low + high) // 2
            places = self._places(session, search, wanted, promised, moments[middle])
            if places:
                found, high = _booking(wanted, moments[middle], places), middle
            elif found is None:
                return None
            else:
                low = middle + 1
        return found

    def horizon(self, now: int) -> int:
        """Return the time from which on nothing is planned."""
        return now + self._window + 1 if self._window else NEVER

    def _places(
        self, session: Session, search: Search, wanted: Wanted, promised: Promised, moment: int
    ) -> Places | None:
        cluster, table, profile = session.cluster, session.cluster.nodes, promised.profile
        least = profile.least(moment, min(moment + wanted.run, NEVER))
        ranks = _ranks(profile.free_since(moment))
        key = wanted.job.key
        mine = "" if wanted.beyond else key  # members beyond the minimum need not run beside the others

        def changes(rows: Mask | None) -> tuple[list[Task], list[tuple[Task, NodeRecord]]]:
            self.searches += 1
            there = [each for each in promised.expected if each.laid and each.start <= moment < each.stop]
            if any(each.concerns_pods for each in there):
                rows = None  # what is on other nodes has a say
            gone = self._ledger.gone_by(cluster, moment, mine, rows)
            return gone, _come(session, [each for each in there if each.job != mine], rows)

        def begins() -> None:
            # Whoever has come by then is both on its node and in the room of that time.
            used, pipelined, releasing = (
                each[: table.count].copy() for each in (table.used, table.pipelined, table.releasing)
            )
            everywhere = np.ones(len(least), dtype=np.bool_)
            self.view = View(least, everywhere, used, pipelined, releasing, ranks)
            self.job = key

        try:
            return search(wanted.job, Moment(NAME, least, ranks, changes, begins), wanted.beyond)
        finally:
            self.view, self.job = None, ""
            self._ledger.pass_over(cluster)


def _come(session: Session, bookings: Sequence[Booking], rows: Mask | None) -> list[tuple[Task, NodeRecord]]:
    """Return who will be where by some bookings, on some nodes alone if these are given."""
    tasks, nodes = session.cluster.tasks, session.cluster.nodes
    known = nodes.by_name
    if rows is not None:
        known = {record.name: record for row in np.flatnonzero(rows).tolist() if (record := nodes.records[row])}
    return [
        (tasks[uid], known[node])
        for booking in bookings
        for uid, node in booking.places
        if node in known and uid in tasks
    ]


def _ranks(moments: Vector) -> Vector:
    """Give times their ranks, equal ones the same."""
    ranks: Vector = np.unique(moments, return_inverse=True)[1]
    return ranks


def _booking(wanted: Wanted, start: int, places: Places) -> Booking:
    stop = min(start + wanted.run, NEVER)
    named = tuple((task.uid, node.name) for task, node in places)
    found = Booking(wanted.job.key, start, stop, named, amounts_by_node(places), first=start)
    found.concerns_pods = any(task.shape.constraint_class.concerns_pods for task, _ in places)
    return found


def left_for(view: View, index: Rows, used: Matrix, pipelined: Matrix, releasing: Matrix | None) -> Matrix:
    """Return what is left on some nodes for a job, with what has come or begun to go since its view was worked out."""
    taken = used - view.used[index] + pipelined - view.pipelined[index]
    left: Matrix = view.least[index] - taken
    return left if releasing is None else left + np.maximum(releasing - view.releasing[index], 0)
