"""The API server is the only truth (design.md, decision 10): a scheduler that starts anew reaches the same end state."""

from __future__ import annotations

import pytest

from builders import GANG, group, node, pod, queue, settings
from pumice.api import kinds
from pumice.cache.cache import Cache
from pumice.scheduler import Scheduler
from pumice.sim.cluster import SimulatedCluster

SECOND = 1_000_000
CYCLES = 12


class Play:
    """A cluster with a scheduler that can be started anew."""

    def __init__(self, *objects):
        self.cluster = SimulatedCluster()
        self.cluster.apply(objects)
        self._start(self.cluster.connect)

    def _start(self, attach):
        cache = Cache(self.cluster)
        self.scheduler = Scheduler(cache, settings(GANG)[0], self.cluster.clock.now)
        attach(cache)

    def restart(self):
        """Lose the scheduler's memory, and what it had handed over and nobody performed."""
        self._start(self.cluster.restart)

    def decide(self):
        self.cluster.pump()
        self.scheduler.cycle()

    def cycle(self):
        self.decide()
        self.cluster.advance(SECOND)

    def pods(self):
        return {
            each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in self.cluster.store.scan(kinds.POD)
        }

    def phases(self):
        return {
            each["metadata"]["name"]: each.get("status", {}).get("phase", "")
            for each in self.cluster.store.scan(kinds.POD_GROUP)
        }

    def allocated(self):
        return {
            each["metadata"]["name"]: each.get("status", {}).get("allocated", {})
            for each in self.cluster.store.scan(kinds.QUEUE)
        }


def workload():
    """Two gangs that fit, one that does not, an elastic job, a best-effort pod and one that ends after a while."""
    return (
        *(node(f"n{index}", cpu="4") for index in range(3)),
        queue("q"),
        group("one", 3, queue="q"),
        group("two", 3),
        group("never", 5),
        group("elastic"),
        *(pod(f"one-{index}", "one", cpu="2") for index in range(3)),
        *(pod(f"two-{index}", "two", cpu="1", annotations={"pumice.dev/run-time": "4s"}) for index in range(3)),
        *(pod(f"never-{index}", "never", cpu="4") for index in range(5)),
        *(pod(f"elastic-{index}", "elastic", cpu="1") for index in range(4)),
        pod("idle", "elastic"),
    )


@pytest.fixture(scope="module")
def undisturbed():
    play = Play(*workload())
    for _ in range(CYCLES):
        play.cycle()
    return play


def check(play, undisturbed):
    """Everybody who would have been placed is, exactly once, and the statuses say so."""
    bound = {name for name, where in play.pods().items() if where}
    assert bound == {name for name, where in undisturbed.pods().items() if where}
    assert play.phases() == undisturbed.phases()
    assert play.allocated() == undisturbed.allocated()
    assert play.cluster.counts.binds == len(bound)


def test_the_workload_is_worth_testing(undisturbed):
    assert sum(1 for where in undisturbed.pods().values() if where) == 11
    assert undisturbed.phases() == {"one": "Running", "two": "Completed", "never": "Inqueue", "elastic": "Running"}


@pytest.mark.parametrize("moment", range(1, 8))
def test_a_restart_between_cycles_changes_nothing(undisturbed, moment):
    play = Play(*workload())
    for cycle in range(CYCLES):
        if cycle == moment:
            play.restart()
        play.cycle()
    check(play, undisturbed)


@pytest.mark.parametrize("moment", range(6))
def test_a_restart_that_loses_all_decisions_of_a_cycle_changes_nothing_in_the_end(undisturbed, moment):
    play = Play(*workload())
    for cycle in range(CYCLES):
        if cycle == moment:
            play.decide()
            play.restart()
        play.cycle()
    check(play, undisturbed)


@pytest.mark.parametrize("arrived", range(12))
def test_a_restart_that_loses_some_decisions_changes_nothing_in_the_end(undisturbed, arrived):
    play = Play(*workload())
    play.decide()
    handed_over = play.cluster._queue  # noqa: SLF001  what ends with the process that was to send it
    while len(handed_over) > arrived:
        handed_over.pop()
    play.cluster.settle()
    play.restart()
    for _ in range(CYCLES):
        play.cycle()
    check(play, undisturbed)


def test_a_scheduler_that_starts_late_finds_what_runs():
    play = Play(*workload())
    for _ in range(3):
        play.cycle()
    before = play.pods()
    play.restart()
    for _ in range(3):
        play.cycle()
    assert all(play.pods()[name] == where for name, where in before.items() if where)
    assert play.cluster.counts.evictions == 0
