"""Plugins that simulate are told what a plan tries out, and asked about the claimant, in topology-aware mode only."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod, priority_class
from pumice.framework.plugin import Plugin

CONFIG = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: picky}]
- plugins: [{name: predicates}, {name: nodeorder}]
configurations:
- {name: preempt, arguments: {enableTopologyAwarePreemption: MODE}}
"""


class Picky(Plugin):
    """Keeps who is where by itself, and refuses node n1."""

    name = "picky"
    points = frozenset({"SimulatePredicate", "SimulateRemoveTask", "SimulateAddTask"})
    gone: list[str]

    def open(self, session):
        self.session = session
        Picky.gone = []
        session.simulate_remove_task.add(lambda claimant, task, record: Picky.gone.append(task.name))
        session.simulate_add_task.add(lambda claimant, task, record: Picky.gone.remove(task.name))
        session.simulate_predicate.add(lambda claimant, record: "not here" if record.name == "n1" else None)


def full():
    pods = [pod(f"low-{i}", f"low-{i}", cpu="2", node=f"n{i}", created=i) for i in (1, 2)]
    groups = [group(f"low-{i}", 0, priorityClassName="low", phase="Running") for i in (1, 2)]
    asks = [group("high", 1, priorityClassName="high", phase="Inqueue"), pod("high-0", "high", cpu="2")]
    nodes = [node("n1", cpu="2"), node("n2", cpu="2")]
    return [priority_class("low", 1), priority_class("high", 9), *nodes, *groups, *pods, *asks]


@pytest.mark.parametrize(("mode", "evicted"), [("true", ["low-2"]), ("false", ["low-1"])])
def test_a_plugin_that_simulates_is_asked_in_topology_aware_mode_only(mode, evicted):
    desk = Desk(CONFIG.replace("MODE", mode), Picky).feed(*full())
    desk.cycle()
    assert desk.scheduler.failures == []
    assert desk.world.evictions == evicted
    assert Picky.gone == (evicted if mode == "true" else [])
