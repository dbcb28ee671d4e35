"""The points of network topology: who decides about domains, how their scores add up, and what the framework does without an answer."""

from __future__ import annotations

import numpy as np
import pytest

from builders import Desk, group, metadata, node, pod
from pumice.framework.job_domains import ALLOCATE, Limit
from pumice.framework.plugin import Plugin
from pumice.model.hypernodes import ROOT

CONFIG = """
actions: "allocate"
tiers:
- plugins: [{name: gang}%s]
- plugins: [{name: predicates}, {name: nodeorder}%s]
"""
HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


class Picky(Plugin):
    """Allows one hyper-node only."""

    name = "picky"
    points = frozenset({"HyperNodeGradientForJob", "HyperNodeGradientForSubJob", "HyperNodeOrder"})

    def open(self, session):
        session.job_gradient.add(lambda job, root, purpose: [[session.topology.tree.by_name["s1"]]])
        session.sub_job_gradient.add(lambda sub_job, root, purpose: None)
        session.hyper_node_order.add(lambda sub_job, domains: np.array([float(d.name == "s1") for d in domains]))


class Fond(Plugin):
    """Likes the second hyper-node twice as much as the first."""

    name = "fond"
    points = frozenset({"HyperNodeGradientForJob", "HyperNodeOrder"})

    def open(self, session):
        session.job_gradient.add(lambda job, root, purpose: [[root.children[0]], [root.children[1]]])
        session.hyper_node_order.add(lambda sub_job, domains: np.arange(1.0, 1.0 + len(domains)))


def hyper(name, *members):
    listed = [{"type": "Node", "selector": {"exactMatch": {"name": member}}} for member in members]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": metadata(name),
        "spec": {"tier": 1, "members": listed},
    }


def world(first="", second="", *classes):
    desk = Desk(CONFIG % (first, second), *classes)
    desk.feed(*(node(f"n{i}", cpu="2") for i in range(4)), hyper("s0", "n0", "n1"), hyper("s1", "n2", "n3"))
    return desk.feed(group("g", 2, **HARD), *(pod(f"g-{i}", "g", cpu="1") for i in range(2)))


@pytest.mark.parametrize(
    ("first", "second", "domains"),
    [
        ("", "", [[ROOT]]),
        (", {name: picky}", ", {name: fond}", [["s1"]]),
        (", {name: fond}", ", {name: picky}", [["s0"], ["s1"]]),
        (", {name: picky, enabledHyperNodeGradient: false}", ", {name: fond}", [["s0"], ["s1"]]),
    ],
)
def test_the_first_plugin_that_answers_decides_about_domains_alone(first, second, domains):
    desk = world(first, second, Picky, Fond)
    session = desk.session()
    found = session.topology.job_domains(desk.cluster.jobs["a/g"], ALLOCATE)
    assert [[domain.name for domain in group] for group in found] == domains


def test_without_an_answer_a_sub_job_may_use_the_whole_domain_of_its_job():
    desk = world(", {name: picky}", "", Picky)
    session = desk.session()
    inside = session.topology.tree.by_name["s0"]
    sub_job = desk.task("g-0").sub_job
    assert session.topology.sub_job_domains(sub_job, inside, ALLOCATE) == [[inside]]


def test_scores_of_hyper_nodes_add_up():
    desk = world(", {name: picky}", ", {name: fond}", Picky, Fond)
    session = desk.session()
    domains = session.topology.tree.domains
    assert session.topology.order(desk.task("g-0").sub_job, domains).tolist() == [1, 3, 3]


def test_allocate_places_a_job_where_a_plugin_of_another_package_wants_it():
    desk = world(", {name: picky}", "", Picky)
    desk.cycle()
    assert set(desk.world.binds.values()) == {"n2", "n3"}


def test_limits_are_read_against_the_tree_of_the_session():
    desk = world()
    soft = {"networkTopology": {"mode": "soft"}}
    named = {"networkTopology": {"mode": "hard", "highestTierName": "rack"}}
    policy = {"name": "p", "matchLabelKeys": ["part"], "networkTopology": {"mode": "soft"}}
    desk.feed(
        group("s", 1, **soft), group("n", 1, **named), group("p", 1, subGroupPolicy=[policy], **HARD), group("f", 1)
    )
    desk.feed(pod("p-0", "p", cpu="1", labels={"part": "0"}), pod("p-1", "p", cpu="1"))
    topology = desk.session().topology
    jobs = desk.cluster.jobs
    assert {name: topology.limit(jobs[f"a/{name}"]) for name in "gsnpf"} == {
        "g": Limit(1),
        "s": Limit(2, soft=True),
        "n": None,
        "p": Limit(1),
        "f": None,
    }
    assert topology.sub_limit(desk.task("p-0").sub_job) == Limit(1, soft=True)
    assert topology.sub_limit(desk.task("p-1").sub_job) == Limit(1)
