"""Which groups are in which phase, and how many of each queue; kept in step, so that nobody has to look through all jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
            self._jobs.setdefault(job.phase, {})[job.key] = job
            counts = self.counts.setdefault(job.queue, {})
            counts[job.phase] = counts.get(job.phase, 0) + 1

    def leave(self, job: Job) -> None:
        """Take a job out, before its phase or its queue changes."""
        jobs = self._jobs.get(job.phase, {})
        if jobs.pop(job.key, None) is None:
            return
        if not jobs:
            del self._jobs[job.phase]
        counts = self.counts[job.queue]
        counts[job.phase] -= 1
        if not counts[job.phase]:
            del counts[job.phase]
        if not counts:
            del self.counts[job.queue]

    def jobs(self, phase: str) -> list[Job]:
        """Return the jobs whose group is in a phase."""
        return list(self._jobs.get(phase, {}).values())
