"""What a plan promised inside a hyper-node: it is kept in later cycles, and by a scheduler that starts anew."""

from __future__ import annotations

import numpy as np
import pytest
from topology_world import ALLOCATE, PREEMPT, Life, Tiers, hyper_node

from builders import Desk, group, node, pod, priority_class, queue
from pumice.framework.plugin import Plugin

HARD = {"mode": "hard", "highestTierAllowed": 1}


def test_a_scheduler_that_starts_anew_finds_the_domain_again_by_the_nominations_on_the_pods():
    nodes = [node(f"n{i}", cpu="2") for i in range(4)]
    racks = [hyper_node("s0", 1, ["n0", "n1"]), hyper_node("s1", 1, ["n2", "n3"])]
    waiting = [pod(f"g-{i}", "g", cpu="2") for i in range(2)]
    for each, where in zip(waiting, ("n2", "n3"), strict=True):
        each["status"]["nominatedNodeName"] = where
    going = [pod(f"old-{i}", "old", cpu="2", node=f"n{i}", deleting=30) for i in range(4)]
    desk = Desk(PREEMPT).feed(*nodes, *racks, group("old"), group("g", 2, networkTopology=HARD, phase="Inqueue"))
    desk.feed(*going, *waiting)
    desk.cycle()
    assert not desk.world.binds
    desk.delete(going[2], going[3], going[0], going[1])
    desk.cycle()
    assert desk.world.binds == {"g-0": "n2", "g-1": "n3"}


def test_room_that_is_free_now_in_another_hyper_node_beats_what_was_promised():
    tiers = Tiers([["n0", "n1"], ["n2", "n3"]], [])
    life = Life(tiers, PREEMPT, cpu=2)
    life.desk.feed(priority_class("high", 100))
    life.add_group("old", 1)
    olds = [life.add_pod("old", cpu=2, node=f"n{i}") for i in range(4)]
    life.add_group("g", 2, networkTopology=HARD, priorityClassName="high")
    for _ in range(2):
        life.add_pod("g", cpu=2)
    life.desk.cycle()
    victims = set(life.desk.world.evictions)
    assert len(victims) == 2
    rest = [name for name in olds if name not in victims]
    for name in rest:
        life.remove(name)
    life.desk.cycle()
    assert set(life.desk.world.binds.values()) == {f"n{olds.index(name)}" for name in rest}


def test_what_is_free_in_several_hyper_nodes_together_is_nothing_to_reclaim_for():
    config = PREEMPT.replace("gangpreempt", "gangreclaim").replace(
        "{name: conformance}", "{name: conformance}, {name: proportion}"
    )
    desk = Desk(config, queues=("root", "default", "red", "blue"))
    desk.feed(*(node(f"n{i}", cpu="2") for i in range(4)))
    desk.feed(hyper_node("s0", 1, ["n0", "n1"]), hyper_node("s1", 1, ["n2", "n3"]))
    desk.feed(group("keep", 2, queue="red", phase="Running"))
    desk.feed(
        *(
            pod(f"keep-{i}", "keep", cpu="2", node=f"n{2 * i}", annotations={"volcano.sh/preemptable": "false"})
            for i in range(2)
        )
    )
    desk.feed(
        group("g", 2, queue="blue", networkTopology=HARD, phase="Inqueue"),
        *(pod(f"g-{i}", "g", cpu="2") for i in range(2)),
    )
    desk.cycle()
    assert (desk.world.evictions, desk.world.binds) == ([], {})


def test_victims_are_asked_for_with_the_hyper_node_they_are_in():
    seen = []

    class Curious(Plugin):
        name = "curious"
        points = frozenset({"UnifiedEvictable"})

        def open(self, session):
            session.unified_evictable.add(self.look)

        def look(self, context, candidates):
            seen.append((context.kind, context.domain.name, sorted(task.name for task in candidates)))
            return candidates

    config = PREEMPT.replace("{name: priority}, {name: gang}", "{name: curious}, {name: priority}, {name: gang}")
    desk = Desk(config, Curious).feed(priority_class("high", 9), queue("default"))
    desk.feed(*(node(f"n{i}", cpu="2") for i in range(4)))
    desk.feed(hyper_node("s0", 1, ["n0", "n1"]), hyper_node("s1", 1, ["n2", "n3"]))
    # In s0 it looks as if two were enough, but no node is free without three; then s1, where two are enough, is asked about too.
    desk.feed(group("old"), *(pod(f"small-{i}", "old", cpu="500m", node=f"n{i % 2}") for i in range(4)))
    desk.feed(*(pod(f"old-{i}", "old", cpu="1", node=where) for i, where in enumerate(["n0", "n1", *2 * ["n2", "n3"]])))
    desk.feed(group("g", 1, networkTopology=HARD, priorityClassName="high", phase="Inqueue"), pod("g-0", "g", cpu="2"))
    desk.cycle()
    inside = {"s0": {"old-0", "old-1", *(f"small-{i}" for i in range(4))}, "s1": {f"old-{i}" for i in range(2, 6)}}
    assert {domain for _, domain, _ in seen} == {"s0", "s1"}
    for kind, domain, names in seen:
        assert kind == "gangpreempt"
        assert set(names) <= inside[domain]
    assert sorted(desk.world.evictions) in (["old-2", "old-4"], ["old-3", "old-5"])


class Weighing(Plugin):
    """Likes hyper-nodes as much as it is told."""

    name = "weighing"
    points = frozenset({"HyperNodeOrder"})
    weights = {}  # noqa: RUF012  each test has its own

    def open(self, session):
        session.hyper_node_order.add(lambda _, domains: np.array([self.weights.get(d.name, 0.0) for d in domains]))


@pytest.mark.parametrize(
    ("weights", "nodes"),
    [
        ({"rack-2": 5.0}, {"n2", "n3"}),
        ({"rack-1": 5.0}, {"n0", "n1"}),
        ({"rack-0": 3.0, "rack-1": 3.0, "rack-2": 5.0}, {"n0", "n1"}),
        ({"block-0": 10.0, "rack-2": 5.0}, {"n2", "n3"}),  # what the block itself is worth does not count
        ({"block-1": 10.0, "rack-0": 5.0}, {"n0", "n1"}),
        ({"block-1": 10.0}, {"n2", "n3"}),  # but says which is tried first, and so which of equals is taken
        ({}, {"n0", "n1"}),
    ],
)
def test_a_job_of_sub_groups_goes_where_these_score_the_most_together(weights, nodes):
    tiers = Tiers([["n0"], ["n1"], ["n2"], ["n3"]], [[0, 1], [2, 3]])
    text = ALLOCATE.replace("{name: nodeorder}", "{name: nodeorder}, {name: weighing}")
    desk = Desk(text, type("Weighing", (Weighing,), {"weights": weights})).feed(*tiers.manifests())
    desk.feed(*(node(name, cpu="1") for name in tiers.nodes))
    policy = {"name": "p", "matchLabelKeys": ["part"], "minSubGroups": 2, "networkTopology": HARD}
    desk.feed(group("g", 2, subGroupPolicy=[policy], networkTopology={**HARD, "highestTierAllowed": 2}))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", labels={"part": str(i)}) for i in range(2)))
    desk.cycle()
    assert set(desk.world.binds.values()) == nodes


def test_members_that_come_later_go_where_they_are_near_to_those_that_run():
    """Another block is fuller, and would come first otherwise."""
    tiers = Tiers([["n0"], ["n1"], ["n2"], ["n3"]], [[0, 1], [2, 3]])
    desk = Desk(ALLOCATE).feed(*tiers.manifests(), *(node(name, cpu="4") for name in tiers.nodes))
    desk.feed(group("old", 0), pod("old-0", "old", cpu="2", node="n2"), pod("old-1", "old", cpu="3", node="n0"))
    wish = {"networkTopology": {"mode": "soft"}}
    desk.feed(group("g", 1, phase="Running", **wish), pod("g-0", "g", cpu="1", node="n0"), pod("g-1", "g", cpu="1"))
    desk.cycle()
    assert desk.world.binds == {"g-1": "n1"}


class Refusing(Plugin):
    """Refuses all placements but on one node."""

    name = "refusing"
    but = "n9"

    def open(self, session):
        session.add_handler(self.follow, may_refuse=True)

    def follow(self, run, sign):
        return "not here" if sign > 0 and any(each.name != self.but for each in run.targets) else None


@pytest.mark.parametrize("but", ["n0", "n7", "n9"])
def test_where_the_first_few_hyper_nodes_fail_that_were_compared_the_others_are_tried_too(but):
    tiers = Tiers([[f"n{i}"] for i in range(10)], [])
    text = ALLOCATE.replace("{name: nodeorder}", "{name: nodeorder}, {name: refusing}")
    desk = Desk(text, type("Refusing", (Refusing,), {"but": but})).feed(*tiers.manifests())
    desk.feed(*(node(name, cpu="4") for name in tiers.nodes))
    policy = {"name": "p", "matchLabelKeys": ["part"], "minSubGroups": 2}
    desk.feed(group("g", 2, phase="Inqueue", subGroupPolicy=[policy], networkTopology=HARD))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", labels={"part": str(i)}) for i in range(2))).cycle()
    assert desk.world.binds == {"g-0": but, "g-1": but}
