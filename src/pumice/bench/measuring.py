"""Run a workload and take its figures.

Times are of the processor, which other work on the machine disturbs least; the cycle is told by the wall as well. One run counts, and warms up; the others are timed,
and the best of them is the figure. A workload with `runs: 0` is too large to be run twice: its one run counts and is timed.
"""

from __future__ import annotations

import gc
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.bench import floor
from pumice.bench.counting import Counters
from pumice.bench.staging import Live, Stage
from pumice.server.threads import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.bench.workloads import Workload

GI = 2**30
IDLE_CYCLES = 20
LONG_MS = 1_000
"""Cycles with one pod that take longer together are not repeated."""
SCANNED = 1_000
"""Pods that the plain scan places: enough to know its rate."""


class Memory(msgspec.Struct):
    """What the process holds, in bytes: for each node and each running pod with what is known of its job, and at its largest."""

    per_node: float = 0
    per_pod: float = 0
    held: int = 0
    peak: int = 0


class Measured(msgspec.Struct):
    """One run: processor seconds, and milliseconds of cycles by the wall and by the processor."""

    placed: int = 0
    deciding: float = 0
    start: float = 0
    listed: int = 0
    decode_us: float = 0
    ingest: list[float] = []
    cycles: list[float] = []
    walls: list[float] = []
    idle: float = 0
    one_pod: float = 0
    memory: Memory = msgspec.field(default_factory=Memory)
    counters: Counters = msgspec.field(default_factory=Counters)


class Result(msgspec.Struct):
    """The figures of a workload."""

    name: str
    nodes: int
    running: int
    arriving: int
    placed: int
    pods_per_second: float
    cpu_us_per_pod: float
    floor_pods_per_second: float
    cycle_ms_p50: float
    cycle_ms_p99: float
    wall_ms_p50: float
    wall_ms_p99: float
    ingest_ms_p50: float
    idle_ms: float
    one_pod_ms: float
    start_seconds: float
    listed: int
    decode_us_per_object: float
    memory: Memory
    counters: Counters
    missed: list[str]


def run(
    workload: Workload,
    *,
    runs: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
    plain: bool = False,
) -> Result:
    """Measure a workload, with shortcuts or without."""
    interpreter.tune()  # as the running scheduler does
    timed = workload.runs if runs is None else runs
    counted = _run(workload, tell, counting=True, plain=plain)
    done = [counted]
    for number in range(timed):
        tell(f"run {number + 1} of {timed}")
        done.append(_run(workload, tell, counting=False, plain=plain))
    if any(each.placed != counted.placed for each in done):
        raise RuntimeError(f"{workload.name}: {[each.placed for each in done]} pods were placed in equal runs")
    return _result(workload, done[1:] or done, counted)


def _run(workload: Workload, tell: Callable[[str], None], *, counting: bool, plain: bool) -> Measured:
    gc.unfreeze()  # what the last run froze is rubbish by now
    gc.collect()
    found = Measured()
    stage = Stage(workload, counting=counting, plain=plain, tell=tell)
    _furnish(stage, found)
    before, changed = stage.cache.cluster.nodes.position, stage.cache.cluster.changed
    portions = workload.portions if workload.arrivals else 0
    for number in range(max(portions, workload.churn.cycles if workload.churn is not None else 0)):
        if number < portions:
            stage.feed(stage.arriving(number))
        _churn(stage, number)
        _cycle(stage, found)
        tell(f"cycle {number + 1}: {found.cycles[-1]:.0f} ms, {found.placed:,} pods placed")
    found.counters = msgspec.structs.replace(
        stage.counters,
        rows_touched=stage.cache.cluster.nodes.position - before,
        changes=stage.cache.cluster.changed - changed,
    )
    _rest(stage, found)
    found.memory.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


def _furnish(stage: Stage, found: Measured) -> None:
    """Put nodes and running pods on the stage, as a list at the start does, and see what they weigh."""
    bare = _resident()
    nodes, pods = stage.workload.nodes.count, sum(jobs.pods for jobs in stage.workload.existing)
    found.listed = stage.feed(stage.furnish())
    found.start = stage.apply()
    furnished = _resident()
    found.memory.per_node = (furnished - bare) / nodes
    found.listed += stage.feed(stage.settled())
    found.start += stage.apply()
    found.start += stage.decoding
    found.decode_us = stage.decoding / found.listed * 1e6
    found.memory.held = _resident()
    if pods:
        found.memory.per_pod = (found.memory.held - furnished) / pods
    stage.scheduler.cycle()
    interpreter.settle()  # as the running scheduler does after its first cycle


def _churn(stage: Stage, number: int) -> None:
    """Let jobs end and come, and nodes and pods of others come and go."""
    stage.feed(stage.confirming())
    churn, offered = stage.workload.churn, stage.workload.nodes.count
    if churn is None or number >= churn.cycles:
        return
    total = sum(jobs.jobs for jobs in stage.workload.existing)
    stage.feed(stage.ending(round(total * churn.percent / 100)))
    for index in range(churn.nodes):
        kind, _, manifest = stage.node(offered + index)
        stage.feed([(kind, "DELETED" if number % 2 else "ADDED", manifest)])
    if churn.pods and stage.workload.arrivals:
        jobs = stage.workload.arrivals[0]
        for index in range(churn.pods):
            stage.feed(stage.arrive(Live(f"churn-{number}-{index}", jobs, index)))


def _cycle(stage: Stage, found: Measured) -> None:
    """Take in what was fed, run one cycle, and note both."""
    engine = stage.scheduler.engine
    stage.time += 1_000_000
    found.ingest.append(stage.apply() * 1000)
    before, deciding = stage.world.placed + len(stage.cache.cluster.nominated), engine.spent
    wall, start = time.perf_counter(), time.process_time()
    stage.scheduler.cycle()
    found.cycles.append((time.process_time() - start) * 1000)
    found.walls.append((time.perf_counter() - wall) * 1000)
    if stage.scheduler.failures:
        raise stage.scheduler.failures[0]
    found.deciding += engine.spent - deciding
    found.placed += stage.world.placed + len(stage.cache.cluster.nominated) - before


def _rest(stage: Stage, found: Measured) -> None:
    """Confirm what was bound, then measure cycles in which nothing has changed, and one in which a pod has come."""
    stage.feed(stage.confirming())
    for _ in range(3):
        stage.time += 1_000_000
        stage.scheduler.cycle()
    found.idle = min(_timed(stage) for _ in range(IDLE_CYCLES))
    jobs = (*stage.workload.arrivals, *stage.workload.existing)[0]
    lone = msgspec.structs.replace(jobs, jobs=1, size=1, minimum=1, extra=0)
    lasted = []
    for number in range(IDLE_CYCLES):
        stage.feed(stage.arrive(Live(f"lone-{number}", lone, 0)))
        lasted.append(_timed(stage))
        stage.feed(stage.confirming())
        stage.scheduler.cycle()
        if sum(lasted) > LONG_MS:
            break
    found.one_pod = float(np.median(lasted))


def _timed(stage: Stage) -> float:
    start = time.process_time()
    stage.scheduler.cycle()
    return (time.process_time() - start) * 1000


def _resident() -> int:
    """Return the memory of the process, in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def _scan(workload: Workload, requests: list[tuple[int, int, int]]) -> float:
    """Return the pods per second of the plain scan."""
    offered = workload.nodes
    sizes = (offered.cpu * 1000, offered.memory * GI, offered.pods)
    wanted = SCANNED if offered.count <= 10_000 else SCANNED // 10
    some = requests[:: max(1, len(requests) // wanted)][:wanted]
    start = time.process_time()
    _, placed = floor.scan_per_pod(offered.count, sizes, some)
    return placed / max(1e-9, time.process_time() - start)


def _result(workload: Workload, timed: list[Measured], counted: Measured) -> Result:
    best = min(timed, key=lambda each: each.deciding)
    cycles = [value for each in timed for value in each.cycles]
    walls = [value for each in timed for value in each.walls]
    ingest = [value for each in timed for value in each.ingest]
    requests = workload.requests() or Stage(workload).requests()
    arriving = sum(jobs.pods for jobs in workload.arrivals)
    result = Result(
        name=workload.name,
        nodes=workload.nodes.count,
        running=sum(jobs.pods for jobs in workload.existing),
        arriving=arriving,
        placed=best.placed,
        pods_per_second=best.placed / best.deciding if best.placed else 0.0,
        cpu_us_per_pod=best.deciding / max(1, best.placed) * 1e6,
        floor_pods_per_second=_scan(workload, requests),
        cycle_ms_p50=float(np.percentile(cycles, 50)),
        cycle_ms_p99=float(np.percentile(cycles, 99)),
        wall_ms_p50=float(np.percentile(walls, 50)),
        wall_ms_p99=float(np.percentile(walls, 99)),
        ingest_ms_p50=float(np.percentile(ingest, 50)),
        idle_ms=min(each.idle for each in timed),
        one_pod_ms=min(each.one_pod for each in timed),
        start_seconds=counted.start,
        listed=counted.listed,
        decode_us_per_object=counted.decode_us,
        memory=counted.memory,
        counters=counted.counters,
        missed=[],
    )
    result.missed = _missed(workload, result)
    return result


def _missed(workload: Workload, result: Result) -> list[str]:
    """Say which expectations were missed, with both numbers."""
    expect = workload.expect
    at_most = {
        "cycle ms (p50)": (result.cycle_ms_p50, expect.cycle_ms),
        "idle ms": (result.idle_ms, expect.idle_ms),
        "GB": (result.memory.peak / 1e9, expect.gigabytes),
        "KB per pod": (result.memory.per_pod / 1e3, expect.kilobytes_per_pod),
        "KB per node": (result.memory.per_node / 1e3, expect.kilobytes_per_node),
    }
    found = [
        f"{what}: {value:,.1f}, expected at most {limit:,g}"
        for what, (value, limit) in at_most.items()
        if limit and value > limit
    ]
    if expect.pods_per_second and result.pods_per_second < expect.pods_per_second:
        found.insert(0, f"pods/s: {result.pods_per_second:,.0f}, expected at least {expect.pods_per_second:,.0f}")
    return found
