"""Who holds room at a time to come, in planning order: who gets a reservation, keeps it, brings it forward, moves back or yields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model.statuses import Status
from pumice.plugins.timeline import yielding
from pumice.plugins.timeline.planning import Wanted
from pumice.plugins.timeline.profile import NEVER

if TYPE_CHECKING:
    from pumice.framework.searching import Search
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.plugins.timeline.estimates import Estimates
    from pumice.plugins.timeline.ledger import Booking, Ledger
    from pumice.plugins.timeline.planning import Planner

PATIENCE = 60_000_000  # after so long it is looked again for a start of whom none was known, though nothing has changed


class Holders:
    """The reservations in force. They are those of the ledger, in its order."""

    def __init__(self, ledger: Ledger, planner: Planner, estimates: Estimates, depth: int) -> None:
        self._ledger = ledger
        self._planner = planner
        self._estimates = estimates
        self._depth = depth
        self.due: str = ""  # whose own room is lifted, since it is its turn
        self.given_up: dict[str, Booking] = {}  # by those who yielded in this cycle
        self.unknown: dict[str, None] = {}  # of whom in this cycle no start was known
        self._hopeless: dict[str, tuple[int, int]] = {}  # who found no time in how the timeline was, and when
        self._queues: set[str] = set()
        self._looked_at: set[str] = set()  # in this cycle, with all that had changed up to
        self._position = 0

    def __len__(self) -> int:
        return len(self._ledger.bookings)

    def __contains__(self, job: str) -> bool:
        return job in self._ledger.bookings

    def get(self, job: str) -> Booking | None:
        """Return the reservation of a job."""
        return self._ledger.bookings.get(job)

    @property
    def served(self) -> list[str]:
        """Those who hold a reservation, and those of whom no start was known in this cycle."""
        return [*self._ledger.bookings, *self.unknown]

    @property
    def is_full(self) -> bool:
        """Whether nobody else can get a reservation; who would be next and has no known start keeps those behind it from one."""
        return bool(self._depth) and len(self) + len(self.unknown) >= self._depth

    def is_for_later(self, session: Session, job: str) -> bool:
        """Tell whether a job holds a reservation for a time to come."""
        booking = self._ledger.bookings.get(job)
        return booking is not None and booking.laid and booking.start > session.started

    # -- keeping -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a cycle: nobody has yielded, or found no time."""
        self.given_up, self.unknown, self._looked_at = {}, {}, set()

    def tidy(self, session: Session) -> None:
        """Let go of what is reserved for jobs that have started, are gone, or whose queue takes no work."""
        self._hopeless = {key: known for key, known in self._hopeless.items() if known[0] == self._ledger.moves}
        for key in self._may_be_over(session):
            job, booking = session.cluster.jobs.get(key), self._ledger.bookings[key]
            if job is None or not self._waits(session, job, booking):
                self._let_go(session, booking)
        due = self.get(self.due)
        if due is not None and not due.laid:
            self._ledger.lay(session.cluster, due)
        self.due = ""

    def _may_be_over(self, session: Session) -> list[str]:
        """Return the holders that have changed, were tried or have nothing that waits, once if nothing has changed since; all of them if there are other queues."""
        cluster, bookings, jobs = session.cluster, self._ledger.bookings, session.cluster.jobs
        rows = cluster.job_changes.since(self._position)
        self._position = cluster.job_changes.position
        if cluster.queues.keys() != self._queues or rows is None:
            self._queues = set(cluster.queues)
            return list(bookings)
        known = (*cluster.dirty_jobs, *session.findings.attempted)
        found = [key for key in known if key in bookings and key not in self._looked_at]
        self._looked_at.update(found)
        if rows:
            found += [key for key in bookings if (job := jobs.get(key)) is not None and job.row in rows]
        return list(dict.fromkeys((*found, *sorted(bookings.keys() - cluster.pending_jobs.keys()))))

    def _waits(self, session: Session, job: Job, booking: Booking) -> bool:
        """Tell whether a job still waits as it did when its reservation was made."""
        if job.tally.is_ready(job.min_member) or job.tally.counts[Status.PIPELINED] or not session.usable(job):
            return False
        if session.closed(job) is not None:
            return False
        return all((task := job.pending.get(uid)) is not None and not task.gated for uid, _ in booking.places)

    def _let_go(self, session: Session, booking: Booking) -> None:
        """End a reservation; whoever comes after it may find more room, unless the job has just what was reserved for it."""
        job = session.cluster.jobs.get(booking.job)
        if job is None or booking.start != session.started or not _sits_as_booked(job, booking):
            self._ledger.gain()
        self._ledger.drop(session.cluster, booking)

    def revise(self, session: Session, search: Search) -> None:
        """Bring every reservation up to date, in planning order, each with the others in place: forward if there is more room, back only if its room is not there."""
        now, ledger = session.started, self._ledger
        gained = ledger.looked_at()
        doubtful = ledger.profile.is_overbooked(now)
        if not gained and not doubtful and not ledger.promised.begun_by(now - 1):
            return
        for booking in list(ledger.bookings.values()):
            job = session.cluster.jobs[booking.job]
            late = booking.start < now
            if not late and not gained and not doubtful:
                continue
            fits = not late and (not doubtful or ledger.holds(session.cluster, booking))
            if fits and not gained:
                continue
            if fits and booking.start <= now:
                continue
            ledger.lift(session.cluster, booking)
            found = self._plan(session, search, job, since=now, before=booking.start if fits else NEVER)
            if found is not None:
                gained = True
                self._replace(session, booking, found)
                doubtful = ledger.profile.is_overbooked(now)
            elif fits:
                ledger.lay(session.cluster, booking)
            else:
                gained = True
                ledger.grown += 1
                del ledger.bookings[booking.job]
                self.given_up[booking.job] = booking

    def _replace(self, session: Session, old: Booking, new: Booking) -> None:
        """Give a job another reservation in the place of its old one."""
        new.since, new.first = old.since, old.first
        order = list(self._ledger.bookings)
        self._ledger.lay(session.cluster, new)
        self._ledger.grown += 1
        new.tight = -1 if new.tight < 0 else self._ledger.grown
        bookings = self._ledger.bookings
        self._ledger.bookings = {key: bookings[key] for key in order}

    def _plan(self, session: Session, search: Search, job: Job, since: int, before: int = NEVER) -> Booking | None:
        length = self._estimates.of(session.cluster, job).run(since)
        return self._planner.book(session, search, Wanted(job, length, since, before), self._ledger)

    def is_tight(self, session: Session, job: Job, booking: Booking) -> bool:
        """Tell whether it is known that there is no room for a holder before its time, with the others in place."""
        if booking.tight != self._ledger.grown:
            length = self._estimates.of(session.cluster, job).run(session.started)
            wanted = Wanted(job, length, session.started, booking.start)
            if not self._planner.is_first(session, wanted, booking, self._ledger):
                return False
            booking.tight = self._ledger.grown
        return True

    # -- a job's turn ------------------------------------------------------------------------------------------

    def step_aside(self, session: Session, job: str) -> None:
        """Lift the room of a job whose turn it is: its own reservation does not count against it."""
        booking = self.get(job)
        if booking is not None and booking.laid:
            self._ledger.lift(session.cluster, booking)
            self.due = job

    def reserve(self, session: Session, search: Search, job: Job) -> Booking | None:
        """Find a reservation for a job that found no room; who must yield to it is planned again after it."""
        ahead = [each for each in self._ledger.bookings.values() if self._yields(session, each, job)]
        if self.is_full and not ahead:
            return None
        now, moves = session.started, self._ledger.moves
        known = self._hopeless.get(job.key)
        if known is not None and known[0] == moves and now < known[1] + PATIENCE:
            self.unknown[job.key] = None
            return None
        for each in ahead:
            self._ledger.lift(session.cluster, each)
        found = self._plan(session, search, job, since=now + 1)
        if found is None:
            self.unknown[job.key] = None
            if not ahead:
                self._hopeless[job.key] = (moves, now)
        else:
            found.since = now
            self._insert(session, found, ahead)
        for each in ahead:
            self._plan_again(session, search, each)
        return found

    def _insert(self, session: Session, found: Booking, ahead: list[Booking]) -> None:
        """Put a reservation before those that yield to it."""
        self._ledger.lay(session.cluster, found)
        if ahead:
            bookings = self._ledger.bookings
            behind = {each.job for each in ahead}
            first = {key: each for key, each in bookings.items() if key not in behind}
            self._ledger.bookings = {**first, **{each.job: each for each in ahead}}

    def plan_anew(self, session: Session, search: Search, booking: Booking) -> None:
        """Find a later time for a holder whose time has come and that found no room."""
        self._ledger.lift(session.cluster, booking)
        job = session.cluster.jobs[booking.job]
        found = self._plan(session, search, job, since=session.started + 1)
        if found is not None:
            self._replace(session, booking, found)
        else:
            del self._ledger.bookings[booking.job]
            self.given_up[booking.job] = booking
        self._ledger.gain()

    def _plan_again(self, session: Session, search: Search, booking: Booking) -> None:
        """Give one that yielded its next place, if it still may hold one."""
        del self._ledger.bookings[booking.job]
        self.given_up[booking.job] = booking
        self._ledger.gain()
        if self.is_full:
            return
        found = self._plan(session, search, session.cluster.jobs[booking.job], since=session.started + 1)
        if found is not None:
            del self.given_up[booking.job]
            found.since, found.first = booking.since, booking.first
            self._ledger.lay(session.cluster, found)

    def _yields(self, session: Session, booking: Booking, job: Job) -> bool:
        holder = session.cluster.jobs.get(booking.job)
        return holder is not None and yielding.yields(session, holder, job)


def _sits_as_booked(job: Job, booking: Booking) -> bool:
    """Tell whether the pods of a job are where they were booked."""
    for uid, node in booking.places:
        task = job.tasks.get(uid)
        if task is None or task.node is None or task.node.name != node:
            return False
    return True
