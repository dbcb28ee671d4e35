"""The Standard Workload Format: a header of `; Key: value` lines, then 18 numbers per job, -1 where one is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pumice.api import core, duration, names
from pumice.simulate import trace_files
from pumice.simulate.trace import Given, Members, Trace, TraceError, TraceJob, node, ordered, pod_spec

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELDS: Final = 18
LARGEST: Final = 1_000_000
"""Processors of a machine: each may become a node."""
PODS: Final = 1_000_000
"""Pods that a node takes: the trace knows no such limit."""
_NAMES: Final = ("number", "submit", "wait", "run time", "processors", "cpu time", "memory", "processors requested")
_REST: Final = ("time requested", "memory requested", "status", "user", "group", "executable", "queue", "partition")
_COLUMNS: Final = (*_NAMES, *_REST, "preceding job", "think time")

Form = Literal["pod", "gang"]


def read(file: str, form: Form = "pod") -> Trace:
    """Read a trace: each job as one pod of its size on one node, or as a gang of members of one cpu on nodes of one cpu."""
    header: dict[str, tuple[int, str]] = {}
    rows: list[tuple[int, list[float]]] = []
    for line, text in trace_files.lines(file):
        if text.lstrip().startswith(";"):
            key, colon, value = text.lstrip(" ;\t").partition(":")
            if colon:
                header.setdefault(key.strip(), (line, value.strip()))
            continue
        rows.append((line, _numbers(file, line, text)))
    specs: dict[int, core.PodSpec] = {}
    jobs: list[TraceJob] = []
    estimated = skipped = 0
    for line, row in rows:
        run, size = row[3], int(max(row[4], row[7]))
        if run <= 0 or size <= 0:
            skipped += 1
            continue
        if size > LARGEST:
            raise TraceError(file, line, "field 5 (processors)", f"{size:,} is beyond the {LARGEST:,} of a machine")
        estimated += row[8] > 0
        jobs.append(_job(line, row, size, form, specs))
    processors = _processors(file, header, (job_size(job) for job in jobs))
    notes = []
    if estimated < len(jobs):
        notes.append(
            f"{len(jobs) - estimated:,} of {len(jobs):,} jobs have no estimate (field 9): their run time is taken"
        )
    if skipped:
        notes.append(f"{skipped:,} jobs without run time or size are skipped")
    return Trace(source=file, jobs=ordered(jobs), cluster=machine(processors, form), skipped=skipped, notes=notes)


def machine(processors: int, form: Form) -> list[Given]:
    """Return the nodes of a machine."""
    if form == "pod":
        return [node("machine", {"cpu": str(processors), "pods": PODS})]
    width = len(str(processors - 1))
    return [node(f"node-{index:0{width}d}", {"cpu": "1", "pods": PODS}) for index in range(processors)]


def job_size(job: TraceJob) -> int:
    """Return how many processors a job of this format asks for."""
    members = job.members[0]
    return members.count * int(members.spec.containers[0].resources.requests["cpu"])


def _numbers(file: str, line: int, text: str) -> list[float]:
    parts = text.split()
    if len(parts) < FIELDS:
        raise TraceError(file, line, "", f"has {len(parts)} fields, and a job has {FIELDS}")
    found = []
    for index, part in enumerate(parts[:FIELDS]):
        try:
            number = float(part)
        except ValueError:
            number = float("nan")
        if not abs(number) < 1e15:
            raise TraceError(file, line, f"field {index + 1} ({_COLUMNS[index]})", f"{part[:40]!r} is no number")
        found.append(number)
    if found[1] < 0:
        raise TraceError(file, line, "field 2 (submit)", f"{parts[1]} is negative")
    return found


def _job(line: int, row: list[float], size: int, form: Form, specs: dict[int, core.PodSpec]) -> TraceJob:
    cpus = 1 if form == "gang" else size
    spec = specs.get(cpus)
    if spec is None:
        spec = specs[cpus] = pod_spec({"cpu": str(cpus)}, scheduler=names.SCHEDULER)
    run = _microseconds(row[3])
    number = int(row[0])
    return TraceJob(
        number=number,
        name=f"job-{number}",
        submit=_microseconds(row[1]),
        run_time=run,
        members=(Members(count=size if form == "gang" else 1, spec=spec, run_time=run),),
        min_member=size if form == "gang" else 1,
        queue=f"queue-{int(row[14])}" if row[14] >= 0 else names.DEFAULT_QUEUE,
        user=f"user-{int(row[11])}" if row[11] >= 0 else "",
        estimate=_microseconds(row[8]) if row[8] > 0 else run,
        line=line,
    )


def _microseconds(seconds: float) -> int:
    return round(seconds * duration.SECOND)


def _processors(file: str, header: dict[str, tuple[int, str]], sizes: Iterable[int]) -> int:
    """Return the size of the machine, which the header states."""
    for key in ("MaxProcs", "MaxNodes"):
        if key not in header:
            continue
        line, text = header[key]
        first = text.split()[0] if text.split() else ""
        if first == "-1":
            continue
        if not first.isdecimal() or not 0 < int(first[:12]) <= LARGEST:
            raise TraceError(file, line, key, f"{text[:40]!r} is no number of processors between 1 and {LARGEST:,}")
        return int(first)
    largest = max(sizes, default=0)
    raise TraceError(
        file, 0, "MaxProcs", f"the header states neither MaxProcs nor MaxNodes; the widest job asks for {largest}"
    )
