"""What was let in but is not yet taken, and the vote whether a group may be let in beside it.

Matrices of queues have one row per queue (`queue.row`), those of jobs one per job (`job.row`), in the units and columns of the vocabulary. What
queues hold and ask for is not here: `cluster.queue_sums` has it, live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.api import names
from pumice.framework import queue_room
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.subject import Demand
from pumice.model import resources
from pumice.plugins.sharing import evictable
from pumice.plugins.sharing.minima import Minima

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Amounts, Matrix, Vector
    from pumice.plugins.sharing.rooms import Rooms


def freed_by_eviction(session: Session, job: Job, queue_rows: Sequence[int] | None) -> Vector:
    """Return what a job could evict by the evicting actions' own rules: anywhere (None), or inside some queues beyond what is elastic there."""
    room = evictable.shared(session)
    return room.anywhere(job) if queue_rows is None else room.inside(job, queue_rows)


class Admitted:
    """Per queue, what jobs that were let in may still take (`inqueue`) and what jobs hold beyond their minimum (`elastic`).

    Both are computed at the first question of a cycle. With `above`, which gives the rows of the ancestors of each leaf of a tree, those count everything below them.
    """

    __slots__ = ("_above", "_cluster", "_elastic", "_inqueue", "_lightened", "minima")

    def __init__(self) -> None:
        self.minima = Minima()

    def open(
        self, cluster: Cluster, above: Mapping[int, Sequence[int]] | None = None, minima: Minima | None = None
    ) -> None:
        """Start a cycle, with the minima that somebody else follows already, if there are any."""
        self._cluster = cluster
        self.minima = minima or self.minima
        self._above = above or {}
        self._inqueue: Matrix | None = None
        self._elastic: Matrix | None = None
        self._lightened = False

    def lighten(self, session: Session) -> bool:
        """Leave groups out that can never run: they take no budget from others; tells whether that made a difference."""
        if self._lightened:
            return False
        self._lightened = True
        jobs = never_running(session)
        if jobs:
            self._inqueue = self.inqueue - self.claims(jobs)
        return bool(jobs)

    def claims(self, jobs: Sequence[Job]) -> Matrix:
        """Return what jobs that were let in may still take, by queue."""
        missing = self.minima.reserved(self._cluster, jobs)
        return self._by_queue([job.row for job in jobs], self.minima.deducted(missing, jobs))

    @property
    def inqueue(self) -> Matrix:
        """What was let in and is not taken yet: what is missing to the minimum of groups that are Inqueue, or Running with all their members."""
        if self._inqueue is None:
            self.minima.refresh(self._cluster)
            self._inqueue = self.claims(let_in(self._cluster)) + self._with_ancestors(self.minima.lacking)
        return self._inqueue

    @property
    def elastic(self) -> Matrix:
        """What jobs hold beyond their `minResources`; without any, all they hold."""
        if self._elastic is None:
            self.minima.refresh(self._cluster)
            self._elastic = self._with_ancestors(self.minima.elastic)
        return self._elastic

    def enter(self, job: Job) -> None:
        """Count a job that has just been let in, with the whole of its minimum."""
        if job.min_resources is None:
            return
        counted, queue = self.inqueue, self._cluster.queues[job.queue]
        amounts = self.minima.asked(job)
        for row in (queue.row, *self._above.get(queue.row, ())):
            counted[row] += amounts

    def _by_queue(self, rows: Sequence[int], amounts: Matrix) -> Matrix:
        """Add rows of jobs up to their queues, and to the ancestors of these."""
        sums = np.zeros(self._cluster.queue_sums.allocated.shape, dtype=np.int64)
        places = self.minima.queue_rows[rows]
        known = places >= 0
        np.add.at(sums, places[known], amounts[known])
        return self._with_ancestors(sums)

    def _with_ancestors(self, sums: Matrix) -> Matrix:
        """Return sums by queue, and in a tree those of the queues above."""
        if not self._above:
            return sums.copy()
        # In a tree, what is not in a leaf counts for nothing.
        total = np.zeros(sums.shape, dtype=np.int64)
        for row, ancestors in self._above.items():
            for place in (row, *ancestors):
                total[place] += sums[row]
        return total


def let_in(cluster: Cluster) -> list[Job]:
    """Return the jobs whose group is Inqueue and says what it needs."""
    return [job for job in cluster.phases.jobs(names.PHASE_INQUEUE) if job.min_resources is not None]


def never_running(session: Session) -> list[Job]:
    """Return the jobs that were let in, say what they need and can never run; they are told so."""
    return [job for job in let_in(session.cluster) if session.never_running.passes_over(job)]


class Guard:
    """Who is kept out by what is guaranteed to others and by nothing else; they take no budget from groups within their queue's guarantee."""

    def __init__(self, found: Rooms, admitted: Admitted, beyond: Callable[[Queue, Demand], str | None]) -> None:
        self._rooms = found
        self._admitted = admitted
        self._beyond = beyond
        self._kept_out: list[Job] | None = None

    def kept_out(self, session: Session, job: Job) -> list[Job]:
        """Return the groups that take no budget from a job; none unless the job stays within its queue's guarantee."""
        queue = session.cluster.queues[job.queue]
        if not self._rooms.active or job.min_resources is None:
            return []
        minimum = session.cluster.vocabulary.vector(job.min_resources)
        taken = session.cluster.queue_sums.held(queue.row) + self._admitted.inqueue[queue.row]
        if not self._rooms.is_within(queue, minimum, taken):
            return []
        if self._kept_out is None:
            self._kept_out = [other for other in let_in(session.cluster) if self._is_kept_out(session, other)]
        return self._kept_out

    def _is_kept_out(self, session: Session, job: Job) -> bool:
        queue = session.queue_of(job)
        if queue is None or not self._rooms.knows(queue):
            return False
        amounts = self._admitted.minima.reserved(session.cluster, [job])[0]
        refused = self._rooms.refusal(queue, amounts) is not None
        return refused and self._beyond(queue, Demand([], amounts)) is None


def guard(session: Session, found: Guard) -> None:
    """Let every vote of the cycle know who keeps guarantees."""
    session.scratch["guard"] = found


def kept_out_for(session: Session, job: Job) -> list[Job]:
    """Return the groups that were let in and take no budget from a job, since only its guarantee and those of others keep them out."""
    found = session.scratch.get("guard")
    return found.kept_out(session, job) if isinstance(found, Guard) else []


class Bound(msgspec.Struct, frozen=True):
    """One queue that limits a job: what it and the queues below it hold, how much they may, and the rows of all of them."""

    queue: Queue
    held: Vector
    limit: Vector
    inside: Sequence[int]


def admission(session: Session, job: Job, bounds: Iterable[Bound], admitted: Admitted) -> Vote:
    """Vote whether the minimum of a job fits its queue and, in a tree, the queues above it, beside what they hold and have let in.

    What the job could evict inside a queue is taken off what that queue holds. A refusal leaves the event that users know.
    """
    if job.min_resources is None:
        return PERMIT
    for bound in bounds:
        row = bound.queue.row
        inelastic = bound.held - admitted.elastic[row]
        inqueue = admitted.inqueue[row]
        lacking = shortage(session.cluster, job.min_resources, (bound.limit - inelastic - inqueue).tolist())
        if lacking and admitted.lighten(session):
            inqueue = admitted.inqueue[row]
            lacking = shortage(session.cluster, job.min_resources, (bound.limit - inelastic - inqueue).tolist())
        if lacking and (kept_out := kept_out_for(session, job)):
            inqueue = inqueue - admitted.claims(kept_out)[row]
            lacking = shortage(session.cluster, job.min_resources, (bound.limit - inelastic - inqueue).tolist())
        if lacking:
            # Only who does not fit as things are has to count on eviction.
            inelastic = inelastic - freed_by_eviction(session, job, bound.inside)
            lacking = shortage(session.cluster, job.min_resources, (bound.limit - inelastic - inqueue).tolist())
        if lacking:
            session.findings.notice(job, f"queue resource quota insufficient: {_listed('insufficient', lacking)}")
            columns = session.cluster.vocabulary.columns
            said = [
                f"{name} {resources.shown(name, job.min_resources[name])} + {_shown(name, inelastic[columns[name]])} held"
                f" + {_shown(name, inqueue[columns[name]])} let in, limit {_shown(name, bound.limit[columns[name]])}"
                if name in columns
                else f"no node offers {name}"
                for name in lacking
            ]
            cause = _lack(session, bound, lacking[0], job.min_resources[lacking[0]], (inelastic, inqueue))
            return reject(f"queue {bound.queue.name}: minResources exceed its room: {'; '.join(said)}", cause)
    return PERMIT


def _lack(session: Session, bound: Bound, name: str, asked: int, taken: tuple[Vector, Vector]) -> object:
    """Say of what a queue has too little left beside what it holds and has let in."""
    column = session.cluster.vocabulary.columns.get(name)
    if column is None:
        return f"no node offers {name}, the job asks for {resources.shown(name, asked)}"
    (held, let_in), limit = (int(each[column]) for each in taken), int(bound.limit[column])
    return queue_room.Lack(
        bound.queue.name, name, held, limit, asked, let_in, whole=limit >= queue_room.total(session)[column]
    )


def shortage(cluster: Cluster, minimum: Amounts, room: Sequence[int]) -> list[str]:
    """Return the names of which a minimum asks for more than there is room for, pods aside; what no node offers is always short, unless a device class stands for it."""
    columns = cluster.vocabulary.columns
    short = []
    for name, units in minimum.items():
        if units and name != "pods":
            column = columns.get(name)
            if units > room[column] if column is not None else not cluster.devices.stands_for(name):
                short.append(name)
    short.sort(key=lambda name: columns.get(name, len(columns)))
    return short


def _listed(word: str, names: Iterable[str]) -> str:
    return ", ".join(f"{word} {name}" for name in names)


def _shown(name: str, units: np.int64) -> str:
    return resources.shown(name, int(units))
