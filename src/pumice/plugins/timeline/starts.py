"""Who may start now: a job sees on each node the least room there is as long as it runs, what is reserved for others taken off."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.plugins.timeline import needs
from pumice.plugins.timeline.planning import View
from pumice.plugins.timeline.profile import NEVER

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.framework.session import Session
    from pumice.framework.vectors import Mask
    from pumice.model.job import Job
    from pumice.model.resources import Matrix
    from pumice.plugins.timeline.estimates import Estimates
    from pumice.plugins.timeline.ledger import Booking, Ledger
    from pumice.plugins.timeline.profile import Need


class Delay(msgspec.Struct, frozen=True):
    """Whom a job would delay, planned for when, and by how much; None if nobody knows how long it runs."""

    holder: str
    planned: int
    by: int | None


class Starts:
    """Asks of one cycle. What was worked out stays as long as the ledger is the same."""

    def __init__(self, session: Session, ledger: Ledger, estimates: Estimates) -> None:
        self._session = session
        self._ledger = ledger
        self._estimates = estimates
        self._moves = -1
        self._begins: list[int] = []
        self._views: dict[int, View] = {}
        self._room: dict[int, Matrix] = {}
        self._fits: dict[tuple[int, Hashable], bool] = {}
        self._booked: Mask | None = None
        self._booked_key: Hashable = None
        self._base: tuple[Matrix, Matrix, Matrix] | None = None

    def _catch_up(self) -> None:
        if self._moves == self._ledger.moves:
            return
        self._moves = self._ledger.moves
        self._begins = self._ledger.promised.begins(self._session.started).tolist()
        self._views.clear()
        self._room.clear()
        self._fits.clear()
        self._base = None
        self._booked = self._booked_key = None

    def horizon(self, job: Job | None) -> int:
        """Return how many beginnings of reservations lie before a job would end if it started now."""
        self._catch_up()
        if not self._begins:
            return 0
        session = self._session
        length = None if job is None else self._estimates.of(session.cluster, job).run(session.started)
        if length is None:
            return len(self._begins)
        return bisect.bisect_left(self._begins, session.started + length)

    def view(self, horizon: int) -> View:
        """Return what nodes have left for a job that passes so many beginnings."""
        view = self._views.get(horizon)
        if view is None:
            view = self._views[horizon] = self._look(horizon)
        return view

    def name(self, horizon: int) -> Hashable:
        """Name what is the same for all jobs that pass so many beginnings; None if nothing is reserved, or everywhere and after them."""
        self._catch_up()
        if horizon:
            return self._moves, horizon
        return self._booked_name()

    def _look(self, horizon: int) -> View:
        table = self._session.cluster.nodes
        n, last = table.count, self._begins[horizon - 1]
        if self._base is None:
            self._base = (table.used[:n].copy(), table.pipelined[:n].copy(), table.releasing[:n].copy())
        bound = np.zeros(n, dtype=np.bool_)
        bound[self._ledger.promised.rows(last)] = True
        return View(self._ledger.profile.least(self._begins[0], last + 1), bound, *self._base)

    # -- where others are expected -----------------------------------------------------------------------------

    def booked(self) -> Mask | None:
        """Tell on which nodes something is reserved; None if nowhere or everywhere."""
        self._catch_up()
        if self._booked is None and self._begins:
            booked = np.zeros(self._session.cluster.nodes.count, dtype=np.bool_)
            booked[self._ledger.promised.rows(NEVER)] = True
            self._booked = booked
            self._booked_key = None if booked.all() or not booked.any() else booked.tobytes()
        return self._booked if self._booked_key is not None else None

    def _booked_name(self) -> Hashable:
        self.booked()
        return self._booked_key

    # -- before nodes are looked at ----------------------------------------------------------------------------

    def delay(self, job: Job) -> Delay | None:
        """Say whom a job would delay; None if nobody, if there is no room for it anyhow, or if amounts do not tell."""
        horizon = self.horizon(job)
        if not horizon:
            return None
        asked = needs.of(self._session, job, needs.beyond(job))
        if not asked.kinds or not self._fits_at(0, asked) or self._fits_at(horizon, asked):
            return None
        first = next(each for each in range(1, horizon + 1) if not self._fits_at(each, asked))
        return self._told(job, self._begins[first - 1])

    def _told(self, job: Job, begin: int) -> Delay:
        now = self._session.started
        holder = next(b for b in self._ledger.bookings.values() if b.laid and max(b.start, now) == begin)
        return Delay(holder.job, begin, self._by(job, begin))

    def _by(self, job: Job, begin: int) -> int | None:
        session = self._session
        length = self._estimates.of(session.cluster, job).run(session.started)
        return None if length is None else session.started + length - begin

    def behind(self, job: Job, booking: Booking) -> Delay | None:
        """Say the same of a job with a reservation for later; who is in its way stays so as long as both are planned for the same times."""
        known = booking.behind
        if known is not None:
            other = self._ledger.bookings.get(known[0])
            if other is not None and other.start == known[1]:
                return Delay(known[0], known[1], self._by(job, known[1]))
        cluster = self._session.cluster
        self._catch_up()
        asked = needs.of(self._session, job)
        if asked.kinds and not self._fits_at(0, asked):
            return None
        self._ledger.lift(cluster, booking)
        found = self.delay(job)
        self._ledger.lay(cluster, booking)
        booking.behind = None if found is None else (found.holder, found.planned)
        return found

    def fits_now(self, job: Job) -> bool:
        """Tell whether there may be room for a job now, whatever is reserved for others."""
        self._catch_up()
        asked = needs.of(self._session, job)
        return not asked.kinds or self._fits_at(0, asked)

    def _fits_at(self, horizon: int, asked: needs.Needs) -> bool:
        """Tell whether there is room now, and until so many reservations have begun."""
        key = (horizon, asked.key)
        known = self._fits.get(key)
        if known is None:
            room = self._room.get(horizon)
            if room is None:
                now = self._ledger.profile.at(self._session.started)
                if not horizon:
                    room = self._unreserved(now)
                else:
                    room = np.minimum(now, self._ledger.profile.least(self._begins[0], self._begins[horizon - 1] + 1))
                self._room[horizon] = room
            known = self._fits[key] = all(_holds(room, need) >= need.count for need in asked.kinds)
        return known

    def _unreserved(self, now: Matrix) -> Matrix:
        """Return the room that there is now, with what is reserved from now on."""
        room = now
        for key in dict.fromkeys(self._ledger.promised.begun_by(self._session.started)):
            if (booking := self._ledger.bookings.get(key)) is not None:
                room = room.copy() if room is now else room
                room[self._ledger.rows(self._session.cluster, booking)] += np.array(list(booking.amounts.values()))
        return room


def _holds(room: Matrix, need: Need) -> int:
    """Count how many such pods nodes hold, no more on each than are looked for."""
    columns = room[:, need.columns]
    wanted = need.amounts > 0
    held = np.full(len(room), need.count, dtype=np.int64)
    if wanted.any():
        np.minimum(held, (columns[:, wanted] // need.amounts[wanted]).min(axis=1), out=held)
    held[(columns < 0).any(axis=1)] = 0
    if need.may is not None:
        held[~need.may] = 0
    return int(np.maximum(held, 0).sum())
