"""network-topology-aware: worked cases NT1 to NT4 and what follows from its arguments."""

from __future__ import annotations

import numpy as np
import pytest

from builders import Desk, group, metadata, node, pod
from pumice.framework.job_domains import ALLOCATE, EVICT
from pumice.framework.subject import Subject
from pumice.model.hypernodes import ROOT

CONFIG = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: network-topology-aware%s}]
"""
GI = "Gi"


def hyper(name, tier, *members):
    kind = "HyperNode" if members[0].startswith("s") else "Node"
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": metadata(name),
        "spec": {"tier": tier, "members": listed},
    }


def tree(cpu="16", memory="32Gi", **special):
    """Leaves s0 to s3 of two nodes each, s4 and s5 above them, s6 over all."""
    nodes = [node(f"n{i}", cpu=special.get(f"n{i}", cpu), memory=memory) for i in range(8)]
    leaves = [hyper(f"s{k}", 1, f"n{2 * k}", f"n{2 * k + 1}") for k in range(4)]
    return [*nodes, *leaves, hyper("s4", 2, "s0", "s1"), hyper("s5", 2, "s2", "s3"), hyper("s6", 3, "s4", "s5")]


def hard(tier):
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}}


def opened(*manifests, arguments=""):
    desk = Desk(CONFIG % (f", arguments: {{{arguments}}}" if arguments else "")).feed(*manifests)
    return desk, desk.session()


def plugin(desk):
    return desk.scheduler.engine.plugins[0][1]


def names(groups):
    return [[domain.name for domain in group] for group in groups]


def rows(desk, *listed):
    return np.array([desk.node(name).row for name in listed])


# ---- NT1: nearness


@pytest.mark.parametrize(
    ("members", "candidates", "scores"),
    [
        (1, ("n0", "n2", "n4"), (100, 66.667, 33.333)),
        (4, ("n0", "n1", "n2"), (125, 125, 66.667)),
    ],
)
def test_nodes_score_by_how_near_they_are_to_where_the_sub_job_runs(members, candidates, scores):
    others = [pod(f"g-{i}", "g", cpu="1") for i in range(1, members)]
    desk, session = opened(
        *tree(), group("g", 1, **hard(3)), pod("g-0", "g", cpu="1", node="n0"), *others, pod("x", "g", cpu="1")
    )
    task = desk.task("x")
    if members == 4:
        desk.delete(pod("x", "g", cpu="1"))
        session = desk.session()
        task = desk.task("g-1")
    follower = plugin(desk).near(Subject(task), session.cluster.nodes)
    assert follower.points(rows(desk, *candidates)) == pytest.approx(scores, abs=0.001)


def test_a_sub_job_that_runs_nowhere_has_no_nearness():
    desk, session = opened(*tree(), group("g", 1, **hard(3)), pod("g-0", "g", cpu="1"))
    assert plugin(desk).is_near(Subject(desk.task("g-0")), session.cluster.nodes.view()) is None


def test_a_node_outside_every_hyper_node_is_not_near_to_anything():
    desk, session = opened(
        *tree(), node("x"), group("g", 1, **hard(3)), pod("g-0", "g", cpu="1", node="n0"), pod("g-1", "g", cpu="1")
    )
    follower = plugin(desk).near(Subject(desk.task("g-1")), session.cluster.nodes)
    assert follower.points(rows(desk, "n0", "x")) == pytest.approx((100, 0))


# ---- NT2: the order of hyper-nodes


def test_hyper_nodes_score_by_how_full_they_would_be():
    running = [
        pod("a", "old", requests={"cpu": "8", "memory": "16Gi"}, node="n0"),
        pod("b", "old", requests={"cpu": "16", "memory": "16Gi"}, node="n2"),
        pod("c", "old", requests={"cpu": "15"}, node="n4"),
        pod("d", "old", requests={"cpu": "15"}, node="n5"),
    ]
    wanted = [pod(f"g-{i}", "g", requests={"cpu": "2", "memory": "4Gi"}) for i in range(4)]
    desk, session = opened(*tree(), group("old"), *running, group("g", 4, **hard(1)), *wanted)
    domains = [session.topology.tree.by_name[name] for name in ("s0", "s1", "s2")]
    sub_job = desk.task("g-0").sub_job
    assert session.topology.order(sub_job, domains) == pytest.approx((50, 62.5, 0))


def test_of_hyper_nodes_that_are_equally_full_the_one_with_more_of_the_tasks_scores_more():
    desk, session = opened(
        *tree(), group("g", 1, **hard(3)), pod("g-0", "g", cpu="1", node="n0"), pod("h-0", "g", cpu="1", node="n2"),
        pod("g-1", "g", cpu="1", node="n1"), pod("g-2", "g", cpu="1"), group("old"), pod("o", "old", cpu="1", node="n3"),
    )  # fmt: skip
    domains = [session.topology.tree.by_name[name] for name in ("s0", "s1")]
    full = (2 + 4) / 32 * 100
    assert session.topology.order(desk.task("g-2").sub_job, domains) == pytest.approx((full + 50, full + 25))


# ---- NT3: gradients


def gradient_world(*more):
    """Idle cpus: s0 20, s1 10, s2 16, s3 4."""
    used = {"n0": 6, "n1": 6, "n2": 11, "n3": 11, "n4": 8, "n5": 8, "n6": 14, "n7": 14}
    running = [pod(f"o-{name}", "old", cpu=str(cpu), node=name) for name, cpu in used.items()]
    return opened(*tree(), group("old"), *running, *more)


def test_a_limit_groups_hyper_nodes_with_enough_free_by_tier():
    desk, session = gradient_world(
        group("g", 1, minResources={"cpu": "16"}, **hard(2)), *(pod(f"g-{i}", "g", cpu="1") for i in range(2))
    )
    assert names(session.topology.job_domains(desk.cluster.jobs["a/g"], ALLOCATE)) == [
        ["s0", "s2"],
        ["s4", "s5"],
    ]


def test_members_that_run_open_everything_below_the_highest_hyper_node_that_holds_them():
    desk, session = gradient_world(
        group("g", 1, minResources={"cpu": "16"}, **hard(2)),
        pod("g-0", "g", cpu="0", node="n2"),
        pod("g-1", "g", cpu="1"),
    )
    assert names(session.topology.job_domains(desk.cluster.jobs["a/g"], ALLOCATE)) == [["s0", "s1"], ["s4"]]


def test_to_evict_in_the_widest_come_first_and_only_as_many_as_are_asked_for():
    members = (group("g", 1, minResources={"cpu": "20"}, **hard(2)), pod("g-0", "g", cpu="1"))
    desk, session = gradient_world(*members)
    job = desk.cluster.jobs["a/g"]
    assert names(session.topology.job_domains(job, EVICT)) == [["s4", "s5"], ["s0", "s1", "s2", "s3"]]
    desk, session = opened(*tree(), *members, arguments="hypernode.gradient.evict.max-hypernodes: 3")
    job = desk.cluster.jobs["a/g"]
    assert names(session.topology.job_domains(job, EVICT)) == [["s4", "s5"], ["s3"]]


def test_room_that_will_be_released_counts_as_free():
    desk, session = opened(
        *tree(cpu="8"), group("old"), *(pod(f"o-{i}", "old", cpu="8", node=f"n{i}", deleting=9) for i in range(2)),
        *(pod(f"p-{i}", "old", cpu="8", node=f"n{i}") for i in range(2, 8)),
        group("g", 1, minResources={"cpu": "16"}, **hard(1)), pod("g-0", "g", cpu="1"),
    )  # fmt: skip
    assert names(session.topology.job_domains(desk.cluster.jobs["a/g"], ALLOCATE)) == [["s0"]]


def test_a_sub_job_asks_for_what_its_minimum_still_lacks():
    policy = {
        "name": "ring",
        "subGroupSize": 2,
        "matchLabelKeys": ["part"],
        "networkTopology": hard(1)["networkTopology"],
    }
    members = [pod(f"g-{i}", "g", cpu="8", labels={"part": "0"}) for i in range(3)]
    desk, session = gradient_world(group("g", 1, subGroupPolicy=[policy]), *members)
    sub_job = desk.task("g-0").sub_job
    root = session.topology.tree.root
    assert names(session.topology.sub_job_domains(sub_job, root, ALLOCATE)) == [["s0", "s2"]]
    s4 = session.topology.tree.by_name["s4"]
    assert names(session.topology.sub_job_domains(sub_job, s4, ALLOCATE)) == [["s0"]]


def test_a_soft_wish_reaches_up_to_the_virtual_root():
    desk, session = opened(*tree(), group("g", 1, networkTopology={"mode": "soft"}), pod("g-0", "g", cpu="1"))
    groups = names(session.topology.job_domains(desk.cluster.jobs["a/g"], ALLOCATE))
    assert groups == [["s0", "s1", "s2", "s3"], ["s4", "s5"], ["s6"], [ROOT]]


def test_a_resource_that_no_node_offers_is_free_nowhere():
    desk, session = opened(
        *tree(), group("g", 1, minResources={"example.com/gpu": "1"}, **hard(2)), pod("g-0", "g", cpu="1")
    )
    assert session.topology.job_domains(desk.cluster.jobs["a/g"], ALLOCATE) == []


# ---- NT4: ordinary pods


def test_ordinary_pods_are_drawn_to_full_hyper_nodes_the_lower_tiers_counting_more():
    # With the pod: s0 16 of 32, s4 25.6 of 64, s6 and the root 38.4 of 128.
    used = {"n1": "15500m", "n2": "9600m", "n4": "12800m"}
    running = [pod(f"o-{name}", "old", cpu=cpu, node=name) for name, cpu in used.items()]
    desk, session = opened(*tree(), group("old"), *running, group("g", 1), pod("g-0", "g", cpu="500m"))
    follower = plugin(desk).fill(Subject(desk.task("g-0")), session.cluster.nodes)
    assert follower.points(rows(desk, "n0"))[0] == pytest.approx(39.485, abs=0.001)


def test_what_a_follower_says_after_placements_is_what_it_would_say_anew():
    desk, session = opened(*tree(), node("x"), group("g", 6), *(pod(f"g-{i}", "g", cpu="2") for i in range(6)))
    own, tasks = plugin(desk), [desk.task(f"g-{i}") for i in range(6)]
    follower = own.fill(Subject(tasks[5]), session.cluster.nodes)
    statement = session.statement()
    everywhere = session.cluster.nodes.rows
    for task, name in zip(tasks, ("n0", "n0", "n5", "x", "n7"), strict=False):
        statement.allocate([task], [desk.node(name)])
        follower.place(desk.node(name).row)
        anew = own.fill(Subject(tasks[5]), session.cluster.nodes).points(everywhere)
        assert follower.points(everywhere) == pytest.approx(anew)


def test_fading_of_zero_leaves_only_the_lowest_tier():
    desk, session = opened(
        *tree(), group("old"), pod("o", "old", cpu="15", node="n0"), group("g", 1), pod("g-0", "g", cpu="1"),
        arguments="hypernode.binpack.normal-pod.fading: 0",
    )  # fmt: skip
    follower = plugin(desk).fill(Subject(desk.task("g-0")), session.cluster.nodes)
    assert follower.points(rows(desk, "n1"))[0] == pytest.approx(50)


def test_further_resources_count_if_they_are_named():
    nodes = [node(f"n{i}", cpu="16", memory="32Gi", example__com_gpu=None) for i in range(2)]
    for each in nodes:
        each["status"]["allocatable"]["example.com/gpu"] = "4"
    manifests = [*nodes, hyper("s0", 1, "n0"), hyper("s1", 1, "n1"), group("g", 1, **hard(1))]
    manifests.append(pod("g-0", "g", requests={"cpu": "8", "example.com/gpu": "1"}))
    desk, session = opened(
        *manifests,
        arguments="hypernode.binpack.resources: example.com/gpu, hypernode.binpack.resources.example.com/gpu: 3",
    )
    domains = [session.topology.tree.by_name["s0"]]
    assert session.topology.order(desk.task("g-0").sub_job, domains) == pytest.approx([(0.5 + 3 * 0.25) / 4 * 100])


def test_without_hyper_nodes_no_score_is_registered():
    desk, session = opened(node("n0"), group("g", 1), pod("g-0", "g", cpu="1"))
    assert not session.score.active
    assert names(session.topology.job_domains(desk.cluster.jobs["a/g"], ALLOCATE)) == [[ROOT]]
