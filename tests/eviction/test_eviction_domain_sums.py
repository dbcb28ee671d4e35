"""What evictions could do in a hyper-node, in plain numbers, each by hand: how much is lacking, what that costs at the least, and where nothing helps."""

from __future__ import annotations

import pytest

from builders import Desk, group, metadata, node, pod, priority_class
from pumice.actions.eviction import gang_rules, ranking
from pumice.actions.eviction.domain_bounds import DomainBounds
from pumice.framework import extensions
from pumice.framework.plugin import Plugin
from pumice.model.resources import CPU, PODS
from pumice.model.statuses import Status

CONFIG = """
actions: "gangpreempt"
tiers:
- plugins: [{name: priority}, %s]
- plugins: [{name: predicates}, {name: network-topology-aware}]
"""
GANG = CONFIG % "{name: gang}"


def rack(name, nodes):
    """A hyper-node of some nodes."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in nodes]
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(name)}
    return {**made, "spec": {"tier": 1, "members": members}}


class Scene:
    """Two racks, `near` and `far`; jobs that run there, and a gang that asks for one of them."""

    def __init__(self, nodes, *, far=(), text=GANG, plugins=()):
        self.desk = Desk(text, *plugins).feed(*(priority_class(f"p{value}", value) for value in (1, 2, 9)))
        self.desk.feed(*(node(f"f{i}", cpu) for i, cpu in enumerate(far)))
        places = {f"n{i}": each if isinstance(each, dict) else {"cpu": each} for i, each in enumerate(nodes)}
        self.desk.feed(*(node(name, **offered) for name, offered in places.items()))
        self.desk.feed(rack("far", [f"f{i}" for i in range(len(far))]), rack("near", places))

    def runs(self, name, where, *, least=0, rank="p1", ranks=()):
        """Let a job run: for each of its pods the node and the cpu; `ranks` are those of its pods."""
        self.desk.feed(group(name, least, phase="Running", priorityClassName=rank))
        for i, (place, cpu) in enumerate(where):
            more = {"priority": ranks[i]} if ranks else {}
            self.desk.feed(pod(f"{name}-{i}", name, cpu=cpu, node=place, **more))
        return self

    def asks(self, asked, *, least=None, roles=None, running=(), **more):
        """Say what the bounds are for a gang of which pods of these sizes wait."""
        topology = {"mode": "hard", "highestTierAllowed": 1}
        spec = {"minTaskMember": roles} if roles else {}
        least = len(asked) if least is None else least
        self.desk.feed(group("asks", least, phase="Inqueue", priorityClassName="p9", networkTopology=topology, **spec))
        for i, cpu in enumerate(asked):
            self.desk.feed(pod(f"asks-{i}", "asks", cpu=cpu, role="m" if roles else "", **more))
        for i, place in enumerate(running):
            self.desk.feed(pod(f"here-{i}", "asks", cpu="1", node=place, role="w" if roles else ""))
        session = self.desk.session()
        tasks = [self.desk.task(f"asks-{i}") for i in range(len(asked))]
        bounds = DomainBounds(session, gang_rules.GangPreempt(session), tasks[0].job, tasks)
        tree = session.topology.tree_of(tasks[0].job)
        near = next(domain for domain in tree.domains if domain.name == "near")
        return bounds, near, session


class Early(Plugin):
    """Lets a job start with one member less than its minimum."""

    name = "early"
    points = frozenset({"JobPipelined"})

    def open(self, session):
        def vote(job):
            there = sum(task.status != Status.PENDING for task in job.tasks.values())
            return extensions.PERMIT if there >= job.min_member - 1 else extensions.reject("too few")

        session.job_pipelined.add(vote)


@pytest.mark.parametrize(
    ("asked", "options", "nodes", "lacks", "pods"),
    [
        (["2", "1"], {}, ["4"], -1000, -108),
        (["2", "1"], {}, ["1", "1"], 1000, -218),
        (["2", "2", "1", "3"], {"least": 2}, ["4"], -1000, -108),  # the two smallest
        (["2", "1"], {"least": 0}, ["4"], -3000, -109),  # one of them, as for a job that has enough
        (["2", "2"], {"least": 3, "running": ["n0"]}, ["4"], 1000, -107),  # of three, one is there
        (["2", "2"], {"least": 2, "running": ["n0"]}, ["4"], -1000, -108),
        (["2"], {"least": 2, "roles": {"m": 1, "w": 1}, "running": ["n0", "n0"]}, ["4"], 0, -107),
        (["2"], {}, ["1999m"], 1, -109),
    ],
)
def test_a_rack_lacks_what_as_many_members_as_must_start_ask_for_beyond_what_is_free(
    asked, options, nodes, lacks, pods
):
    bounds, near, _ = Scene(nodes).asks(asked, **options)
    found = bounds.lacks(near)
    assert (int(found[CPU]), int(found[PODS])) == (lacks, pods)
    if lacks <= 0:
        assert bounds.least_cost(near) is None


def test_what_is_free_beside_a_node_that_gave_too_much_is_not_less_for_it():
    bounds, near, _ = Scene(["1", "1", "1"]).runs("low", [("n0", "3"), ("n1", "1")]).asks(["2"])
    assert bounds.lacks(near)[CPU] == 1000


@pytest.mark.parametrize(("voters", "lacks"), [("{name: gang}", 2000), ("{name: early}", 0)])
def test_where_plugins_let_a_job_start_with_fewer_only_one_member_is_counted_on(voters, lacks):
    """How many it takes is known from numbers only if nobody else has a say."""
    bounds, near, _ = Scene(["1"], text=CONFIG % voters, plugins=[Early]).asks(["1", "1", "1"])
    assert bounds.lacks(near)[CPU] == lacks


# ---- what it costs


COSTS = {
    "one pod that its job can spare": ({}, ["2"], [("a", [("n0", "2")], 0)], ((1, 1), False, 1)),
    "two where one is not enough": ({}, ["2"], [("a", [("n0", "1"), ("n0", "1")], 0)], ((1, 1), False, 2)),
    "the largest first": (
        {},
        ["5"],
        [("a", [("n0", "1"), ("n0", "2"), ("n0", "3")], 0)],
        ((1, 1), False, 2),
    ),
    "three, where it takes three": ({}, ["3"], [("a", [("n0", "1")] * 4, 0)], ((1, 1), False, 3)),
    "a job that needs its only pod is no gang": ({}, ["2"], [("a", [("n0", "2")], 1)], ((1, 1), False, 1)),
    "a gang goes whole": ({}, ["2"], [("a", [("n0", "1"), ("n0", "1")], 2)], ((1, 1), True, 2)),
    "of gangs the smallest": (
        {},
        ["1"],
        [("a", [("n0", "1")] * 3, 3), ("b", [("n0", "1")] * 2, 2)],
        ((1, 1), True, 2),
    ),
    "what is left of a gang is none": ({}, ["1"], [("a", [("n0", "1")] * 2, 3)], ((1, 1), False, 2)),
    "a gang elsewhere is none": (
        {},
        ["1"],
        [("a", [("f0", "1")] * 3, 3), ("b", [("n0", "1")] * 1, 0)],
        ((1, 1), False, 1),
    ),
    "what a gang can spare": ({}, ["1"], [("a", [("n0", "1")] * 3, 2)], ((1, 1), False, 1)),
    "the lowest that are enough": (
        {},
        ["2"],
        [("a", [("n0", "1")], 0), ("b", [("n0", "1")] * 2, 0, "p2")],
        ((2, 1), False, 2),
    ),
    "nobody more important than it takes": (
        {},
        ["1"],
        [("a", [("n0", "1")], 0), ("b", [("n0", "2")], 0, "p2")],
        ((1, 1), False, 1),
    ),
}


@pytest.mark.parametrize("case", COSTS)
def test_what_room_in_a_rack_costs_at_the_least(case):
    _, asked, jobs, cost = COSTS[case]
    held = sum(int(cpu) for _, where, *_ in jobs for place, cpu in where if place == "n0")
    scene = Scene([str(held)], far=["9"])
    for name, where, least, *rank in jobs:
        scene.runs(name, where, least=least, rank=rank[0] if rank else "p1")
    bounds, near, session = scene.asks(asked)
    losses = ranking.losses(session)
    loss = losses.share(CPU, sum(int(cpu) for cpu in asked) * 1000)
    assert bounds.least_cost(near) == (*cost, loss, near.tier, near.index)


def test_whoever_makes_room_for_the_smallest_amount_that_is_lacking_has_its_cost():
    bounds, near, _ = Scene(["2999m"]).runs("low", [("n0", "1")]).asks(["2"])
    assert bounds.lacks(near)[CPU] == 1
    assert bounds.least_cost(near)[:3] == ((1, 1), False, 1)


def test_the_victims_of_a_rack_are_those_on_its_own_nodes():
    """Its first node lies behind one with somebody of no importance, who is of no use to it."""
    scene = Scene(["1", "1"], far=["1"])
    scene.runs("none", [("f0", "1")]).runs("low", [("n0", "1")], rank="p2").runs("mid", [("n1", "1")], rank="p2")
    bounds, near, _ = scene.asks(["1"])
    assert near.rows.tolist() == [1, 2]
    assert bounds.least_cost(near)[0] == (2, 1)


# ---- where nothing helps


@pytest.mark.parametrize(
    ("asked", "nodes", "hopeless"),
    [
        (["2", "2"], ["2", "2"], False),
        (["2", "2"], ["2", "1999m"], True),
        (["2", "2"], ["3", "1"], True),  # enough in sum, but on no two nodes, nor on one
        (["2", "2"], ["4", "0"], False),
        (["2", "1"], ["2", "999m", "0"], True),
        (["2", "1"], ["2", "1"], False),  # what the first of them asks for is no measure for the other
        (["1", "1", "1"], ["2", "0"], True),
        (["1", "1"], [{"cpu": "9", "pods": "1"}, {"cpu": "9", "pods": "1"}], False),
        (["1", "1"], [{"cpu": "9", "pods": "1"}, {"cpu": "0", "pods": "9"}], True),
        (["2", "2"], [{"cpu": "2", "memory": "8Gi"}, {"cpu": "2", "memory": "0"}], False),
    ],
)
@pytest.mark.parametrize("is_full", [True, False])
def test_a_rack_is_hopeless_if_not_all_fit_with_everybody_gone(asked, nodes, hopeless, is_full):
    scene = Scene(nodes)
    if is_full:
        first = nodes[0]["cpu"] if isinstance(nodes[0], dict) else nodes[0]
        scene.runs("low", [("n0", first)])
    bounds, near, _ = scene.asks(asked)
    assert bounds.is_hopeless(near) is hopeless


def test_a_node_that_members_must_not_use_does_not_count():
    scene = Scene(["2", "2"])
    scene.desk.modify(node("n1", "2", cordoned=True))
    bounds, near, _ = scene.asks(["2", "2"])
    assert bounds.is_hopeless(near)


@pytest.mark.parametrize(("free", "worthwhile"), [("1999m", False), ("2", True)])
def test_a_rack_is_worthwhile_if_it_has_just_enough_in_sum(free, worthwhile):
    scene = Scene([free, "0"]).runs("high", [("n1", "1")], rank="p9")
    bounds, near, _ = scene.asks(["1", "1"])
    assert bounds.worthwhile()[near.index] == worthwhile
