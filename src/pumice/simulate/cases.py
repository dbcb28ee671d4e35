"""One policy's case: a trace, and what became of its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import core
from pumice.model import requests, resources
from pumice.simulate import gpu_fragments, reshaping
from pumice.simulate.metrics import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.simulate.loading import Loaded
    from pumice.simulate.results import JobResult, PodRun, Result
    from pumice.simulate.trace import TraceJob


class Case:
    """A trace with what became of it, and what its jobs ask for."""

    def __init__(self, loaded: Loaded, result: Result) -> None:
        self.trace = loaded.trace
        self.cluster = loaded.cluster
        self.result = result
        self.capacity = {
            name: units for name, units in reshaping.capacity(loaded.cluster).items() if name != "pods" and units
        }
        self._known: dict[int, resources.Amounts] = {}
        self._fragments: list[gpu_fragments.Level] | None = None

    def fragments(self) -> list[gpu_fragments.Level]:
        """Return the fragments of GPUs over time."""
        if self._fragments is None:
            self._fragments = gpu_fragments.levels(
                self.trace, self.cluster, self.runs(), first=self.result.jobs[0].submit if self.result.jobs else 0
            )
        return self._fragments

    def amounts(self, spec: core.PodSpec) -> resources.Amounts:
        """Return what a pod asks for."""
        found = self._known.get(id(spec))
        if found is None:
            found = self._known[id(spec)] = requests.of_pod(core.Pod(spec=spec))
        return found

    def job(self, result: JobResult) -> TraceJob:
        """Return the job of a record."""
        return self.trace.jobs[result.job]

    def size(self, job: TraceJob) -> resources.Amounts:
        """Return what all members of a job ask for together."""
        total: resources.Amounts = {}
        for members in job.members:
            for name, units in self.amounts(members.spec).items():
                total[name] = total.get(name, 0) + units * members.count
        return total

    def share(self, job: TraceJob) -> float:
        """Return which part of the cluster a job asks for, of the resource of which that is most."""
        size = self.size(job)
        return max((size.get(name, 0) / units for name, units in self.capacity.items()), default=0.0)

    @property
    def finished(self) -> list[JobResult]:
        """The jobs that have ended."""
        return [each for each in self.result.jobs if each.end is not None]

    def runs(self) -> Iterator[tuple[TraceJob, PodRun, int]]:
        """Give all runs of pods, each with its job and its end, which is that of the simulation if it has none."""
        for each in self.result.jobs:
            job = self.trace.jobs[each.job]
            for run in each.runs:
                yield job, run, self.result.stopped if run.end is None else run.end

    def intervals(self, resource: str, wanted: Callable[[TraceJob], bool] = lambda _: True) -> Iterator[Interval]:
        """Give how much of a resource pods held, and when."""
        for job, run, end in self.runs():
            amount = self.amounts(job.members[run.member].spec).get(resource, 0)
            if amount and wanted(job):
                yield Interval(amount, run.start, end)

    def demand(self, resource: str, wanted: Callable[[TraceJob], bool]) -> Iterator[Interval]:
        """Give how much of a resource jobs wanted, and when: from their submit until each member has ended."""
        for each in self.result.jobs:
            job = self.trace.jobs[each.job]
            if not wanted(job) or job.submit > self.result.stopped:
                continue
            left = [members.count for members in job.members]
            for run in each.runs:
                if run.end is not None and not run.evicted:
                    left[run.member] -= 1
                    amount = self.amounts(job.members[run.member].spec).get(resource, 0)
                    yield Interval(amount, job.submit, run.end)
            for members, count in zip(job.members, left, strict=True):
                amount = self.amounts(members.spec).get(resource, 0)
                yield Interval(amount * count, job.submit, self.result.stopped)
