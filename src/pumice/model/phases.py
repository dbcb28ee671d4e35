"""Which groups are in which phase, and how many of each queue; kept in step, so that nobody has to look through all jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.api.scheduling import PodGroupStatus
    from pumice.model.job import Job


class Phases:
    """The index of jobs by the phase of their group; a phase or a queue that nobody is in is not in it."""

    __slots__ = ("_jobs", "counts")

    def __init__(self) -> None:
        self._jobs: dict[str, dict[str, Job]] = {}
        self.counts: dict[str, dict[str, int]] = {}  # by queue and phase

    def enter(self, job: Job) -> None:
        """Count a job that has a group, under its present phase and queue."""
        if job.group is not None:
            phase = job.phase
            self._jobs.setdefault(phase, {})[job.key] = job
            counts = self.counts.setdefault(job.queue, {})
            counts[phase] = counts.get(phase, 0) + 1

    def leave(self, job: Job) -> None:
        """Take a job out, before its phase or its queue changes."""
        phase = job.phase
        jobs = self._jobs.get(phase, {})
        if jobs.pop(job.key, None) is None:
            return
        if not jobs:
            del self._jobs[phase]
        counts = self.counts[job.queue]
        counts[phase] -= 1
        if not counts[phase]:
            del counts[phase]
        if not counts:
            del self.counts[job.queue]

    def change(self, statuses: Iterable[tuple[Job, PodGroupStatus]]) -> None:
        """Give jobs other statuses, under which each is the last to enter its phase."""
        for job, status in statuses:
            # Of thousands of jobs in a cycle, so without asking `phase` of each.
            before, after, key = job.status.phase or names.PHASE_PENDING, status.phase or names.PHASE_PENDING, job.key
            job.status = status
            jobs = self._jobs.get(before)
            if jobs is None or jobs.pop(key, None) is None:
                self.enter(job)
                continue
            if after != before:
                counts = self.counts[job.queue]
                counts[before] -= 1
                counts[after] = counts.get(after, 0) + 1
                if not counts[before]:
                    del counts[before]
                if not jobs:
                    del self._jobs[before]
                jobs = self._jobs.setdefault(after, {})
            jobs[key] = job

    def jobs(self, phase: str) -> list[Job]:
        """Return the jobs whose group is in a phase."""
        return list(self._jobs.get(phase, {}).values())
