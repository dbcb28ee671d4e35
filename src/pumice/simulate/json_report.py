"""The report as JSON: every figure, and a record per job. Times are seconds since the trace's zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import duration
from pumice.simulate import report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.cases import Case
    from pumice.simulate.report import Judged
    from pumice.simulate.results import JobResult


def encode(policies: Sequence[Judged], about: dict[str, Any]) -> bytes:
    """Write the report; the same results give the same bytes, but for the simulator's own time."""
    document = {
        **about,
        "policies": [
            {
                "name": each.name,
                "figures": each.figures,
                **({"spread": _spread(each)} if each.repeated else {}),
                **({"failures": each.case.result.failures} if each.case.result.failures else {}),
                "jobs": [_job(each.case, job) for job in each.case.result.jobs],
            }
            for each in policies
        ],
    }
    if len(policies) > 1:
        found = report.differences(policies[0].case, policies[1].case)
        document["differences"] = [
            {
                "job": each.job,
                "starts": [_seconds(start) for start in each.starts],
                "slower": each.slower,
                "reason": each.reason,
            }
            for each in found
        ]
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _spread(policy: Judged) -> dict[str, list[float]]:
    return {name: list(found) for name in report.names(policy.figures) if (found := policy.spread(name)) is not None}


def _job(case: Case, result: JobResult) -> dict[str, Any]:
    job = case.trace.jobs[result.job]
    runs = result.runs
    return {
        "name": job.key,
        "queue": job.queue,
        "submit": _seconds(result.submit),
        "runTime": _seconds(job.run_time),
        "estimate": _seconds(job.estimate),
        "start": _seconds(result.start),
        "end": _seconds(result.end),
        "starts": sorted({run.start / duration.SECOND for run in runs}),
        "ends": sorted({run.end / duration.SECOND for run in runs if run.end is not None}),
        "nodes": _nodes(result),
        "evictions": result.evictions,
        "forecasts": [
            {"told": _seconds(each.told), "expected": _seconds(each.expected), "reason": each.reason}
            for each in result.forecasts
        ],
        "reason": result.reason,
    }


def _nodes(result: JobResult) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in result.runs:
        found[run.node] = found.get(run.node, 0) + 1
    return dict(sorted(found.items()))


def _seconds(value: int | None) -> float | None:
    return None if value is None else value / duration.SECOND
