"""What the `minResources` of jobs say, and what follows from that over all jobs; brought up to date by the jobs that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.api import names
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.api.scheduling import PodGroup
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.resources import Amounts, Matrix, Vector

# Asked of every job that has changed: plain integers index lists several times faster than members of an enumeration.
_ALLOCATED, _BINDING = int(Status.ALLOCATED), int(Status.BINDING)
_BOUND, _RUNNING = int(Status.BOUND), int(Status.RUNNING)


class Minima:
    """By the row of a job, its minimum and its queue; by the row of a queue, what its running jobs lack to their minima and what its jobs hold beyond them."""

    def __init__(self) -> None:
        self._position = -1
        self._places: dict[str, int] = {}
        self._reset(0, 0, 0)

    def _reset(self, jobs: int, queues: int, width: int) -> None:
        self._groups: list[PodGroup | None] = [None] * jobs  # whose word was taken
        self._gates: list[tuple[Job | None, int]] = [(None, -1)] * jobs
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
        if changed is None or self.minimum.shape[1] != width:
            self._reset(rows, queues, width)
            self._places = {}
            changed = cluster.job_at
        self._position = cluster.job_changes.position
        self._grow(rows)
        places = {name: queue.row for name, queue in cluster.queues.items()}
        if self._places != places or len(self.lacking) != queues:
            self._places = places
            self._settle(cluster, queues)
        self._follow(cluster, list(changed))

    def _grow(self, rows: int) -> None:
        """Make room for more jobs."""
        more = rows - len(self._groups)
        if more > 0:
            self._groups += [None] * more
            self._gates += [(None, -1)] * more
            self.queue_rows = np.append(self.queue_rows, np.full(more, -1, dtype=np.int64))
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
        self._add(range(len(self._groups)), 1)

    def _follow(self, cluster: Cluster, rows: Sequence[int]) -> None:
        """Bring some jobs up to date, and the sums of their queues with them."""
        if not rows:
            return
        self._add(rows, -1)
        there = [cluster.job_at.get(row) for row in rows]
        self._read(cluster, rows, there)
        beyond = cluster.job_sums.allocated[rows] - self.minimum[rows]
        self._spares[rows] = np.maximum(beyond, 0)
        self._lacks[rows] = 0
        running = [
            job
            for job in there
            if job is not None and job.status.phase == names.PHASE_RUNNING and is_running(job)  # most are asked nothing
        ]
        if running:
            self._lacks[[job.row for job in running]] = self.deducted(self.reserved(cluster, running), running)
        self._add(rows, 1)

    def _read(self, cluster: Cluster, rows: Sequence[int], there: Sequence[Job | None]) -> None:
        """Take over what some jobs say, or that they are gone; most say what they said."""
        stated: dict[int, Amounts] = {}
        silent: list[int] = []
        for row, job in zip(rows, there, strict=True):
            group = job.group if job is not None else None
            if job is not None and self._groups[row] is group:
                continue
            self._groups[row] = group
            self.queue_rows[row] = -1 if job is None else self._places.get(job.queue, -1)
            if job is None:
                self._gates[row] = (None, -1)
                self.gated.pop(row, None)
            if job is None or job.min_resources is None:
                silent.append(row)
            else:
                stated[row] = job.min_resources
        self.minimum[silent] = 0
        if stated:
            self.minimum[list(stated)] = cluster.vocabulary.matrix(stated.values())

    def _add(self, rows: Sequence[int], sign: int) -> None:
        """Add what jobs contribute to the sums of their queues, or take it away."""
        listed = np.asarray(rows, dtype=np.int64)
        self.lacking_anywhere += sign * self._lacks[listed].sum(axis=0)
        places = self.queue_rows[listed]
        known = np.flatnonzero(places >= 0)
        if len(known):
            chosen = listed[known]
            np.add.at(self.lacking, places[known], sign * self._lacks[chosen])
            np.add.at(self.elastic, places[known], sign * self._spares[chosen])

    def reserved(self, cluster: Cluster, jobs: Iterable[Job]) -> Matrix:
        """Return what jobs still lack to their minimum."""
        rows = [job.row for job in jobs]
        missing: Matrix = np.maximum(self.minimum[rows] - cluster.job_sums.allocated[rows], 0)
        return missing

    def asked(self, job: Job) -> Vector:
        """Return the minimum of a job, without what its gated pods ask for."""
        asked: Vector = self.asked_by((job,))[0]
        return asked

    def asked_by(self, jobs: Sequence[Job]) -> Matrix:
        """Return the same of many jobs, a row for each."""
        return self.deducted(self.minimum[[job.row for job in jobs]], jobs)

    def deducted(self, amounts: Matrix, jobs: Sequence[Job]) -> Matrix:
        """Take the requests of gated pods off amounts of jobs, down to 0; a gate that only waits for the queue does not count."""
        for job in jobs:
            if job.pending and self._gates[job.row] != (job, job.version):
                self._look(job)
        for position, job in enumerate(jobs) if self.gated else ():
            if job.pending and (gated := self.gated.get(job.row)) is not None:
                amounts[position] = np.maximum(amounts[position] - gated, 0)
        return amounts

    def _look(self, job: Job) -> None:
        """Add up what the gated pods of a job that has changed ask for."""
        self._gates[job.row] = (job, job.version)
        requests = [task.shape.request.vector for task in job.pending.values() if task.externally_gated]
        self.gated.pop(job.row, None)
        if requests:
            self.gated[job.row] = np.sum(requests, axis=0)


def shared(session: Session) -> Minima:
    """Return the minima that all plugins of a configuration follow together."""
    found = session.lasting.get("minima")
    if not isinstance(found, Minima):
        found = session.lasting["minima"] = Minima()
    return found


def is_running(job: Job) -> bool:
    """Tell whether a job's group is Running with all its members placed, and says what it needs."""
    return job.min_resources is not None and job.status.phase == names.PHASE_RUNNING and placed(job) >= job.min_member


def placed(job: Job) -> int:
    """Count the tasks of a job that hold room."""
    counts = job.tally.counts
    return counts[_ALLOCATED] + counts[_BINDING] + counts[_BOUND] + counts[_RUNNING]
