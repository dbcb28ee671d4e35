"""What tests of the simulator share: small traces, policies, and schedulers that are written from the rules alone."""

from __future__ import annotations

import heapq
from typing import NamedTuple

from pumice.api import names
from pumice.framework import configuration, registry
from pumice.simulate import preparing, swf
from pumice.simulate.engine import Simulation
from pumice.simulate.trace import Members, Trace, TraceJob, ordered, pod_spec

SECOND = 1_000_000
GREEDY = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
"""
EVICTING = """
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
"""


class Rigid(NamedTuple):
    """A job of so many processors for so many seconds."""

    submit: int
    size: int
    run: int


def trace_of(jobs, form="pod", processors=10):
    """Make a trace of rigid jobs on one machine."""
    made = []
    for number, job in enumerate(jobs, 1):
        count, cpus = (job.size, 1) if form == "gang" else (1, job.size)
        spec = pod_spec({"cpu": str(cpus)}, scheduler=names.SCHEDULER)
        members = (Members(count=count, spec=spec, run_time=job.run * SECOND),)
        made.append(
            TraceJob(
                number=number,
                name=f"job-{number}",
                submit=job.submit * SECOND,
                members=members,
                min_member=count,
                run_time=job.run * SECOND,
                estimate=job.run * SECOND,
                queue="default",
                line=number,
            )
        )
    return Trace(source="made", jobs=ordered(made), cluster=swf.machine(processors, form))


def simulated(trace, config=GREEDY, **more):
    """Run a trace, and return its result."""
    cluster = preparing.cluster(trace, more.pop("cluster", trace.cluster))
    loaded = configuration.load(config, registry.catalog())
    result = Simulation(trace, cluster, loaded, policy="p", **more).run()
    assert result.failures == []
    return result


def starts(result):
    """Return when each job started, in seconds."""
    return [None if each.start is None else each.start // SECOND for each in result.jobs]


def greedy_starts(jobs, processors):
    """Count processors: whatever fits starts, in the order of arrival; nothing is held."""
    left, waiting, ends, found = processors, [], [], {}
    order = sorted(range(len(jobs)), key=lambda index: jobs[index].submit)
    moments = sorted({job.submit for job in jobs})
    while moments or ends:
        now = min([*moments[:1], *(end for end, _ in ends[:1])])
        while ends and ends[0][0] == now:
            left += heapq.heappop(ends)[1]
        if moments and moments[0] == now:
            moments.pop(0)
            waiting += [index for index in order if jobs[index].submit == now]
        for index in list(waiting):
            if jobs[index].size <= left:
                waiting.remove(index)
                left -= jobs[index].size
                found[index] = now
                heapq.heappush(ends, (now + jobs[index].run, jobs[index].size))
    return [found.get(index) for index in range(len(jobs))]
