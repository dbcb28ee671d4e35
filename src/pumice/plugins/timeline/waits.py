"""For whom a job waits: the pods that have to end before it starts, what is promised before it, or what nobody knows the end of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.model import resources
from pumice.model.resources import CPU, MEMORY, PODS
from pumice.model.statuses import GOING
from pumice.plugins.timeline import needs, texts
from pumice.plugins.timeline.profile import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.plugins.timeline.estimates import Estimates
    from pumice.plugins.timeline.ledger import Booking, Ledger
    from pumice.plugins.timeline.planning import Planner

NAMED = 3


class Awaited(msgspec.Struct, frozen=True):
    """Who has to end, or is to go first: what it gives back, until when, by what, and whether it is over its estimate."""

    job: str
    amount: str
    until: int
    by: str
    over: bool = False


def told(awaited: Sequence[Awaited], now: int) -> str:
    """Write for whom a job waits: `; waits for a/train-7 (4 nvidia.com/gpu, until 14:32 by its estimate)`."""
    if not awaited:
        return ""
    listed = [
        f"{each.job} ({each.amount}, until {texts.moment(each.until, now)} {each.by})" for each in awaited[:NAMED]
    ]
    more = f" and {len(awaited) - NAMED} more" if len(awaited) > NAMED else ""
    return f"; waits for {', '.join(listed)}{more}"


def awaited(session: Session, ledger: Ledger, booking: Booking, bookings: Mapping[str, Booking]) -> Sequence[Awaited]:
    """Say for whom a job waits that has room at some time: who ends latest before it, and who is to go first."""
    cluster, now = session.cluster, session.started
    column = _column(session, booking)
    found: dict[str, tuple[int, int, bool, bool]] = {}
    for row in ledger.rows(cluster, booking):
        for uid, end in ledger.ends[row].items():
            task = cluster.tasks.get(uid)
            if task is None or not now < end <= booking.start or task.job_key == booking.job:
                continue
            amount, latest, over, going = found.get(task.job_key, (0, 0, False, False))
            units = int(task.shape.request.vector[column])
            if units:
                over = over or ledger.is_over(cluster, task, now)
                found[task.job_key] = (amount + units, max(latest, end), over, going or task.status in GOING)
    name = cluster.vocabulary.names[column]
    pods = [
        Awaited(
            key, f"{resources.shown(name, amount)} {name}", end, "its end" if going else "by its estimate", over=over
        )
        for key, (amount, end, over, going) in found.items()
    ]
    before = [
        Awaited(other.job, f"{resources.shown(name, amount)} {name}", other.stop, "by its reservation")
        for other in bookings.values()
        if other.job != booking.job and other.stop <= booking.start
        if (amount := sum(int(other.amounts[n][column]) for n in other.amounts if n in booking.amounts))
    ]
    return sorted([*pods, *before], key=lambda each: (-each.until, each.job))


def _column(session: Session, booking: Booking) -> int:
    """Return the resource that a booking is told by: a device if it has any, else cpu."""
    total = sum(booking.amounts.values())
    for column, units in enumerate(total.tolist()):  # type: ignore[union-attr]  # a booking is on a node
        if units and column not in (CPU, MEMORY, PODS):
            return column
    del session
    return CPU


def sooner(waited: Sequence[Awaited]) -> str:
    """Say what would bring a start forward."""
    if not waited:
        return ""
    first = waited[0]
    if first.over:
        return f"it starts sooner if {first.job}, which is over its estimate, ends"
    return f"it starts sooner if {first.job} ends before {'its estimate' if first.by != 'by its reservation' else 'it is planned to'}"


def cause(session: Session, ledger: Ledger, waited: Sequence[Awaited], booking: Booking, *, later: bool) -> str:
    """Say why a start has moved."""
    if not later:
        return "there is more room than was expected"
    over = next((each for each in waited if each.over), None)
    if over is not None:
        return f"{over.job} is over its estimate"
    ahead = [other for other in ledger.bookings.values() if other.job != booking.job and other.since == session.started]
    if ahead:
        return f"{ahead[0].job} goes first"
    if waited:
        return f"{waited[0].job} is to end later than was expected"
    return "there is less room than was expected"


def unknown(session: Session, ledger: Ledger, planner: Planner, estimates: Estimates, job: Job) -> str:
    """Say why no start of a job is known."""
    now, cluster = session.started, session.cluster
    wanted = needs.of(session, job)
    length = estimates.of(cluster, job).length
    horizon = planner.horizon(now)
    later = next(iter(ledger.profile.candidates(wanted.kinds, now + 1, NEVER if length is None else length)), None)
    if wanted.kinds and later is not None and later >= horizon:
        return f"no start is known: {texts.moment(later, now)} at the earliest, planned is until {texts.moment(horizon - 1, now)}"
    if (never := session.never_running.verdict(job)) is not None:
        return f"no start is known: it can never run: {never}"
    endless = sorted(
        {
            task.job_key or task.key
            for row in range(cluster.nodes.count)
            for uid, end in ledger.ends[row].items()
            if end >= NEVER and (task := cluster.tasks.get(uid)) is not None and not task.stays
        }
    )
    if endless:
        more = f" and {len(endless) - NAMED} more" if len(endless) > NAMED else ""
        verb = "has" if len(endless) == 1 else "have"
        return f"no start is known: {', '.join(endless[:NAMED])}{more} {verb} no estimate"
    if failures := session.findings.errors(job):
        return f"no start is known: {str(next(iter(failures.values()))).rstrip('.')}"
    return "no start is known: no time was found at which it has room"
