"""Run workloads from files: `python -m bench.workload [FILE…]`, by default all of `bench/workloads/`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import yaml

from bench import floor, worlds
from bench.cases import Figure
from pumice.server.threads import interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "workloads"
MI = 2**20
GI = 2**30
TIMES = 3


class Steps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Amounts that grow from shape to shape."""

    first: int
    step: int = 0


class Shapes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which shapes there are, in millicores and MiB, and who takes them in turn."""

    cpu: Steps
    memory: Steps
    count: int = 1
    of: Literal["jobs", "pods"] = "jobs"

    def at(self, job: int, pod: int) -> tuple[int, int]:
        """Return what a pod asks for; pods are counted over all jobs."""
        number = (job if self.of == "jobs" else pod) % self.count
        return self.cpu.first + self.cpu.step * number, self.memory.first + self.memory.step * number


class Jobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Equal jobs."""

    jobs: int
    size: int
    minimum: int
    shapes: Shapes


class Machines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Equal nodes, in cores and GiB."""

    count: int
    cpu: int
    memory: int
    pods: int = 110


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One world to measure on."""

    name: str
    nodes: Machines
    arrivals: tuple[Jobs, ...]
    existing: tuple[Jobs, ...] = ()
    queues: int = 1
    configuration: str = ""
    at_least: float = 0

    def requests(self) -> list[tuple[int, int, int]]:
        """Return what each arriving pod asks for: millicores, bytes, one pod."""
        return [(cpu, memory * MI, 1) for jobs in self.arrivals for _, _, cpu, memory in _pods(jobs)]

    def stage(self) -> worlds.Bench:
        """Build the world, up to the moment before it is decided."""
        bench = worlds.Bench(self.configuration)
        offered = self.nodes
        bench.feed(worlds.node(i, offered.cpu, offered.memory, offered.pods) for i in range(offered.count))
        bench.feed(worlds.queue(name) for name in self._queues() if name != "default")
        for kind, jobs in enumerate(self.existing):
            bench.feed(self._manifests(f"old-{kind}", jobs, runs=True))
        for kind, jobs in enumerate(self.arrivals):
            bench.feed(self._manifests(f"new-{kind}", jobs, runs=False))
        bench.apply()
        return bench

    def _queues(self) -> list[str]:
        return ["default"] if self.queues == 1 else [f"queue-{i}" for i in range(self.queues)]

    def _manifests(self, prefix: str, jobs: Jobs, *, runs: bool) -> Iterator[dict[str, Any]]:
        queues = self._queues()
        for job in range(jobs.jobs):
            phase = "Running" if runs else "Inqueue"
            yield worlds.group(f"{prefix}-{job}", jobs.minimum, queues[job % len(queues)], phase)
        for number, (job, index, cpu, memory) in enumerate(_pods(jobs)):
            where = f"node-{number % self.nodes.count:05d}" if runs else ""
            yield worlds.pod(f"{prefix}-{job}", index, f"{cpu}m", f"{memory}Mi", where)


def _pods(jobs: Jobs) -> Iterator[tuple[int, int, int, int]]:
    """Go through the pods of jobs: number of the job, of the pod in it, millicores, MiB."""
    for job in range(jobs.jobs):
        for index in range(jobs.size):
            yield job, index, *jobs.shapes.at(job, job * jobs.size + index)


def read(path: Path) -> Workload:
    """Read a workload; what is wrong with the file is said with its name."""
    try:
        return msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Workload)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise SystemExit(f"{path}: {error}") from None


def decided(workload: Workload) -> tuple[float, int]:
    """Decide a workload once; returns seconds of processor time and pods bound."""
    bench = workload.stage()
    start = time.process_time()
    bench.decide()
    return time.process_time() - start, len(bench.world.binds)


def figure(workload: Workload) -> Figure:
    """Measure a workload, the best of some runs, beside the plain scan."""
    requests = workload.requests()
    runs = [decided(workload) for _ in range(TIMES)]
    spent, bound = min(runs)
    if any(each != bound for _, each in runs):
        raise RuntimeError(f"{workload.name}: {[each for _, each in runs]} pods were bound in equal runs")
    rate = bound / spent
    offered = workload.nodes
    sizes = (offered.cpu * 1000, offered.memory * GI, offered.pods)
    some = requests[:: max(1, len(requests) // 1000)]
    start = time.process_time()
    _, placed = floor.scan_per_pod(offered.count, sizes, some)
    base = time.process_time() - start
    target = f">= {workload.at_least:.0f}" if workload.at_least else ""
    note = f"{bound} of {len(requests)} pods bound, {spent / max(1, bound) * 1e6:.0f} µs of processor time each"
    return Figure(workload.name, rate, "pods/s", target, rate >= workload.at_least, placed / base, "pods/s", note=note)


def figures() -> list[Figure]:
    """Measure every workload of the folder."""
    return [figure(read(path)) for path in sorted(FOLDER.glob("*.yaml"))]


def main() -> None:
    """Run the files that are named, or all."""
    from bench.__main__ import line  # noqa: PLC0415  the table, which runs everything, names this module too

    interpreter.tune()  # as the running scheduler does
    for path in map(Path, sys.argv[1:] or sorted(map(str, FOLDER.glob("*.yaml")))):
        print(line(figure(read(path))), flush=True)


if __name__ == "__main__":
    main()
