"""What `pumice simulate` costs, in processor time: a machine of 256 processors at its limit, job by pod and by gang, and a day of a large cluster.

The floor is a simulator that only counts processors: what the same schedule costs without nodes, queues, plugins and reasons.
"""

from __future__ import annotations

import heapq
import random
import time
from typing import TYPE_CHECKING

from bench import cases
from pumice.api import core, duration, names
from pumice.framework import configuration, registry
from pumice.simulate import preparing, swf
from pumice.simulate.engine import Simulation
from pumice.simulate.trace import Members, Trace, TraceJob, node, pod_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.simulate.swf import Form

JOBS, PROCESSORS = 10_000, 256
DAY_NODES, DAY_PODS, DAY_CPUS = 5_000, 100_000, 16
GREEDY = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
Rigid = tuple[int, int, int]
"""Submit and run time in seconds, and the processors between them: (submit, size, run)."""


def machine_jobs(count: int = JOBS) -> list[Rigid]:
    """Draw jobs for the machine, whose load is a little above one: most are narrow and short, few wide and long."""
    chance = random.Random(1)  # noqa: S311  drawn the same each time
    found: list[Rigid] = []
    at = 0
    for _ in range(count):
        at += round(chance.expovariate(1 / 830))
        size = 1 if chance.random() < 0.25 else 2 ** chance.randint(1, 8)
        found.append((at, size, max(1, round(chance.lognormvariate(6.0, 2.0)))))
    return found


def day_jobs(pods: int = DAY_PODS) -> list[Rigid]:
    """Draw the jobs of a day: gangs of one to nineteen members of 4 cpu, for minutes to hours."""
    chance = random.Random(2)  # noqa: S311  as above
    sizes: list[int] = []
    while sum(sizes) < pods:
        sizes.append(min(chance.randint(1, 19), pods - sum(sizes)))
    return sorted((chance.randrange(86_400), size, chance.randint(300, 14_400)) for size in sizes)


def trace_of(jobs: Sequence[Rigid], cpus: int, form: Form) -> Trace:
    """Make a trace of rigid jobs, each a pod of its size or a gang of as many."""
    specs: dict[int, core.PodSpec] = {}
    made = []
    for number, (submit, size, run) in enumerate(jobs, 1):
        count, asked = (size, cpus) if form == "gang" else (1, size)
        spec = specs.setdefault(asked, pod_spec({"cpu": str(asked)}, scheduler=names.SCHEDULER))
        long = run * duration.SECOND
        made.append(
            TraceJob(
                number=number,
                name=f"job-{number}",
                submit=submit * duration.SECOND,
                members=(Members(count=count, spec=spec, run_time=long),),
                min_member=count,
                run_time=long,
                estimate=long,
                queue=names.DEFAULT_QUEUE,
                line=number,
            )
        )
    return Trace(source="drawn", jobs=made)


def counted(jobs: Sequence[Rigid], processors: int) -> float:
    """Time a simulator that only counts: whatever fits starts, in order; returns processor seconds."""
    began = time.process_time()
    left, arrived = processors, 0
    waiting: list[int] = []
    ends: list[tuple[int, int]] = []
    while arrived < len(jobs) or ends:
        now = min([jobs[arrived][0]] if arrived < len(jobs) else [ends[0][0]], default=0)
        now = min(now, ends[0][0]) if ends else now
        while ends and ends[0][0] == now:
            left += heapq.heappop(ends)[1]
        while arrived < len(jobs) and jobs[arrived][0] == now:
            waiting.append(arrived)
            arrived += 1
        for index in list(waiting):
            _, size, run = jobs[index]
            if size <= left:
                left -= size
                waiting.remove(index)
                heapq.heappush(ends, (now + run, size))
    return time.process_time() - began


def simulated(trace: Trace) -> tuple[float, int]:
    """Run a trace; returns processor seconds and how many jobs ended."""
    cluster = preparing.cluster(trace, trace.cluster)
    result = Simulation(trace, cluster, configuration.load(GREEDY, registry.catalog())).run()
    return result.seconds, sum(each.end is not None for each in result.jobs)


def machine(form: Form, limit: int) -> cases.Figure:
    """Measure a machine of 256 processors."""
    jobs = machine_jobs()
    trace = trace_of(jobs, 1, form)
    trace.cluster = swf.machine(PROCESSORS, form)
    return _figure(
        f"simulate: {len(jobs):,} jobs as {form}s on {PROCESSORS} processors", trace, jobs, PROCESSORS, limit
    )


def day() -> cases.Figure:
    """Measure a day of a large cluster."""
    jobs = day_jobs()
    trace = trace_of(jobs, 4, "gang")
    trace.cluster = [node(f"node-{index:04d}", {"cpu": str(DAY_CPUS), "pods": 110}) for index in range(DAY_NODES)]
    name = f"simulate: a day of {DAY_NODES:,} nodes and {DAY_PODS:,} pods in {len(jobs):,} gangs"
    return _figure(name, trace, jobs, DAY_NODES * DAY_CPUS // 4, 120)


def _figure(name: str, trace: Trace, jobs: Sequence[Rigid], processors: int, limit: int) -> cases.Figure:
    floor = counted(jobs, processors)
    taken, done = simulated(trace)
    holds = taken <= limit and done == len(jobs)
    note = f"{done:,} ended"
    return cases.Figure(name, taken, "s", f"<= {limit}", holds, floor, "s", note)


def everything() -> list[Callable[[], cases.Figure]]:
    """Return the measurements."""
    return [day, pods, gangs]


def pods() -> cases.Figure:
    """Measure each job as one pod."""
    return machine("pod", 60)


def gangs() -> cases.Figure:
    """Measure each job as a gang."""
    return machine("gang", 600)
