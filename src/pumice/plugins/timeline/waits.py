"""For whom a job waits: the pods that have to end before it starts, what is promised before it, or what nobody knows the end of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.model import resources
from pumice.model.resources import CPU, MEMORY, PODS
from pumice.model.statuses import FINISHED
from pumice.plugins.timeline import needs, texts
from pumice.plugins.timeline.profile import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.framework.session import Session
    from pumice.plugins.timeline.ledger import Booking, Ledger
    from pumice.plugins.timeline.planning import Planner, Wanted
    from pumice.plugins.timeline.promises import Promises

NAMED = 3
RESERVED = "by its reservation"


class Awaited(msgspec.Struct, frozen=True):
    """Who has to end, or is to go first: what it gives back, until when, by what, and whether it is over its estimate."""

    job: str
    title: str
    amount: str
    until: int
    by: str
    over: bool = False


class Waits(msgspec.Struct, frozen=True):
    """For whom a job waits, who ends latest first, and how many there are beyond those."""

    listed: Sequence[Awaited] = ()
    more: int = 0


def told(waits: Waits, now: int) -> str:
    """Write for whom a job waits: `; waits for a/train-7 (4 nvidia.com/gpu, until 14:32 by its estimate)`."""
    if not waits.listed:
        return ""
    listed = [
        f"{each.title} ({each.amount}, until {texts.moment(each.until, now)} {each.by})"
        for each in waits.listed[:NAMED]
    ]
    left = len(waits.listed) + waits.more - len(listed)
    more = f" and {left} more" if left else ""
    return f"; waits for {', '.join(listed)}{more}"


def awaited(
    session: Session, ledger: Ledger, booking: Booking, promised: Iterable[Promises], *, beyond: bool = False
) -> Waits:
    """Say for whom a job waits that has room at some time: who ends latest before it, itself only if it has its minimum, and who is to go first."""
    cluster, column = session.cluster, _column(session, booking)
    rows = ledger.rows(cluster, booking)
    name = cluster.vocabulary.names[column]
    listed = [
        Awaited(key, _title(session, key), f"{resources.shown(name, amount)} {name}", end, f"by its {by}", over=over)
        for key, (amount, end, over, by) in _ending(session, ledger, booking, column, beyond=beyond).items()
    ]
    more = 0
    for promises in promised:
        # The one who waits is over with later than it starts, so it is not among those.
        before, count = promises.before(rows, booking.start, column, NAMED)
        more += count - len(before)
        listed += [
            Awaited(job, _title(session, job), f"{resources.shown(name, amount)} {name}", stop, RESERVED)
            for job, amount, stop in before
        ]
    return Waits(sorted(listed, key=lambda each: (-each.until, each.job)), more)


def _ending(
    session: Session, ledger: Ledger, booking: Booking, column: int, *, beyond: bool
) -> dict[str, tuple[int, int, bool, str]]:
    """Return the jobs of which pods end on its nodes before a booking begins: what they have of a resource, until when, whether they are over their estimates, and what of theirs says until when."""
    cluster, now = session.cluster, session.started
    found: dict[str, tuple[int, int, bool, str]] = {}
    for row in ledger.rows(cluster, booking):
        for uid, end in ledger.ends[row].items():
            task = cluster.tasks.get(uid) if now < end <= booking.start else None
            if task is None or (task.job_key == booking.job and not beyond):
                continue
            amount, latest, over, by = found.get(task.job_key, (0, 0, False, ""))
            units = int(task.shape.request.vector[column])
            if units:
                over = over or ledger.is_over(cluster, task, now)
                by = ledger.basis(cluster, task, end) if end > latest else by
                found[task.job_key] = (amount + units, max(latest, end), over, by)
    return found


def _column(session: Session, booking: Booking) -> int:
    """Return the resource that a booking is told by: a device if it has any, else cpu."""
    total = sum(booking.amounts.values())
    for column, units in enumerate(total.tolist()):  # type: ignore[union-attr]  # a booking is on a node
        if units and column not in (CPU, MEMORY, PODS):
            return column
    del session
    return CPU


def sooner(waits: Waits) -> str:
    """Say what would bring a start forward."""
    if not waits.listed:
        return ""
    first = waits.listed[0]
    if first.over:
        return f"it starts sooner if {first.title}, which is over its estimate, ends"
    before = "it is planned to" if first.by == RESERVED else first.by.removeprefix("by ")
    return f"it starts sooner if {first.title} ends before {before}"


def _title(session: Session, key: str) -> str:
    job = session.cluster.jobs.get(key)
    return key if job is None else job.title


class Reckoned(msgspec.Struct, frozen=True):
    """What a forecast was told by: for whom it was to wait until when, and when that was."""

    awaited: Mapping[str, Awaited]
    at: int


def reckoned(waits: Waits, now: int) -> Reckoned:
    """Keep what a forecast is told by."""
    return Reckoned({each.job: each for each in waits.listed}, now)


def cause(session: Session, ledger: Ledger, waits: Waits, before: Reckoned | None, *, later: bool) -> str:
    """Say why a start has moved, by what it was told by before; after a restart nobody knows that."""
    if not later:
        known = before.awaited.values() if before else ()
        ended = next((each.title for each in known if _has_ended_early(session, each)), "")
        return f"{ended} ended sooner than was expected" if ended else "there is more room than was expected"
    over = next((each for each in waits.listed if each.over), None)
    if over is not None:
        return f"{over.title} is over its estimate"
    return (_held_up(session, ledger, waits, before) if before else "") or "there is less room than was expected"


def _held_up(session: Session, ledger: Ledger, waits: Waits, before: Reckoned) -> str:
    """Say who is waited for longer than was told before, or has come since; nothing if nobody is."""
    for each in waits.listed:
        known = before.awaited.get(each.job)
        if known is not None and known.until < each.until:
            return f"{each.title} is to end later than was expected"
        if known is None and _has_come(session, ledger, each.job, before.at):
            return f"{each.title} goes first"
    return ""


def _has_ended_early(session: Session, awaited: Awaited) -> bool:
    """Tell whether a job that was to end later is over."""
    job = session.cluster.jobs.get(awaited.job)
    return awaited.until > session.started and (job is None or all(t.status in FINISHED for t in job.tasks.values()))


def _has_come(session: Session, ledger: Ledger, key: str, since: int) -> bool:
    """Tell whether a job has started, was promised room or was submitted since some time."""
    job, booking, now = session.cluster.jobs.get(key), ledger.bookings.get(key), session.started
    if booking is not None:
        return booking.since >= since
    if job is None:
        return False
    running = [ledger.started(task, now) for task in job.tasks.values() if task.node is not None]
    return max(running, default=job.creation) >= since


def unknown(session: Session, ledger: Ledger, planner: Planner, wanted: Wanted) -> str:
    """Say why no start of a job is known, or of its members beyond the minimum."""
    now, cluster, job = session.started, session.cluster, wanted.job
    kinds = needs.of(session, job, wanted.beyond).kinds
    horizon = planner.horizon(now)
    later = next(iter(ledger.profile.candidates(kinds, wanted.since, wanted.run)), None)
    if kinds and later is not None and later >= horizon:
        return f"no start is known: {texts.moment(later, now)} at the earliest, planned is until {texts.moment(horizon - 1, now)}"
    if not wanted.beyond and (never := session.never_running.verdict(job)) is not None:
        return f"no start is known: it can never run: {never}"
    endless = sorted(
        {
            task.job.title if task.job is not None else task.key
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
