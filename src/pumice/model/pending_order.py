"""The order in which jobs and their tasks are listed as pending: what was only tried leaves no trace in it, nor in which jobs have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.job import Job

T = TypeVar("T")


class PendingOrder:
    """The order before some tasks of some jobs were moved."""

    __slots__ = ("_clean", "_cluster", "_jobs", "_tasks")

    def __init__(self, cluster: Cluster, jobs: Iterable[Job]) -> None:
        self._cluster = cluster
        self._jobs = list(cluster.pending_jobs)
        self._tasks = {job.key: (job, list(job.pending)) for job in jobs}
        self._clean = [key for key in self._tasks if key not in cluster.dirty_jobs]

    def restore(self) -> None:
        """List whoever is pending again where it was."""
        for job, uids in self._tasks.values():
            if list(job.pending) != uids:
                _list_as(job.pending, uids)
        if list(self._cluster.pending_jobs) != self._jobs:
            _list_as(self._cluster.pending_jobs, self._jobs)
            self._cluster.listings.forget()
        for key in self._clean:
            job, uids = self._tasks[key]
            if len(job.pending) == len(uids):
                self._cluster.dirty_jobs.pop(key, None)


def _list_as(listed: dict[str, T], keys: Sequence[str]) -> None:
    """Bring what is listed back into an order in which it was before."""
    ordered = {key: listed[key] for key in (*(key for key in keys if key in listed), *listed)}
    listed.clear()
    listed.update(ordered)
