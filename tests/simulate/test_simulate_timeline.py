"""Planned starts in simulation: the worked cases of backfill, and how far forecasts were off."""

from __future__ import annotations

import random

import counting
import pytest
from msgspec import structs
from simulating import SECOND, Rigid, simulated, starts, trace_of

from pumice.simulate import cases, judging
from pumice.simulate.loading import Loaded

PLANNED = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: timeline
    arguments: {{timeline.policy: {policy}, timeline.window: 0, timeline.maxJobs: 0}}
"""
FIRST = [Rigid(0, 6, 100), Rigid(0, 8, 50), Rigid(0, 4, 80)]
LONG = [*FIRST, Rigid(0, 2, 500), Rigid(0, 2, 500)]
STREAM = [Rigid(0, 5, 60), Rigid(0, 10, 30), *(Rigid(at, 5, 60) for at in range(30, 240, 30))]
CROSSED = [Rigid(0, 6, 100), Rigid(0, 6, 100), Rigid(0, 10, 50), Rigid(0, 4, 250)]


@pytest.mark.parametrize("form", ["pod", "gang"])
@pytest.mark.parametrize(
    ("policy", "jobs", "wanted"),
    [
        ("easy", FIRST, [0, 100, 0]),
        ("easy", LONG, [0, 100, 0, 80, 150]),
        ("easy", STREAM, [0, 60, 90, 90, 150, 150, 210, 210, 270]),
        ("easy", CROSSED, [0, 100, 250, 0]),
        ("conservative", CROSSED, [0, 100, 200, 250]),
        ("off", STREAM[:2], [0, 60]),
    ],
)
def test_starts_are_those_worked_out(form, policy, jobs, wanted):
    assert starts(simulated(trace_of(jobs, form), PLANNED.format(policy=policy))) == wanted


def test_a_job_without_an_estimate_delays_nobody():
    trace = trace_of(FIRST)
    trace.jobs = [*trace.jobs[:2], structs.replace(trace.jobs[2], estimate=None)]
    assert starts(simulated(trace, PLANNED.format(policy="easy"))) == [0, 100, 150]


def test_forecasts_are_held_against_starts():
    trace = trace_of([Rigid(0, 10, 130), Rigid(0, 10, 20)])
    trace.jobs = [structs.replace(trace.jobs[0], estimate=100 * SECOND), trace.jobs[1]]
    result = simulated(trace, PLANNED.format(policy="easy"))
    assert starts(result) == [0, 130]
    told = [each.expected // SECOND for each in result.jobs[1].forecasts]
    assert told[0] == 100
    assert told[1] == 160
    figures = judging.judge(cases.Case(Loaded(trace, trace.cluster), result))
    assert figures["forecast"] == {"mean": 30.0, "absolute": 30.0, "p95": 30.0, "late": 1.0, "without": 0.5}


def crowded(seed, longest):
    """Make jobs that ask for more than the machine has, so that dozens wait; some say that they run longer than they do."""
    chance = random.Random(seed)  # noqa: S311
    made, now = [], 0
    for _ in range(90):
        now += chance.choice((0, 2, 5, 9))
        run = chance.randrange(1, 90)
        size = chance.choice((1, 1, 2, 3, 5, 8, 13, 20, 32))
        made.append(counting.Job(now, size, run, run * chance.randrange(1, longest + 1)))
    return made


@pytest.mark.parametrize("longest", [1, 3])
@pytest.mark.parametrize("policy", ["easy", "conservative"])
@pytest.mark.parametrize("seed", range(2))
def test_where_dozens_wait_all_start_as_counted(seed, policy, longest):
    jobs = crowded(seed, longest)
    trace = trace_of([Rigid(job.submit, job.size, job.run) for job in jobs], processors=32)
    trace.jobs = [
        structs.replace(each, estimate=job.estimate * SECOND) for each, job in zip(trace.jobs, jobs, strict=True)
    ]
    machine = counting.Easy if policy == "easy" else counting.Conservative
    counted = machine(jobs, 32).play()
    assert starts(simulated(trace, PLANNED.format(policy=policy))) == counted
    assert sum(start - job.submit > 100 for start, job in zip(counted, jobs, strict=True)) > 30
