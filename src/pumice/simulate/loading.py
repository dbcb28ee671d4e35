"""From settings to what runs: the trace is read, changed as asked for, and put beside its cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pumice.api import documents
from pumice.simulate import cluster_files, job_files, openb, preparing, recorded, reshaping, stay, swf, trace_files
from pumice.simulate.trace import TraceError

if TYPE_CHECKING:
    from pumice.simulate.settings import Format, Settings
    from pumice.simulate.trace import Given, Trace


class Loaded(msgspec.Struct):
    """A trace and the cluster it runs on."""

    trace: Trace
    cluster: list[Given]


def load(settings: Settings, repetition: int = 0) -> Loaded:
    """Read a trace and its cluster; a repetition after the first moves every submit a little."""
    trace = read(settings)
    given = cluster_files.read(settings.cluster) if settings.cluster else trace.cluster
    if settings.first:
        trace.jobs = trace.jobs[: settings.first]
    reshaping.estimate(trace, settings.estimates)
    if settings.typical == "trace":
        trace.history = [each.spec for job in trace.jobs for each in job.members for _ in range(each.count)]
    cluster = preparing.cluster(trace, given)
    if settings.stay:
        return Loaded(*stay.prepare(trace, cluster, settings))
    if settings.load:
        reshaping.stretch(trace, cluster, settings.load)
    if repetition:
        reshaping.shake(trace, settings.seed, repetition)
    return Loaded(trace, cluster)


def read(settings: Settings) -> Trace:
    """Read a trace in the format it is said, or seems, to have."""
    match settings.format or guessed(settings.trace):
        case "swf":
            return swf.read(settings.trace, settings.form)
        case "jobs":
            return job_files.read(settings.trace)
        case "openb":
            return openb.read(settings.trace, stay=settings.stay)
        case _:
            return recorded.read(settings.trace)


def guessed(file: str) -> Format:
    """Tell the format of a trace by its name, or by the first line of a CSV file."""
    if Path(file).is_dir():
        return "recording"
    name = trace_files.bare_name(file)
    if name.startswith("recording-") and name.endswith(".jsonl"):
        return "recording"
    match Path(name).suffix:
        case ".swf":
            return "swf"
        case ".jsonl":
            return "jobs"
        case ".csv":
            first = next(trace_files.lines(file), (0, ""))[1]
            return "openb" if "cpu_milli" in first.split(",") else "jobs"
    known = {".swf": "swf", ".jsonl": "jobs", ".csv": "jobs or openb"}
    near = documents.nearest(Path(name).suffix, known)
    hint = f"did you mean {near}?" if near else "say it with --format swf, openb, jobs or recording"
    raise TraceError(file, 0, "", f"the name does not tell the format of the trace; {hint}")
