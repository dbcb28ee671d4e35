"""Changes of a trace: other estimates, another load, arrivals a little earlier or later, a queue alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from pumice.api import core, duration, kinds
from pumice.model import requests, resources
from pumice.simulate.trace import TraceError, ordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.settings import Estimates
    from pumice.simulate.trace import Given, Trace, TraceJob

MODAL: Final = tuple(each * duration.MINUTE for each in (10, 30, 60, 2 * 60, 4 * 60, 8 * 60, 24 * 60, 48 * 60))
"""Run times as people estimate them."""
SHAKEN: Final = 60 * duration.SECOND


def estimate(trace: Trace, how: Estimates) -> None:
    """Give jobs other estimates than those of the trace."""
    if how != "trace":
        trace.jobs = [structs.replace(job, estimate=_estimate(job, how)) for job in trace.jobs]


def _estimate(job: TraceJob, how: Estimates) -> int | None:
    if how == "none" or job.run_time is None:
        return None
    if how == "exact":
        return job.run_time
    if job.number % 3 == 0:
        return MODAL[-1]
    return next((each for each in MODAL if each >= job.run_time), MODAL[-1])


def shake(trace: Trace, seed: int, repetition: int) -> None:
    """Move every submit by up to a minute."""
    moved = np.random.default_rng((seed, repetition)).integers(0, SHAKEN, len(trace.jobs), endpoint=True)
    trace.jobs = ordered(
        structs.replace(job, submit=job.submit + int(by)) for job, by in zip(trace.jobs, moved, strict=True)
    )


def stretch(trace: Trace, cluster: Sequence[Given], load: float) -> None:
    """Stretch arrivals so that what is asked for is a certain part of what the cluster offers while jobs arrive."""
    first, last = trace.jobs[0].submit if trace.jobs else 0, trace.jobs[-1].submit if trace.jobs else 0
    present = offered_load(trace, cluster)
    if not present:
        raise TraceError(trace.source, 0, "", "--load needs jobs with run times that arrive at more than one instant")
    del last
    factor = present / load
    trace.jobs = [structs.replace(job, submit=first + round((job.submit - first) * factor)) for job in trace.jobs]


def offered_load(trace: Trace, cluster: Sequence[Given]) -> float:
    """Return the sum of size times run time over capacity times the span of arrivals, of the resource that is asked for most; 0 if there is none."""
    span = trace.jobs[-1].submit - trace.jobs[0].submit if trace.jobs else 0
    offers = capacity(cluster)
    asked: dict[str, int] = {}
    known: dict[int, resources.Amounts] = {}
    for job in trace.jobs:
        for members in job.members:
            if members.run_time is None:
                continue
            amounts = known.get(id(members.spec))
            if amounts is None:
                amounts = known[id(members.spec)] = requests.of_pod(core.Pod(spec=members.spec))
            for name, units in amounts.items():
                if name != "pods":
                    asked[name] = asked.get(name, 0) + units * members.count * members.run_time
    shares = [total / (offers[name] * span) for name, total in asked.items() if span and offers.get(name)]
    return max(shares, default=0.0)


def capacity(cluster: Sequence[Given]) -> resources.Amounts:
    """Return what all nodes offer together, in stored units."""
    total: resources.Amounts = {}
    for kind, found in cluster:
        if kind is kinds.NODE and isinstance(found, core.Node):
            total = resources.add(total, resources.parse(found.status.allocatable, "allocatable"))
    return total
