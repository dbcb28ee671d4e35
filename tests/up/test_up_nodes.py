"""Nodes of `pumice up` that go and come back, and what becomes of their pods."""

from __future__ import annotations

import pytest

from pumice.api import kinds
from pumice.local_cluster import kubelets, node_health
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

SECOND = 1_000_000
NODE = Key(kinds.NODE, "", "n")
POD = Key(kinds.POD, "a", "p")


class Place:
    """A store with a node and a pod that runs there, and who looks after both; `again` is what starts after a crash."""

    def __init__(self):
        self.clock = VirtualClock(0)
        self.clock.speed = 1.0
        uids = iter(f"u{number}" for number in range(100))
        self.store = ObjectStore(self.clock.now, uids.__next__)
        self.begin()
        self.register()
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "a"},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}], "terminationGracePeriodSeconds": 1},
        }
        self.store.create(pod)
        self.let_pass(5)

    def register(self):
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status})

    def begin(self, **how):
        self.health = node_health.NodeHealth(self.store, self.clock, **how)
        self.pods = kubelets.Kubelets(self.store, self.clock, _nothing, _nothing, self.health.is_served)
        self.health.again = self.pods.look_again

    def let_pass(self, seconds):
        for _ in range(seconds):
            while self.health.react() + self.pods.react():
                pass
            self.clock.advance(SECOND)


def _nothing(*_):
    pass


@pytest.fixture
def place():
    return Place()


def test_a_pod_that_should_end_while_its_node_is_away_ends_when_it_is_back(place):
    assert place.store.find(POD)["status"]["phase"] == "Running"
    place.store.delete(POD)
    place.store.delete(NODE)
    place.let_pass(5)
    assert place.store.find(POD) is not None
    place.register()
    place.let_pass(5)
    assert place.store.find(POD) is None


@pytest.mark.parametrize("returns", [True, False])
def test_pods_of_a_node_that_was_gone_before_a_restart_end_with_it_or_when_it_is_back(place, returns):
    place.store.delete(NODE)
    place.let_pass(5)
    place.clock = VirtualClock(place.clock.now())  # what was planned before is forgotten
    place.clock.speed = 1.0
    place.begin()
    place.let_pass(5)
    place.store.delete(POD)
    if returns:
        place.register()
    place.let_pass(5 if returns else 60)
    assert place.store.find(POD) is None


def test_pods_whose_nodes_a_dump_lacked_stay(place):
    place.store.delete(NODE)
    place.clock = VirtualClock(place.clock.now())
    place.clock.speed = 1.0
    place.begin(whole=False)
    place.let_pass(100)
    assert place.store.find(POD) is not None


def test_a_node_that_was_not_well_before_a_restart_gets_well_after_it(place):
    place.store.patch(NODE, {"metadata": {"annotations": {node_health.STATE: "NotReady"}}})
    place.let_pass(2)
    assert not place.health.is_served("n")
    place.begin()
    place.let_pass(2)
    place.store.patch(NODE, {"metadata": {"annotations": {node_health.STATE: None}}})
    place.let_pass(2)
    assert place.health.is_served("n")
