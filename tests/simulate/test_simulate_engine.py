"""Traces under policies: what starts when, against schedulers that only count processors."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from simulating import EVICTING, GREEDY, SECOND, Rigid, greedy_starts, simulated, starts, trace_of

from pumice.api import kinds, meta, scheduling
from pumice.framework import configuration, registry
from pumice.simulate import preparing, swf
from pumice.simulate.engine import Simulation
from pumice.simulate.trace import Change

EXAMPLES = 300 if os.environ.get("PUMICE_FUZZ") else 15
JOBS = st.lists(st.builds(Rigid, st.integers(0, 40), st.integers(1, 6), st.integers(1, 40)), min_size=1, max_size=12)


def test_a_wide_job_starves_where_nothing_is_held():
    jobs = [Rigid(0, 5, 60), Rigid(0, 10, 30), *(Rigid(at, 5, 60) for at in range(30, 240, 30))]
    assert starts(simulated(trace_of(jobs)))[1] == 270


@settings(max_examples=EXAMPLES, deadline=None)
@given(JOBS)
def test_starts_are_those_of_counting_processors(jobs):
    jobs = sorted(jobs, key=lambda job: job.submit)
    wanted = greedy_starts(jobs, 6)
    assert starts(simulated(trace_of(jobs, "pod", 6))) == wanted
    assert starts(simulated(trace_of(jobs, "gang", 6))) == wanted


def test_the_same_trace_gives_the_same_result():
    jobs = [Rigid(at % 17, at % 5 + 1, 10 + at % 7) for at in range(25)]
    trace = trace_of(sorted(jobs), "gang", 6)
    first, second = simulated(trace), simulated(trace)
    assert first.jobs == second.jobs
    assert (first.cycles, first.events) == (second.cycles, second.events)


def test_a_period_keeps_the_grid():
    jobs = [Rigid(3, 6, 14), Rigid(4, 6, 5)]
    found = simulated(trace_of(jobs, processors=6), period=10 * SECOND)
    assert starts(found) == [10, 30]
    assert [each.end // SECOND for each in found.jobs] == [24, 35]


def test_a_job_that_never_fits_waits_with_its_reason():
    found = simulated(trace_of([Rigid(0, 7, 10), Rigid(1, 6, 5)], processors=6))
    assert starts(found) == [None, 1]
    assert "no node has 7 cpu at all: the largest of 1, machine, has 6" in found.jobs[0].reason


def evicted(checkpoint):
    """Let a job of higher priority come when an earlier one has run for 25 s."""
    low, high = trace_of([Rigid(0, 6, 60), Rigid(25, 6, 10)], processors=6).jobs
    spec = structs.replace(low.members[0].spec, termination_grace_period_seconds=5)
    members = (structs.replace(low.members[0], spec=spec),)
    low = structs.replace(low, min_member=0, checkpoint=checkpoint * SECOND, members=members)
    trace = trace_of([], processors=6)
    trace.jobs = [low, structs.replace(high, priority="high")]
    classed = scheduling.PriorityClass(metadata=meta.ObjectMeta(name="high", uid="high"), value=100)
    return simulated(trace, EVICTING, cluster=[*trace.cluster, (kinds.PRIORITY_CLASS, classed)])


@pytest.mark.parametrize(("checkpoint", "ended"), [(0, 40 + 60), (10, 40 + 40)])
def test_an_evicted_pod_runs_again_from_its_last_checkpoint(checkpoint, ended):
    found = evicted(checkpoint)
    low, high = found.jobs
    assert [(run.start // SECOND, run.end // SECOND, run.evicted) for run in low.runs] == [
        (0, 25, True),
        (40, ended, False),
    ]
    assert (low.start, low.end // SECOND, low.evictions) == (0, ended, 1)
    assert (high.start // SECOND, high.end // SECOND) == (30, 40)  # when the grace of 5 s is over


def test_pods_of_a_lost_node_are_placed_again_when_it_is_back():
    trace = trace_of([Rigid(0, 6, 60)], processors=6)
    kind, node = trace.cluster[0]
    trace.changes = [
        Change(at=20 * SECOND, kind=kind, event="DELETED", object=node),
        Change(at=50 * SECOND, kind=kind, event="ADDED", object=node),
    ]
    found = simulated(trace).jobs[0]
    assert [(run.start // SECOND, run.end // SECOND) for run in found.runs] == [(0, 20), (50, 110)]
    assert (found.start, found.end // SECOND) == (0, 110)


def test_an_interruption_leaves_what_came_of_it_so_far():
    trace = trace_of([Rigid(0, 6, 60), Rigid(30, 6, 60), Rigid(100, 6, 60)], processors=6)

    def interrupt(moment, _arrived):
        if moment >= 60 * SECOND:
            raise KeyboardInterrupt

    cluster = preparing.cluster(trace, trace.cluster)
    loaded = configuration.load(GREEDY, registry.catalog())
    found = Simulation(trace, cluster, loaded, progress=interrupt).run()
    assert found.interrupted
    assert found.stopped == 60 * SECOND
    assert [(each.start, each.end) for each in found.jobs] == [(0, 60 * SECOND), (60 * SECOND, None), (None, None)]
    assert found.jobs[1].runs[0].end is None


def test_a_machine_is_one_node_or_as_many_as_it_has_processors():
    assert [len(swf.machine(12, form)) for form in ("pod", "gang")] == [1, 12]
