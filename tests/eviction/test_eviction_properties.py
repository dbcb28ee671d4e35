"""What holds for every eviction, over random clusters in which whatever was evicted comes back and wants its place again."""

from __future__ import annotations

import eviction_worlds as worlds
import pytest
from eviction_arena import Arena
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from drawing import drawn

CYCLES = 36
QUIET = 12


class Watch:
    """Follows an arena cycle by cycle and checks each of them."""

    def __init__(self, arena):
        self.arena = arena
        self.groups = {g["metadata"]["name"]: g["spec"] for g in arena.world.groups}
        self.queues = {q["metadata"]["name"]: q["spec"] for q in arena.world.queues}
        self.pairs = set()
        self.last = 0

    def stands(self, job, tasks):
        spec = self.groups[job]
        roles = spec.get("minTaskMember", {})
        if len(tasks) < spec["minMember"] or sum(roles.values()) > spec["minMember"]:
            return len(tasks) >= spec["minMember"]
        return all(sum(t.role == role for t in tasks) >= least for role, least in roles.items())

    def cycle(self):
        arena = self.arena
        before = arena.alive()
        made, evicted = arena.cycle()
        victims = [name for plan in made for name in plan.victims]
        assert sorted(victims) == sorted(evicted), f"every eviction belongs to a plan\n{arena.told()}"
        self.last = arena.cycles if evicted else self.last
        for plan in made:
            self.check_lineages(plan)
            self.check_guarantees(plan)
        for job in {arena.lineage[name].split("-")[0] for name in victims}:
            left = arena.after.get(job, [])
            # Before the first cycle nothing is known; gangs start whole.
            whole = job not in before or self.stands(job, before[job])
            assert not whole or not left or self.stands(job, left), f"gang {job} is broken\n{arena.told()}"

    def check_lineages(self, plan):
        for name in plan.victims:
            pair = (self.arena.lineage[name], plan.job)
            assert pair not in self.pairs, f"{pair[0]} is evicted twice for {pair[1]}\n{self.arena.told()}"
            self.pairs.add(pair)

    def check_guarantees(self, plan):
        """What a queue lost to another one leaves it what is guaranteed to it."""
        own = self.groups[plan.job]["queue"]
        for name in {self.groups[self.arena.lineage[v].split("-")[0]]["queue"] for v in plan.victims} - {own}:
            assert self.queues[name].get("reclaimable", True), f"queue {name} is not reclaimable\n{self.arena.told()}"
            due = int(self.queues[name].get("guarantee", {}).get("resource", {}).get("cpu", 0))
            held = sum(
                self.arena.world.members[self.arena.lineage[task.name]].cpu
                for job, tasks in self.arena.after.items()
                for task in tasks
                if job in self.groups and self.groups[job]["queue"] == name
            )
            assert held >= due, f"queue {name} holds {held}, {due} are guaranteed\n{self.arena.told()}"

    def finish(self):
        """Evictions have stopped, and whoever somebody was evicted for runs, unless a stronger one took its room over."""
        arena = self.arena
        assert self.last <= CYCLES - QUIET, f"evictions go on in cycle {self.last}\n{arena.told()}"
        for plan in arena.plans:
            left = [name for name in arena.waiting(plan.members) if name not in arena.dropped]
            assert not left, f"{left} still wait after {plan}\n{arena.told()}"


def watched(world, policy):
    arena = Arena(world, worlds.policy(policy))
    watch = Watch(arena)
    for _ in range(CYCLES):
        watch.cycle()
    watch.finish()
    return arena


@pytest.mark.parametrize("policy", worlds.POLICIES)
@settings(max_examples=drawn(15), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_evictions_help_and_stop(policy, seed):
    watched(worlds.Maker(worlds.choices(seed)).make(), policy)
