"""The numbers of jobs and queues as they stand between two cycles, gathered by the deciding thread when somebody scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.plugins.drf.plugin import Drf, Shares
from pumice.plugins.sharing import queue_limits
from pumice.server.metrics import queue_samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.scheduler import Scheduler
    from pumice.server.metrics.series import Sample


SPARE: Final = 64  # so many entries of jobs that are gone may be kept, beyond as many as there are jobs


class JobSamples:
    """Gathers samples; what it remembers are names that must not vanish, and counts by job, dropped with the job."""

    def __init__(self, scheduler: Scheduler, placed: dict[str, tuple[float, float]]) -> None:
        self._scheduler = scheduler
        self._cluster = scheduler.cache.cluster
        self._placed = placed
        self._retries: dict[str, int] = {}
        self._short: dict[str, None] = {}
        self._queues = queue_samples.QueueSamples()

    def cycled(self) -> None:
        """Count a try for every group with waiting pods that was looked at and is not ready."""
        for key, job in self._scheduler.awake.items():
            if job.group is not None and job.pending and not job.is_ready:
                self._retries[key] = self._retries.get(key, 0) + 1
        # Where nobody scrapes nobody else would.
        if max(len(self._placed), len(self._retries)) > 2 * len(self._cluster.jobs) + SPARE:
            self._forget()

    def gather(self) -> list[Sample]:
        """Return every sample about jobs and queues."""
        self._forget()
        return [*self._jobs(), *self._shares(), *self._queues.samples(self._cluster, self._scheduler.engine.plugins)]

    def _forget(self) -> None:
        """Drop what belongs to jobs that are gone."""
        jobs: Mapping[str, Job] = self._cluster.jobs
        for kept in (self._placed, self._retries, self._short):
            for key in [key for key in kept if key not in jobs]:
                del kept[key]

    def _jobs(self) -> Iterator[Sample]:
        waiting = 0
        for job in self._cluster.jobs.values():
            if job.group is None:
                continue
            labels = (job.name, job.queue, job.namespace)
            yield "volcano_e2e_job_scheduling_start_time", labels, job.creation / 1e6
            if (placed := self._placed.get(job.key)) is not None:
                yield "volcano_e2e_job_scheduling_duration", labels, placed[0]
                yield "volcano_e2e_job_scheduling_last_time", labels, placed[1]
            if job.pending and not job.is_ready:
                waiting += 1
                self._short[job.key] = None
        yield "volcano_unschedule_job_count", (), waiting
        yield from self._by_name(
            "volcano_unschedule_task_count", {key: _missing(self._cluster, key) for key in self._short}
        )
        yield from self._by_name("volcano_job_retry_counts", self._retries)

    def _by_name(self, series: str, numbers: Mapping[str, int]) -> Iterator[Sample]:
        """Give numbers under the group's name alone, as the peer does; groups of one name in several namespaces are added up."""
        sums: dict[str, int] = {}
        for key, number in numbers.items():
            name = self._cluster.jobs[key].name
            sums[name] = sums.get(name, 0) + number
        for name, number in sums.items():
            yield series, (name,), number

    def _shares(self) -> Iterator[Sample]:
        cluster = self._cluster
        if not any(isinstance(plugin, Drf) for tier in self._scheduler.engine.plugins for plugin in tier):
            return
        jobs = [job for job in cluster.jobs.values() if job.group is not None]
        shares = Shares(queue_limits.total(cluster)).of_each(cluster.job_sums.allocated[[job.row for job in jobs]])
        for job, share in zip(jobs, shares.tolist(), strict=True):
            yield "volcano_job_share", (job.namespace, job.name), share


def _missing(cluster: Cluster, key: str) -> int:
    job = cluster.jobs[key]
    return 0 if job.is_ready else max(0, job.min_member - job.tally.ready)
