"""What a search carries out and says: room that needs no victim, members without requests, plans for others that are only asked about, and domains that were not tried."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from eviction_hand import ANYWHERE, Hand

from builders import Desk, group, metadata, node, pod, priority_class
from pumice.actions.eviction.search import Search
from pumice.model.statuses import Status

CONFIG = """
actions: "%s"
tiers:
- plugins: [{name: priority}, {name: gang%s}]
- plugins: [{name: predicates}, {name: nodeorder}%s]
%s
"""
HARD = {"mode": "hard", "highestTierAllowed": 1}


def rack(name, *nodes):
    """A hyper-node of some nodes."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in nodes]
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(name)}
    return {**made, "spec": {"tier": 1, "members": members}}


def asking(desk, *cpus, least=None, rank="high", **spec):
    least = len(cpus) if least is None else least
    desk.feed(group("asks", least, phase="Inqueue", priorityClassName=rank, **spec))
    return desk.feed(*(pod(f"asks-{i}", "asks", **({"cpu": cpu} if cpu else {})) for i, cpu in enumerate(cpus)))


def desk_of(actions, *, more="", tail="", starving=""):
    return Desk(CONFIG % (actions, starving, more, tail)).feed(priority_class("low", 1), priority_class("high", 9))


def full(desk, count, *, each="1", name="low"):
    desk.feed(group(name, 0, phase="Running", priorityClassName="low"))
    return desk.feed(*(pod(f"{name}-{i}", name, cpu=each, node="m") for i in range(count)))


def held(desk):
    return sorted(desk.cluster.tasks[uid].name for uid in desk.scheduler.reservations.holds)


# ---- room that needs no victim


@pytest.mark.parametrize("actions", ["preempt", "preempt, allocate", "gangpreempt"])
def test_room_that_needs_no_victim_is_kept_and_allocate_gives_it_in_the_same_cycle_if_it_comes_later(actions):
    desk = asking(full(desk_of(actions).feed(node("m", "3")), 1), "1", "1")
    trace = " ".join(map(str, desk.cycle().trace()))
    assert desk.world.evictions == []
    name = actions.split(",")[0]
    assert "there is room for 2 members without evicting anybody" in trace
    assert name in trace
    if "allocate" in actions:
        assert desk.world.binds == {"asks-0": "m", "asks-1": "m"}
    else:
        assert held(desk) == ["asks-0", "asks-1"]


@pytest.mark.parametrize("racks", [{"a": ["m"]}, {"a": ["m"], "b": ["n"]}])
def test_room_inside_a_hyper_node_that_needs_no_victim_is_kept(racks):
    desk = desk_of("gangpreempt", more=", {name: network-topology-aware}").feed(node("m", "1"), node("n", "2"))
    desk.feed(*(rack(name, *nodes) for name, nodes in racks.items()))
    full(desk, 1)
    asking(desk, "1", "1" if "b" in racks else "", networkTopology=HARD)
    desk.cycle()
    assert held(desk) == (["asks-0", "asks-1"] if "b" in racks else ["asks-0"])
    assert desk.world.evictions == ([] if "b" in racks else ["low-0"])


def test_members_without_requests_alone_keep_no_room():
    desk = asking(desk_of("preempt").feed(node("m", "1")), "", "")
    trace = " ".join(map(str, desk.cycle().trace()))
    assert "without evicting" not in trace
    assert held(desk) == []
    assert {desk.task(f"asks-{i}").status for i in range(2)} == {Status.PENDING}


def test_for_a_gang_with_members_without_requests_room_is_made_for_the_others():
    desk = asking(full(desk_of("preempt").feed(node("m", "2")), 2), "", "1", "")
    desk.cycle()
    assert len(desk.world.evictions) == 1
    assert held(desk) == ["asks-1"]


def test_a_job_beyond_its_minimum_has_room_made_for_each_further_member():
    desk = desk_of("preempt", starving=", enableJobStarving: false").feed(node("m", "4"))
    asking(full(desk, 4), "1", "1", "1", least=0)
    desk.cycle()
    assert len(desk.world.evictions) == 3
    assert held(desk) == ["asks-0", "asks-1", "asks-2"]


# ---- plans for others


@pytest.mark.parametrize(
    ("spared", "asked", "serves"),
    [([], 1, True), (["low-1"], 1, True), (["low-0", "low-1"], 1, False), (["low-1"], 2, False), ([], 3, False)],
)
def test_whether_another_could_be_served_without_those_of_a_plan_is_only_asked(spared, asked, serves):
    hand = Hand(nodes={"m": 2}, running={"low": (0, "low", [("m", 1), ("m", 1)])}, asks=[(asked, ANYWHERE)])
    before = hand.statuses()
    plan = SimpleNamespace(members=[hand.desk.task(name) for name in spared])
    search = Search(hand.plan.session, hand.rules)
    wanted = hand.wanted(lambda: hand.members[0].status is Status.PIPELINED)
    for _ in range(2):
        assert search.could_serve(wanted, spared=plan) is serves
        assert hand.statuses() == before


# ---- domains


def crowded(most, *, first="4"):
    """Three racks full of pods, of which a plan may be made in so many; the first is too small for a gang."""
    tail = f"configurations:\n- {{name: gangpreempt, arguments: {{maxDomains: {most}}}}}\n"
    desk = desk_of("gangpreempt", more=", {name: network-topology-aware}", tail=tail)
    for i, cpu in enumerate((first, "4", "4")):
        desk.feed(
            node(f"n{i}", cpu, labels={"kubernetes.io/hostname": f"n{i}"}),
            rack(f"r{i}", f"n{i}"),
            group(f"g{i}", 0, phase="Running", priorityClassName="low"),
        )
        size = 4 - i if cpu == "4" else 1
        desk.feed(*(pod(f"g{i}-{j}", f"g{i}", cpu="1" if size > 1 else cpu, node=f"n{i}") for j in range(size)))
    return desk


@pytest.mark.parametrize(
    ("most", "told"),
    [
        (1, ", in the first 1 of 3 hyper-nodes (maxDomains)"),
        (2, ", in the first 2 of 3 hyper-nodes (maxDomains)"),
        (3, ""),
    ],
)
def test_whoever_is_refused_is_told_how_many_of_its_hyper_nodes_were_tried(most, told):
    """Each rack has one node with room enough for both members, who will not share it."""
    desk = crowded(most)
    desk.feed(group("asks", 2, phase="Inqueue", priorityClassName="high", networkTopology=HARD))
    minds = {"labels": {"a": "b"}, "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}]}}}  # fmt: skip
    desk.feed(*(pod(f"asks-{i}", "asks", cpu="1", **minds) for i in range(2)))
    said = []
    desk.scheduler.cycle(lambda explainer: said.extend(each.said for each in explainer.job("a/asks").actions))
    considered = "of 9 pods considered: 9 offered, but of no help"
    assert said == [f"no set of pods that may be evicted makes enough room{told}: {considered}"]
    assert desk.world.evictions == []


@pytest.mark.parametrize("asked", ["4", "3"])
def test_of_several_hyper_nodes_the_plan_with_the_fewest_victims_is_carried_out(asked):
    """The first has four pods, the second three, the third two and room for two."""
    desk = asking(crowded(8), asked, networkTopology=HARD)
    desk.cycle()
    assert sorted(desk.world.evictions) == (["g2-0", "g2-1"] if asked == "4" else ["g2-1"])
    assert held(desk) == ["asks-0"]
    running = [task for task in desk.cluster.tasks.values() if task.status is Status.RUNNING]
    assert len(running) == 9 - len(desk.world.evictions)
