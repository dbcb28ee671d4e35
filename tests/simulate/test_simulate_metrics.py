"""The figures, by tables with the worked cases and by slow versions that say the definitions once more."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulating import SECOND, Rigid, simulated, trace_of

from drawing import drawn
from pumice.simulate import cases, claims, judging, metrics
from pumice.simulate.loading import Loaded
from pumice.simulate.metrics import Interval
from pumice.simulate.results import JobResult, PodRun, Result

NUMBERS = st.lists(st.integers(0, 50), min_size=1, max_size=12)
INTERVALS = st.lists(st.builds(Interval, st.integers(0, 5), st.integers(0, 30), st.integers(0, 30)), max_size=8)


def case_of(jobs, begun, processors=10, **more):
    """Judge starts that somebody else worked out."""
    trace = trace_of(jobs, processors=processors)
    results = [
        JobResult(
            job=index,
            submit=job.submit * SECOND,
            start=start * SECOND,
            end=(start + job.run) * SECOND,
            runs=[PodRun(0, "machine", start * SECOND, (start + job.run) * SECOND)],
        )
        for index, (job, start) in enumerate(zip(jobs, begun, strict=True))
    ]
    stopped = max(each.end for each in results)
    return cases.Case(Loaded(trace, trace.cluster), Result(policy="p", jobs=results, stopped=stopped, **more))


def test_strict_order_without_backfill_is_judged_as_worked_out():
    figures = judging.judge(case_of([Rigid(0, 6, 100), Rigid(0, 8, 50), Rigid(0, 4, 80)], [0, 100, 150]))
    assert figures["wait"]["mean"] == pytest.approx(250 / 3)
    assert figures["makespan"] == 230
    assert figures["utilisation"] == {"cpu": pytest.approx(1320 / 2300)}
    assert figures["jobs"] == {"total": 3, "done": 3, "unfinished": 0, "neverFitting": 0, "skipped": 0}


def test_slowdowns_are_bounded_and_never_below_one():
    found = [metrics.slowdown((wait + run) * SECOND, run * SECOND) for wait, run in ((0, 100), (100, 50), (5, 2))]
    assert found == [1, 3, 1]
    assert metrics.mean(found) == pytest.approx(5 / 3)
    assert metrics.nearest_rank(found, 95) == 3


@pytest.mark.parametrize(("checkpoint", "lost"), [(0, 2400), (120, 480), (300, 0), (301, 2400)])
def test_what_is_lost_with_evicted_pods_begins_at_their_last_checkpoint(checkpoint, lost):
    assert sum(metrics.lost(2, 0, 300, checkpoint) for _ in range(4)) == lost


def test_fairness_is_that_of_jain():
    assert metrics.jain([1, 0.5]) == pytest.approx(0.9)
    assert metrics.jain([1, 1, 1]) == 1
    assert metrics.jain([]) is None
    assert metrics.jain([0, 0]) is None


def test_an_error_of_forecasts_is_start_minus_first_forecast():
    found = metrics.forecast_error([(130, 100), (50, 60), (7, None), (20, 20)])
    assert found.mean == pytest.approx(20 / 3)
    assert found.absolute == pytest.approx(40 / 3)
    assert (found.p95, found.late, found.without) == (30, pytest.approx(1 / 3), 0.25)
    assert metrics.forecast_error([]) == (None, None, None, None, None)


@given(NUMBERS, st.integers(1, 100))
def test_a_percentile_is_a_nearest_rank(values, percent):
    wanted = sorted(values)[math.ceil(Fraction(percent, 100) * len(values)) - 1]
    assert metrics.nearest_rank(values, percent) == wanted


@given(INTERVALS, st.integers(0, 12))
def test_integrals_are_sums_over_every_unit_of_time(intervals, most):
    levels = [sum(each.amount for each in intervals if each.start <= moment < each.end) for moment in range(30)]
    assert metrics.capped(metrics.steps(intervals), most) == sum(min(level, most) for level in levels)
    real = [each for each in intervals if each.end > each.start]
    assert metrics.total(real) == sum(levels)


def test_a_queue_is_due_what_it_wants_up_to_what_it_deserves():
    jobs = [Rigid(0, 6, 100), Rigid(0, 8, 50)]
    found = case_of(jobs, [0, 100])
    # It deserves all 10: wants 14 until 100, 8 until 150, has 6 and then 8.
    assert judging.judge(found)["queues"]["default"]["due"] == 10 * 100 + 8 * 50
    assert judging.judge(found)["queues"]["default"]["got"] == 6 * 100 + 8 * 50
    assert judging.judge(found)["fairness"]["least"] == pytest.approx(1000 / 1400)


@settings(max_examples=drawn(15), deadline=None)
@given(st.lists(st.builds(Rigid, st.integers(0, 60), st.integers(1, 10), st.integers(1, 60)), min_size=1, max_size=6))
def test_figures_of_a_simulation_are_those_of_its_starts(jobs):
    jobs = sorted(jobs)
    trace = trace_of(jobs)
    result = simulated(trace)
    figures = judging.judge(cases.Case(Loaded(trace, trace.cluster), result))
    begun = [each.start // SECOND for each in result.jobs]
    waits = [start - job.submit for start, job in zip(begun, jobs, strict=True)]
    span = max(start + job.run for start, job in zip(begun, jobs, strict=True)) - min(job.submit for job in jobs)
    assert figures["wait"]["mean"] == pytest.approx(sum(waits) / len(waits))
    assert figures["wait"]["max"] == max(waits)
    assert figures["makespan"] == span
    assert figures["utilisation"]["cpu"] == pytest.approx(sum(job.size * job.run for job in jobs) / (10 * span))
    wide = [wait for wait, job in zip(waits, jobs, strict=True) if job.size > 5]
    assert figures["wait"]["wide"] == (pytest.approx(sum(wide) / len(wide)) if wide else None)


def test_what_is_known_of_figures_before_a_run_is_what_a_run_has():
    figures = judging.judge(case_of([Rigid(0, 6, 100), Rigid(0, 8, 50)], [0, 100]))
    for group, members in claims.FIGURES.items():
        if members:
            assert (group, members) == (group, tuple(figures[group]))
        elif members is not None:
            assert not isinstance(figures[group], dict)
    assert figures.keys() <= claims.FIGURES.keys()
