"""A scheduler that is started again in the middle of a plan neither forgets whom the room is for nor evicts anybody else for it."""

from __future__ import annotations

import eviction_worlds as worlds
import pytest
from eviction_arena import Arena
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from builders import group, node
from drawing import drawn
from pumice.sim.faults import Fault

LONG = 8


def small(claimants=1, grace=LONG):
    """One node of four cpu with two low pods of two, and a high job that wants half of it or all."""
    world = worlds.World()
    world.nodes["n1"] = node("n1", cpu="4", labels={"zone": "a"})
    world.groups = [group("low", 0, priorityClassName="low"), group("high", claimants, priorityClassName="high")]
    for name, job, where in [("low-0", "low", "n1"), ("low-1", "low", "n1")]:
        world.members[name] = worlds.Member(name, job, 2, node=where)
    for index in range(claimants):
        world.members[f"high-{index}"] = worlds.Member(f"high-{index}", "high", 2)
    world.grace = grace
    return world


def arena(world):
    made = Arena(world, worlds.policy("preempt"))
    made.cluster.merge(
        [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "a"},
                "spec": {"terminationGracePeriodSeconds": world.grace},
            }
            for name in ("low-0", "low-1")
        ]
    )
    return made


def finish(playing, cycles=20):
    for _ in range(cycles):
        playing.cycle()
    return [playing.lineage[name] for _, name in playing.evicted]


@pytest.mark.parametrize("after", range(1, 6))
def test_after_a_restart_nobody_else_is_evicted_and_the_claimant_runs(after):
    playing = arena(small())
    for _ in range(after):
        playing.cycle()
    playing.start()
    assert finish(playing) == ["low-1"]
    assert not playing.waiting(["high-0"])


def test_what_was_decided_and_never_sent_is_decided_again():
    playing = arena(small())
    playing.decide()
    playing.start()
    assert finish(playing) == ["low-1"]
    assert not playing.waiting(["high-0"])


def test_a_pod_that_comes_after_the_restart_does_not_get_the_room():
    playing = arena(small(claimants=2, grace=3))
    playing.cycle()
    playing.start()
    late = worlds.Member("late-0", "low", 2)
    playing.world.members["late-0"] = late
    playing.lineage["late-0"] = "late-0"
    playing.cluster.apply([late.manifest()])
    assert sorted(finish(playing)) == ["low-0", "low-1"]
    assert not playing.waiting(["high-0", "high-1"])
    assert playing.waiting(["late-0"])


@pytest.mark.parametrize("error", ["lost-reply", "unavailable", "conflict"])
def test_a_restart_after_a_failed_eviction_ends_as_if_it_had_not_failed(error):
    playing = arena(small(grace=3))
    playing.cluster.fail(Fault(verb="evict", error=error, object="pod/a/low-*", times=1))
    playing.cycle()
    playing.start()
    assert len(set(finish(playing))) == 1
    assert not playing.waiting(["high-0"])


def test_a_restart_whose_status_writes_fail_evicts_nobody_twice():
    playing = arena(small(grace=3))
    playing.cluster.fail(Fault(verb="status", error="unavailable", object="pod/a/high-0", times=1))
    playing.cycle()
    playing.start()
    assert len(finish(playing)) == 1
    assert not playing.waiting(["high-0"])


@settings(max_examples=drawn(25), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**32), policy=st.sampled_from(sorted(worlds.POLICIES)), at=st.integers(1, 6))
def test_with_a_restart_at_any_time_evictions_still_stop(seed, policy, at):
    playing = Arena(worlds.Maker(worlds.choices(seed)).make(), worlds.policy(policy))
    for number in range(40):
        if number == at:
            playing.decide()
            playing.start()
        playing.cycle()
    last = max((number for number, _ in playing.evicted), default=0)
    assert last <= 28, f"evictions go on in cycle {last}\n{playing.told()}"
