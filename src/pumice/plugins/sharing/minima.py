"""What the `minResources` of jobs say, and what follows from that over all jobs; brought up to date by the jobs that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pumice.api import names
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

# Asked of every job that has changed: plain integers index lists several times faster than members of an enumeration.
_ALLOCATED, _BINDING = int(Status.ALLOCATED), int(Status.BINDING)
_BOUND, _RUNNING = int(Status.BOUND), int(Status.RUNNING)


Contributions: TypeAlias = "tuple[Vector, Matrix, Matrix]"
"""Of some jobs: the rows of their queues, what they lack and what they spare."""


class Minima:
    """By the row of a job, its minimum and its queue; by the row of a queue, what its running jobs lack to their minima and what its jobs hold beyond them."""

    def __init__(self) -> None:
        self._position = self._group_position = -1
        self._places: dict[str, int] = {}
        self._gated_tasks: Mapping[str, Task] = {}
        self._reset(0, 0, 0)

    def _reset(self, jobs: int, queues: int, width: int) -> None:
        self._versions: Vector = np.full(jobs, -1, dtype=np.int64)  # of jobs whose gates were looked at
        self.minimum: Matrix = np.zeros((jobs, width), dtype=np.int64)
        self.queue_rows: Vector = np.full(jobs, -1, dtype=np.int64)
        self.gated: dict[int, Vector] = {}
        # What each job adds to the sums of its queue.
        self._lacks: Matrix = np.zeros((jobs, width), dtype=np.int64)
        self._spares: Matrix = np.zeros((jobs, width), dtype=np.int64)
        self.lacking: Matrix = np.zeros((queues, width), dtype=np.int64)
        self.elastic: Matrix = np.zeros((queues, width), dtype=np.int64)
        self.lacking_anywhere: Vector = np.zeros(width, dtype=np.int64)  # in queues that do not exist, too

    def refresh(self, cluster: Cluster) -> None:
        """Follow the jobs of the cluster."""
        rows, width = cluster.job_sums.allocated.shape
        queues = len(cluster.queue_sums.allocated)
        changed = cluster.job_changes.since(self._position)
        described = cluster.group_changes.since(self._group_position)
        if changed is None or described is None or self.minimum.shape[1] != width:
            self._reset(rows, queues, width)
            self._places = {}
            changed = described = cluster.job_at
        self._gated_tasks = cluster.gated
        self._position, self._group_position = cluster.job_changes.position, cluster.group_changes.position
        self._grow(rows)
        places = {name: queue.row for name, queue in cluster.queues.items()}
        if self._places != places or len(self.lacking) != queues:
            self._places = places
            self._settle(cluster, queues)
        self._follow(cluster, list(changed), list(described))

    def _grow(self, rows: int) -> None:
        """Make room for more jobs."""
        more = rows - len(self.minimum)
        if more > 0:
            nowhere = np.full(more, -1, dtype=np.int64)
            self.queue_rows = np.append(self.queue_rows, nowhere)
            self._versions = np.append(self._versions, nowhere)
            none = np.zeros((more, self.minimum.shape[1]), dtype=np.int64)
            self.minimum, self._lacks, self._spares = (
                np.concatenate([matrix, none]) for matrix in (self.minimum, self._lacks, self._spares)
            )

    def _settle(self, cluster: Cluster, queues: int) -> None:
        """Find the queues of all jobs anew, which have come or gone, and add up what is known of the jobs."""
        rows = list(cluster.job_at)
        self.queue_rows[:] = -1
        self.queue_rows[rows] = [self._places.get(job.queue, -1) for job in cluster.job_at.values()]
        self.lacking = np.zeros((queues, self.minimum.shape[1]), dtype=np.int64)
        self.elastic = np.zeros((queues, self.minimum.shape[1]), dtype=np.int64)
        self.lacking_anywhere = np.zeros(self.minimum.shape[1], dtype=np.int64)
        self._add((self.queue_rows, self._lacks, self._spares))

    def _follow(self, cluster: Cluster, rows: Sequence[int], described: Sequence[int]) -> None:
        """Bring some jobs up to date, and the sums of their queues with them; some of them have another group, or none any more."""
        if not rows:
            return
        listed = np.array(rows, dtype=np.int64)
        before = (self.queue_rows[listed], self._lacks[listed], self._spares[listed])
        self._read(cluster, described)
        self._versions[listed] = -1
        missing = self.minimum[listed] - cluster.job_sums.allocated[listed]
        self._spares[listed] = np.maximum(-missing, 0)
        self._lacks[listed] = 0
        short = [cluster.job_at[rows[at]] for at in np.flatnonzero((missing > 0).any(axis=1)).tolist()]
        if running := [job for job in short if is_running(job)]:
            self._lacks[[job.row for job in running]] = self.deducted(self.reserved(cluster, running), running)
        self._exchange(before, (self.queue_rows[listed], self._lacks[listed], self._spares[listed]))

    def _read(self, cluster: Cluster, rows: Sequence[int]) -> None:
        """Take over what some jobs say, or that they are gone."""
        there = [cluster.job_at.get(row) for row in rows]
        self.queue_rows[rows] = [-1 if job is None else self._places.get(job.queue, -1) for job in there]
        self.minimum[rows] = 0
        for row, job in zip(rows, there, strict=True) if self.gated else ():
            if job is None:
                self.gated.pop(row, None)
        stated = {job.row: job.min_resources for job in there if job is not None and job.min_resources is not None}
        if stated:
            self.minimum[list(stated)] = cluster.vocabulary.matrix(stated.values())

    def _exchange(self, before: Contributions, after: Contributions) -> None:
        """Let jobs contribute to the sums of their queues what they do now instead of what they did before."""
        left, lacked, spared = before
        places, lacks, spares = after
        if np.array_equal(left, places):
            self._add((places, lacks - lacked, spares - spared))
        else:
            self._add((left, -lacked, -spared))
            self._add(after)

    def _add(self, more: Contributions) -> None:
        """Add to the sums of queues."""
        places, lacks, spares = more
        self.lacking_anywhere += lacks.sum(axis=0)
        _add_to(self.lacking, places, lacks)
        _add_to(self.elastic, places, spares)

    def reserved(self, cluster: Cluster, jobs: Iterable[Job]) -> Matrix:
        """Return what jobs still lack to their minimum."""
        rows = [job.row for job in jobs]
        missing: Matrix = np.maximum(self.minimum[rows] - cluster.job_sums.allocated[rows], 0)
        return missing

    def asked(self, job: Job) -> Vector:
        """Return the minimum of a job, without what its gated pods ask for; nobody may change it."""
        asked: Vector = self.asked_by((job,))[0] if self._gated_tasks else self.minimum[job.row]
        return asked

    def asked_by(self, jobs: Sequence[Job]) -> Matrix:
        """Return the same of many jobs, a row for each."""
        return self.deducted(self.minimum[[job.row for job in jobs]], jobs)

    def deducted(self, amounts: Matrix, jobs: Sequence[Job]) -> Matrix:
        """Take the requests of gated pods off amounts of jobs, down to 0; a gate that only waits for the queue does not count."""
        if not self._gated_tasks:
            return amounts
        known = self._versions[[job.row for job in jobs]].tolist()
        for job, version in zip(jobs, known, strict=True):
            if job.pending and version != job.version:
                self._look(job)
        for position, job in enumerate(jobs) if self.gated else ():
            if job.pending and (gated := self.gated.get(job.row)) is not None:
                amounts[position] = np.maximum(amounts[position] - gated, 0)
        return amounts

    def _look(self, job: Job) -> None:
        """Add up what the gated pods of a job that has changed ask for."""
        self._versions[job.row] = job.version
        requests = [task.shape.request.vector for task in job.pending.values() if task.externally_gated]
        self.gated.pop(job.row, None)
        if requests:
            self.gated[job.row] = np.sum(requests, axis=0)


def _add_to(totals: Matrix, places: Vector, amounts: Matrix) -> None:
    """Add amounts to the rows of totals at their places, if they have any; most amounts are nothing."""
    positions, columns = np.nonzero(amounts)
    somewhere = places[positions] >= 0
    positions, columns = positions[somewhere], columns[somewhere]
    # One index for each number: numpy adds at those many times as fast as at whole rows.
    np.add.at(totals.reshape(-1), places[positions] * totals.shape[1] + columns, amounts[positions, columns])


def shared(session: Session) -> Minima:
    """Return the minima that all plugins of a configuration follow together."""
    found = session.lasting.get("minima")
    if not isinstance(found, Minima):
        found = session.lasting["minima"] = Minima()
    return found


def is_running(job: Job) -> bool:
    """Tell whether a job's group is Running with all its members placed, and says what it needs."""
    return job.status.phase == names.PHASE_RUNNING and job.min_resources is not None and placed(job) >= job.min_member


def placed(job: Job) -> int:
    """Count the tasks of a job that hold room."""
    counts = job.tally.counts
    return counts[_ALLOCATED] + counts[_BINDING] + counts[_BOUND] + counts[_RUNNING]
