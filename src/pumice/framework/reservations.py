"""Reservations: the room that a plan made, or counts on, is held for its members until they are placed or gone.

Each member is nominated to its node. At the start of every cycle nominated members wait there (pipelined), so that nobody else can take the
room, and their amount counts in their queue; when it is their job's turn they are lifted and placed wherever there is room now. Nominations are
written to the pods, so reservations come back after a restart. One that does not come to anything ends a while after its victims are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from pumice.api import timestamp
from pumice.framework.reason_keys import AWAITS
from pumice.model.statuses import GOING, TENTATIVE, Status
from pumice.model.task import instant

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from pumice.framework.statement import Statement
    from pumice.framework.statements import Statements
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord, NodeTable
    from pumice.model.resources import Vector
    from pumice.model.task import Task

PATIENCE = 60_000_000
DEFAULT_GRACE = 30
NEVER = 2**62  # when a victim goes of which nothing is known
NAMED = 10
WAITING = TENTATIVE | {Status.PENDING}

# What a task that only holds room may be: waiting for it, or already on it and waiting for the rest of its gang.


class ReservingSession(Protocol):
    """What reservations need of a session."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def started(self) -> int:
        """The time of this cycle."""

    @property
    def reserved(self) -> dict[str, Task]:
        """Who waits by a reservation."""

    @property
    def resting_holders(self) -> dict[str, Callable[[Job], None]]:
        """Who waits by a reservation and is left out of the cycle, by uid, each with what says what trying it would have said."""

    def statement(self) -> Statement:
        """Start a statement."""

    def usable(self, job: Job) -> bool:
        """Tell whether a job has a valid group and a valid queue."""

    def closed(self, job: Job) -> str | None:
        """Say why the queue of a job starts nothing new; None if it does."""

    def wake_at(self, instant: int) -> None:
        """Ask for a cycle at a time, though nothing may have changed by then."""

    @property
    def statements(self) -> Statements:
        """The statements of the cycle."""


class Hold(msgspec.Struct):
    """One member's claim on a node, the victims it waits for, and since when it waits for nobody any more."""

    node: str
    victims: tuple[str, ...] = ()
    made: int | None = None  # when the victims were first asked to go; a restart forgets it
    clear_since: int | None = None
    gone_by: int | None = None  # when the last victim should be gone, as long as one is there
    patience: int = PATIENCE

    @property
    def unchanged_until(self) -> int:
        """Until when it is as it is, if nobody goes whom it waits for."""
        if self.clear_since is not None:
            return self.clear_since + self.patience - 1
        return NEVER if self.gone_by is None else self.gone_by


class Reservations:
    """The nominations that are in force; it outlives sessions and configurations."""

    def __init__(self) -> None:
        self.holds: dict[str, Hold] = {}
        self.expired: dict[str, str] = {}
        self._victims: dict[str, None] = {}
        # By uid of a pod that goes: when its grace period is over by our clock, which its stamp may be ahead of.
        self._latest: dict[str, int] = {}
        self._departures = -1  # how many pods had gone when those were looked for that have

    def add(
        self, members: Iterable[Task], victims: Sequence[Task], patience: int = PATIENCE, made: int | None = None
    ) -> None:
        """Hold the nodes that members were placed on by a plan, made at some time."""
        uids = tuple(task.uid for task in victims)
        self._victims.update(dict.fromkeys(uids))
        for task in members:
            if task.node is not None:
                self.holds[task.uid] = Hold(task.node.name, uids, made, patience=patience)
                self.expired.pop(task.uid, None)

    def drop(self, tasks: Iterable[Task]) -> None:
        """Let go of what is held for tasks."""
        for task in tasks:
            self.holds.pop(task.uid, None)
            if task.nominated:
                self.expired[task.uid] = task.nominated

    def renew(self, cluster: Cluster, now: int, known: Container[str] = ()) -> list[Task]:
        """Return the pending tasks for which a node is held now, ending what has waited too long and finding what a restart left; but for those of which it is known."""
        if self._departures != cluster.departures:
            self._departures = cluster.departures
            for uid in [uid for uid in self.holds if uid not in cluster.tasks]:
                del self.holds[uid]
            self._victims = {uid: None for uid in self._victims if uid in cluster.tasks}
            self._latest = {uid: latest for uid, latest in self._latest.items() if uid in cluster.tasks}
        for uid in [uid for uid, node in self.expired.items() if not _is_stated(cluster, uid, node)]:
            del self.expired[uid]
        held = []
        departures: dict[tuple[int, int | None], int | None] = {}
        for uid in {**self.holds, **cluster.nominated}:
            if uid in known:
                continue
            task = cluster.tasks[uid]
            hold = self._hold_of(task) if task.status == Status.PENDING else None
            if hold is not None and self._is_in_force(task, hold, cluster, now, departures):
                held.append(task)
        return held

    def is_given_up(self, cluster: Cluster, victim: str) -> bool:
        """Tell whether a victim was to make room for somebody who does not wait for it any more."""
        return victim in self._victims and not any(
            victim in hold.victims and uid in cluster.tasks and cluster.tasks[uid].status == Status.PENDING
            for uid, hold in self.holds.items()
        )

    def _hold_of(self, task: Task) -> Hold | None:
        hold = self.holds.get(task.uid)
        if hold is None and task.nominated and self.expired.get(task.uid) != task.nominated:
            hold = self.holds[task.uid] = Hold(task.nominated)
        return hold

    def _is_in_force(
        self, task: Task, hold: Hold, cluster: Cluster, now: int, departures: dict[tuple[int, int | None], int | None]
    ) -> bool:
        record = cluster.nodes.by_name.get(hold.node)
        if record is None or record.object is None:
            self.drop([task])
            return False
        plan = (id(hold.victims), hold.made) if hold.victims else (id(hold), None)
        if plan not in departures:
            # All members of a plan wait for the same victims.
            others = record.tasks.values() if not hold.victims else ()
            departures[plan] = self._last_departure(hold, cluster, others, now)
        going = departures[plan]
        hold.gone_by = going if going is None or going < NEVER else None
        if going is not None and going >= now:
            hold.clear_since = None
            return True
        if hold.clear_since is None:
            hold.clear_since = now if going is None else going
        if now - hold.clear_since >= hold.patience:
            self.drop([task])
            return False
        return True

    def _last_departure(self, hold: Hold, cluster: Cluster, others: Iterable[Task], now: int) -> int | None:
        """Return when the last victim that is still there should be gone; None if nobody is there any more."""
        waiting = [cluster.tasks[uid] for uid in hold.victims if uid in cluster.tasks]
        waiting += [task for task in others if task.status in GOING]
        if not waiting:
            return None
        return max(self._departure(hold, task, now) for task in waiting)

    def _departure(self, hold: Hold, task: Task, now: int) -> int:
        """Return when a victim should be gone; one whose deletion was not seen yet has its whole grace period from the first attempt to delete it."""
        seen, latest = instant(task.pod.metadata.deletion_timestamp), self._latest.get(task.uid)
        if not seen:
            return NEVER if hold.made is None else min(NEVER, hold.made + _grace(task))
        if latest is None:
            latest = self._latest[task.uid] = now + _grace(task)
        return min(seen, latest)

    def ended(self, cluster: Cluster) -> list[Task]:
        """Return the tasks that count as nominated though that is over. It stays known until the pod no longer says so: the end may never have been written."""
        return [
            cluster.tasks[uid]
            for uid, node in self.expired.items()
            if uid in cluster.tasks and cluster.tasks[uid].nominated == node
        ]

    def awaited(self, cluster: Cluster, job: Job) -> str:
        """Say whose going a job waits for, if pods were evicted for it, and how long its room is held; empty if all are gone."""
        found: dict[str, None] = {}
        until = patience = 0
        told: set[int] = set()
        for uid in self._held_for(job):
            hold = self.holds[uid]
            plan = hold.victims or hold.node
            if job.tasks[uid].status not in WAITING or id(plan) in told:
                continue
            # All members of a plan wait for the same victims.
            told.add(id(plan))
            going = [cluster.tasks[victim] for victim in hold.victims if victim in cluster.tasks]
            going = going if hold.victims else _leaving(cluster, hold.node)
            if going:
                # Only what the API server has said is told; what is merely expected would be told anew when it says so.
                last = max(self._goes_by(victim) for victim in going)
                found.update(dict.fromkeys(victim.key for victim in going))
                until, patience = max(until, last), hold.patience
        return _awaited(list(found), until, patience) if found else ""

    def _goes_by(self, victim: Task) -> int:
        stamp = instant(victim.pod.metadata.deletion_timestamp)
        return min(stamp, self._latest.get(victim.uid, NEVER)) if stamp else NEVER

    def _held_for(self, job: Job) -> list[str]:
        """Return the members of a job for which something is held, in the order in which that was done."""
        held = [uid for uid in job.tasks if uid in self.holds]
        return held if len(held) < 2 else [uid for uid in self.holds if uid in job.tasks]

    def deadline(self, now: int) -> int | None:
        """Return when the next hold ends; that of a member which was placed before may have ended long ago."""
        clear = [(hold.gone_by if hold.clear_since is None else hold.clear_since, hold) for hold in self.holds.values()]
        ends = [since + hold.patience for since, hold in clear if since is not None]
        return min((end for end in ends if end > now), default=None)


def _awaited(victims: list[str], last: int, patience: int) -> str:
    listed = ", ".join(victims[:NAMED]) + (f" and {len(victims) - NAMED} more" if len(victims) > NAMED else "")
    if last == NEVER:
        return f"{AWAITS}: {listed}; its room is held for {patience // 1_000_000} s after they are gone"
    return f"{AWAITS}: {listed}; its room is held until {timestamp.format_timestamp(last + patience)}"


def _leaving(cluster: Cluster, node: str) -> list[Task]:
    """Return the pods that leave a node: after a restart that is all that is known of the victims of a plan."""
    record = cluster.nodes.by_name.get(node)
    return (
        [] if record is None else sorted((t for t in record.tasks.values() if t.status in GOING), key=lambda t: t.key)
    )


def _is_stated(cluster: Cluster, uid: str, node: str) -> bool:
    """Tell whether a pod is there and still names a node, as far as is known."""
    task = cluster.tasks.get(uid)
    return task is not None and node in (task.nominated, task.pod.status.nominated_node_name)


def _grace(task: Task) -> int:
    """Return how long a pod may take to end: what it was given when it was deleted, if that was seen."""
    given = task.pod.metadata.deletion_grace_period_seconds
    grace = task.pod.spec.termination_grace_period_seconds if given is None else given
    return 1_000_000 * (DEFAULT_GRACE if grace is None else max(0, grace))


def apply(session: ReservingSession, reservations: Reservations) -> bool:
    """Let nominated members wait on their nodes before any action runs, beside those who do already; tells whether all of them can, else nothing is done if others do."""
    held = []
    for task in reservations.renew(session.cluster, session.started, session.reserved):
        job = task.job
        if job is None or not session.usable(job) or task.gated:
            continue
        if session.closed(job) is not None:
            reservations.drop([task])
        else:
            held.append(task)
    if session.reserved and held and not _have_room(session.cluster.nodes, _places(session, reservations, held)):
        return False
    put_back(session, reservations, held)
    if (deadline := reservations.deadline(session.started)) is not None:
        session.wake_at(deadline)
    return True


def put_back(session: ReservingSession, reservations: Reservations, tasks: Iterable[Task]) -> None:
    """Let pending tasks wait on the nodes that are held for them, as far as those can still take them."""
    table, places = session.cluster.nodes, _places(session, reservations, tasks)
    while places:
        fitting = _fitting(table, places)
        statement = session.statement()
        tasks, records = [places[number][0] for number in fitting], [places[number][1] for number in fitting]
        placed = statement.pipeline(tasks, records, evicted=True)
        session.reserved.update({task.uid: task for task in tasks[:placed]})
        statement.keep()
        # Whom a plugin refuses takes no room from those after it.
        places = places[fitting[placed] + 1 :] if placed < len(fitting) else []


def _places(
    session: ReservingSession, reservations: Reservations, tasks: Iterable[Task]
) -> list[tuple[Task, NodeRecord]]:
    """Return the pending ones among tasks, with the nodes that are held for them."""
    table = session.cluster.nodes
    places: list[tuple[Task, NodeRecord]] = []
    for task in tasks:
        hold = reservations.holds.get(task.uid)
        record = table.by_name.get(hold.node) if hold is not None else None
        if record is not None and task.status == Status.PENDING and not task.shape.request.unoffered:
            places.append((task, record))
    return places


def _fitting(table: NodeTable, places: Sequence[tuple[Task, NodeRecord]]) -> Sequence[int]:
    """Tell, by their numbers, who finds room on its node beside those before it."""
    if _have_room(table, places):
        return range(len(places))
    free: dict[int, Vector] = {}
    found: list[int] = []
    for number, (task, record) in enumerate(places):
        left, request = free.setdefault(record.row, table.future_idle_at(record.row)), task.shape.request
        if (left[request.asked] >= request.needed).all():
            left -= request.vector
            found.append(number)
    return found


def _have_room(table: NodeTable, places: Sequence[tuple[Task, NodeRecord]]) -> bool:
    """Tell whether every node surely has room for all that would wait there."""
    numbers: dict[int, int] = {}
    at = [numbers.setdefault(record.row, len(numbers)) for _, record in places]
    free = table.future_idle_at(np.array(list(numbers), dtype=np.int64))
    np.subtract.at(free, at, np.array([task.shape.request.vector for task, _ in places], dtype=np.int64))
    return bool((free >= 0).all())


def lift(session: ReservingSession, job: Job) -> list[Task]:
    """Take the job's own reservations off, so that it can be placed anew; returns the tasks that were waiting by them, in an order that does not depend on how pods were listed."""
    if not session.reserved:
        return []
    for uid in session.resting_holders.keys() & job.tasks.keys():
        session.resting_holders.pop(uid)(job)
    lifted = [task for task in job.tasks.values() if task.uid in session.reserved and task.status in TENTATIVE]
    lifted.sort(key=lambda task: task.uid)
    for task in lifted:
        session.statements.release(task)
        del session.reserved[task.uid]
    return lifted


def hold_again(session: ReservingSession, reservations: Reservations, lifted: Sequence[Task]) -> None:
    """Hold for a job what it has not used of what was held for it."""
    for task in lifted:
        if task.status in TENTATIVE:
            # It still waits, and a stronger job may still take its room over.
            session.reserved[task.uid] = task
    put_back(session, reservations, [task for task in lifted if task.status == Status.PENDING])
