"""What may be left unwritten where nobody reads it, and that nothing else changes by it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import kinds
from pumice.cache import effects
from pumice.cache.cache import Cache
from pumice.cache.options import Options
from pumice.framework import configuration, registry
from pumice.scheduler.loop import Scheduler
from pumice.simulate import population, preparing, swf
from pumice.simulate.trace import Members, Trace, TraceJob, pod_spec

POLICY = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
"""


class World:
    """Keeps what is sent, and answers it."""

    def __init__(self):
        self.sent = []
        self.cache = None

    def send(self, effect, /):
        self.sent.append(effect)


def decided(sizes, options):
    """Let gangs of some sizes wait for four processors through three cycles; returns what was sent."""
    spec = pod_spec({"cpu": "1"}, scheduler="volcano")
    jobs = [
        TraceJob(
            number=n,
            name=f"job-{n}",
            submit=0,
            members=(Members(count=size, spec=spec, run_time=1),),
            min_member=size,
            run_time=1,
            queue="default",
        )
        for n, size in enumerate(sizes, 1)
    ]
    trace = Trace(source="made", jobs=jobs, cluster=swf.machine(4, "gang"))
    world = World()
    cache = Cache(world, options)
    scheduler = Scheduler(cache, configuration.load(POLICY, registry.catalog()), lambda: population.START)
    for kind, found in preparing.cluster(trace, trace.cluster):
        cache.feed(kind, "ADDED", found)
    made = population.Population({})
    for index, job in enumerate(jobs):
        cache.feed(kinds.POD_GROUP, "ADDED", made.group(job, population.START + index))
        shared = made.shared_metadata(job, population.START + index)
        for number in range(job.size):
            cache.feed(kinds.POD, "ADDED", made.pod(job, population.Slot(index, 0, number, 1), shared))
    for _ in range(3):
        scheduler.cycle()
        assert scheduler.failures == []
    return world.sent


def is_spared(effect):
    if isinstance(effect, effects.Note):
        return effect.kind is kinds.POD
    return isinstance(effect, effects.Patch) and effect.kind in (kinds.POD, kinds.QUEUE)


@settings(max_examples=drawn(15), deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_decisions_and_groups_are_the_same_without_reasons_of_pods_and_statuses_of_queues(sizes):
    everything = decided(sizes, Options())
    spared = decided(sizes, Options(queue_statuses=False, pod_reasons=False))
    assert not any(is_spared(effect) for effect in spared)
    assert [effect for effect in everything if not is_spared(effect)] == spared


@pytest.mark.parametrize(
    ("options", "kind"), [(Options(queue_statuses=False), kinds.QUEUE), (Options(pod_reasons=False), kinds.POD)]
)
def test_each_is_left_out_by_its_own_option(options, kind):
    patched = {effect.kind.name for effect in decided([5, 3], Options()) if isinstance(effect, effects.Patch)}
    left = {effect.kind.name for effect in decided([5, 3], options) if isinstance(effect, effects.Patch)}
    assert patched - left == {kind.name}
