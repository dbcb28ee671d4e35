"""The format of a workload: one world to measure on, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import structs

if TYPE_CHECKING:
    from collections.abc import Iterator

MI = 2**20


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A piece of a workload file; a field that does not exist is refused by name."""


class Steps(Part, frozen=True):
    """Amounts that grow from shape to shape."""

    first: int
    step: int = 0


class Shapes(Part, frozen=True):
    """Which shapes there are, in millicores and MiB, and who takes them in turn."""

    cpu: Steps
    memory: Steps
    count: int = 1
    of: Literal["jobs", "pods"] = "jobs"

    def at(self, job: int, pod: int) -> tuple[int, int]:
        """Return what a pod asks for; pods are counted over all jobs."""
        number = (job if self.of == "jobs" else pod) % self.count
        return self.cpu.first + self.cpu.step * number, self.memory.first + self.memory.step * number


class Jobs(Part, frozen=True):
    """Equal jobs; with `extra`, so many of them, evenly spread, have one more pod. What is asked for beside cpu and memory is a limit too, or everything is.

    With `devices`, each pod has a claim of its own for so many, those of which the `selector` is true.
    """

    jobs: int
    size: int
    minimum: int
    shapes: Shapes
    extra: int = 0
    priority: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    asks: dict[str, str] = {}
    guaranteed: bool = False
    devices: int = 0
    selector: str = ""
    pod: dict[str, Any] = {}

    @property
    def pods(self) -> int:
        """How many pods there are."""
        return self.jobs * self.size + self.extra

    def size_of(self, job: int) -> int:
        """Return how many pods a job has."""
        return self.first_pod(job + 1) - self.first_pod(job)

    def first_pod(self, job: int) -> int:
        """Return the number, over all jobs, of the first pod of a job."""
        return job * self.size + job * self.extra // self.jobs


class Cells(Part, frozen=True):
    """NUMA cells that share a node's cores, and the policy of its topology manager."""

    count: int
    policy: str = "none"


class Devices(Part, frozen=True):
    """Equal devices of a driver, with attributes of texts."""

    count: int
    attributes: dict[str, str] = {}


class Machines(Part, frozen=True):
    """Equal nodes, in cores and GiB; the values of each label are taken in turn."""

    count: int
    cpu: int
    memory: int
    pods: int = 110
    labels: dict[str, list[str]] = {}
    annotations: dict[str, str] = {}
    offers: dict[str, str] = {}
    numa: Cells | None = None
    devices: Devices | None = None


class Churn(Part, frozen=True):
    """What changes from cycle to cycle: the oldest jobs end and equal ones come, pods of others and nodes come and go."""

    cycles: int
    percent: float = 0
    nodes: int = 0
    pods: int = 0


class Expected(Part, frozen=True):
    """What a quiet machine of two cores should reach; 0 where nothing is expected."""

    pods_per_second: float = 0
    cycle_ms: float = 0
    idle_ms: float = 0
    gigabytes: float = 0
    kilobytes_per_pod: float = 0
    kilobytes_per_node: float = 0


class Workload(Part, frozen=True):
    """One world to measure on."""

    name: str
    nodes: Machines
    arrivals: tuple[Jobs, ...] = ()
    existing: tuple[Jobs, ...] = ()
    queues: int = 1
    configuration: str = ""
    votes: bool = False
    portions: int = 1
    churn: Churn | None = None
    detail: Literal["bare", "full"] = "bare"
    runs: int = 3
    expect: Expected = Expected()

    def queue_names(self) -> list[str]:
        """Name the queues."""
        return ["default"] if self.queues == 1 else [f"queue-{i}" for i in range(self.queues)]

    def requests(self) -> list[tuple[int, int, int]]:
        """Return what each arriving pod asks for: millicores, bytes, one pod."""
        return [(cpu, memory * MI, 1) for jobs in self.arrivals for _, _, cpu, memory in pods_of(jobs)]

    def problems(self) -> list[str]:
        """Say what is impossible, each with its field."""
        found = [f"portions is {self.portions}; arrivals come in at least one"] if self.portions < 1 else []
        found += [f"nodes.count is {self.nodes.count}; there must be at least one node"] if self.nodes.count < 1 else []
        if not self.arrivals and self.churn is None:
            found.append("neither arrivals nor churn is given, so there is nothing to measure")
        if self.churn is not None and self.churn.percent and not self.existing:
            found.append("churn.percent is given without existing jobs that could end")
        for field in ("existing", "arrivals"):
            for number, jobs in enumerate(getattr(self, field)):
                if min(jobs.jobs, jobs.size, jobs.shapes.count) < 1:
                    found.append(f"{field}[{number}]: jobs, size and shapes.count must be at least 1")
                if not 0 <= jobs.extra <= jobs.jobs:
                    found.append(f"{field}[{number}].extra is {jobs.extra}, not between 0 and its {jobs.jobs} jobs")
                if jobs.minimum > jobs.size:
                    found.append(f"{field}[{number}].minimum is {jobs.minimum}, above its size of {jobs.size}")
        return found

    def scaled(self, part: float) -> Workload:
        """Return the same world made smaller: nodes and jobs, and the pods of a job that stays alone, by this part."""
        count = max(1, round(self.nodes.count * part))
        return structs.replace(
            self,
            name=f"{self.name}, made smaller by {part:g}",
            nodes=structs.replace(self.nodes, count=count),
            arrivals=tuple(_scaled(jobs, part) for jobs in self.arrivals),
            existing=tuple(_scaled(jobs, part) for jobs in self.existing),
            queues=max(1, min(self.queues, round(self.queues * part * 10))) if self.queues > 1 else 1,
            expect=Expected(),
        )


def _scaled(jobs: Jobs, part: float) -> Jobs:
    fewer = max(1, round(jobs.jobs * part))
    rest = part * jobs.jobs / fewer  # what could not be taken from the number of jobs is taken from their size
    size = max(1, round(jobs.size * min(1.0, rest)))
    minimum = max(1, min(size, round(jobs.minimum * size / jobs.size)))
    shapes = structs.replace(jobs.shapes, count=max(1, min(jobs.shapes.count, fewer * size)))
    return structs.replace(
        jobs, jobs=fewer, size=size, minimum=minimum, shapes=shapes, extra=round(jobs.extra * fewer / jobs.jobs)
    )


def pods_of(jobs: Jobs) -> Iterator[tuple[int, int, int, int]]:
    """Go through the pods of jobs: number of the job, of the pod in it, millicores, MiB."""
    for job in range(jobs.jobs):
        first = jobs.first_pod(job)
        for index in range(jobs.size_of(job)):
            yield job, index, *jobs.shapes.at(job, first + index)
