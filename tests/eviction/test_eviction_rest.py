"""A cycle that is skipped could only have repeated the last one, whichever comes first: the answer to a write, or its echo by the watch."""

from __future__ import annotations

import eviction_worlds as worlds
import pytest
from eviction_arena import Arena
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

from drawing import drawn
from pumice.sim.cluster import SimulatedCluster

CYCLES = 24
FORCED = {1, 2, 4, 8, 16}
"""Which of the cycles that are skipped in a row are run in full, besides the last of all: whoever should have been woken still has something to do."""


class EchoFirst(SimulatedCluster):
    """A cluster whose watches are faster than its answers."""

    def _perform(self):
        count, client = len(self._queue), self._client
        for _ in range(count):
            outcome = self._writer.perform(self._queue.popleft())
            self._kubelets.react()
            self.pump()
            if outcome is not None:
                client.settled(outcome)
        return count


class Forced(Arena):
    """Runs in full what would be skipped."""

    def force(self):
        engine = self.scheduler.engine
        taken = engine.shortcuts
        engine.shortcuts = structs.replace(taken, quiet_cycles=False)
        record = self.scheduler.cycle()
        engine.shortcuts = taken
        assert not record.skipped
        done = [*self.cluster._queue]  # noqa: SLF001  what was sent a moment ago and is not performed
        assert not done, f"a skipped cycle would have done something: {done}\n{record.trace()}\n{self.told()}"


def with_budget(policy):
    """Let groups in by their minimum, so that phases count."""
    return worlds.policy(policy).rstrip().removesuffix("]") + ", {name: overcommit}]\n"


def world_of(seed):
    pick = worlds.choices(seed)
    made = worlds.Maker(pick).make()
    for group in made.groups:
        if pick.random() < 0.7:
            cpu = [m.cpu for m in made.members.values() if m.group == group["metadata"]["name"]]
            least = sum(sorted(cpu)[: group["spec"]["minMember"]])
            group["spec"]["minResources"] = {"cpu": str(least)}
    return made


@pytest.mark.parametrize("cluster", [SimulatedCluster, EchoFirst])
@pytest.mark.parametrize("policy", worlds.POLICIES)
@settings(max_examples=drawn(10), deadline=None, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_whoever_rests_has_nothing_to_do(policy, cluster, seed):
    arena = Forced(world_of(seed), with_budget(policy), cluster=cluster)
    rested = in_a_row = 0
    for cycle in range(1, CYCLES + 1):
        arena.decide()
        in_a_row = in_a_row + 1 if arena.cache.record.skipped else 0
        if in_a_row in FORCED or (in_a_row and cycle == CYCLES):
            rested += 1
            arena.force()
        arena.follow()
    assert rested
