"""The tree of hyper-nodes: members, sums that follow, and what a contradiction costs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, metadata, node, pod
from drawing import drawn
from pumice.model.hypernodes import ROOT


def hyper(name, tier, *members, regex="", labels=None):
    listed = [
        {
            "type": "HyperNode" if member.startswith("s") else "Node",
            "selector": {"exactMatch": {"name": member}},
        }
        for member in members
    ]
    if regex:
        listed.append({"type": "Node", "selector": {"regexMatch": {"pattern": regex}}})
    if labels is not None:
        listed.append({"type": "Node", "selector": {"labelMatch": labels}})
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": metadata(name),
        "spec": {"tier": tier, "members": listed},
    }


def tree_of(desk):
    return desk.apply().cluster.hyper_nodes.tree


def nodes_of(desk):
    tree, records = tree_of(desk), desk.cluster.nodes.records
    return {domain.name: [records[row].name for row in domain.rows] for domain in tree.domains}


def test_members_are_found_by_name_pattern_and_label():
    desk = Desk().feed(
        *(node(f"n{i}", labels={"rack": "b" if i > 3 else "a"}) for i in range(6)),
        hyper("s0", 1, "n0", regex="^n[12]$"),
        hyper("s1", 1, labels={"matchLabels": {"rack": "b"}}),
        hyper("s2", 1, labels={"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}),
        hyper("s3", 2, "s0", "s1"),
    )
    assert nodes_of(desk) == {
        "s0": ["n0", "n1", "n2"],
        "s1": ["n4", "n5"],
        "s2": ["n0", "n1", "n2", "n3"],
        "s3": ["n0", "n1", "n2", "n4", "n5"],
        ROOT: [f"n{i}" for i in range(6)],
    }
    assert tree_of(desk).root.tier == 3


def test_the_tree_is_made_anew_only_when_something_it_is_made_of_changes():
    desk = Desk().feed(node("n0", labels={"rack": "a"}), node("n1"), hyper("s0", 1, regex="n0"))
    first = tree_of(desk)
    heavier = node("n0", cpu="9", labels={"rack": "a"})
    desk.modify(node("n1", labels={"rack": "a"}), heavier, hyper("s0", 1, regex="n0"))
    desk.feed(group("g"), pod("g-0", "g", cpu="1", node="n0"))
    assert tree_of(desk) is first
    desk.feed(hyper("s1", 1, labels={"matchLabels": {"rack": "a"}}))
    second = tree_of(desk)
    assert second is not first
    desk.modify(node("n1", labels={"rack": "b"}))
    assert nodes_of(desk)["s1"] == ["n0"]
    desk.feed(node("n00"))
    assert nodes_of(desk)["s0"] == ["n0", "n00"]


def test_which_domains_hold_several_nodes_is_answered_lowest_tier_first():
    desk = Desk().feed(
        *(node(f"n{i}") for i in range(5)),
        hyper("s0", 1, "n0", "n1"),
        hyper("s1", 1, "n1", "n2"),
        hyper("s2", 2, "n3", "s0"),
    )
    tree = tree_of(desk)
    held = {
        rows: [domain.name for domain in tree.containing_all(rows)] for rows in ((0,), (1,), (0, 1), (1, 2), (2, 3))
    }
    assert held == {
        (0,): ["s0", "s2", ROOT],
        (1,): ["s0", "s1", "s2", ROOT],
        (0, 1): ["s0", "s2", ROOT],
        (1, 2): ["s1", ROOT],
        (2, 3): [ROOT],
    }
    assert tree.lowest.tolist() == [0, 0, 1, 2, -1]


@pytest.mark.parametrize(
    ("manifests", "problems", "usable"),
    [
        pytest.param(
            [hyper("s0", 1, "n0"), hyper("s1", 2, "s0"), hyper("s2", 2, "s0")],
            {"s0": "member of s1 and s2", "s1": "its member s0", "s2": "its member s0"},
            {"s0": ["n0"], "s1": [], "s2": []},
            id="two parents",
        ),
        pytest.param(
            [hyper("s0", 1, "n0", "s2"), hyper("s1", 2, "s0", "n1"), hyper("s2", 3, "s1"), hyper("s3", 1, "n2")],
            {"s0": "s0 < s1 < s2 < s0", "s1": "s1 < s2 < s0 < s1", "s2": "s2 < s0 < s1 < s2"},
            {"s3": ["n2"]},
            id="a circle",
        ),
        pytest.param(
            [hyper("s0", 1, "s9", "n0", "gone-1", "gone-2")],
            {"s0": "its member HyperNode s9 does not exist; its member nodes gone-1, gone-2 do not exist"},
            {"s0": ["n0"]},
            id="unknown members",
        ),
        pytest.param(
            [hyper("s0", 2, "n0"), hyper("s1", 2, "s0", "n1")],
            {"s1": "its member s0 is of tier 2, which is not below its own tier 2"},
            {"s0": ["n0"], "s1": ["n1"]},
            id="a member that is not below",
        ),
        pytest.param(
            [hyper("s0", 1, "n0", regex="n[")],
            {"s0": "is no regular expression"},
            {"s0": ["n0"]},
            id="a pattern that is none",
        ),
    ],
)
def test_a_contradiction_is_named_where_it_is_and_costs_only_its_branch(manifests, problems, usable):
    desk = Desk().feed(*(node(f"n{i}") for i in range(3)), *manifests, hyper("s8", 1, "n2"))
    found = nodes_of(desk)
    assert {name: found[name] for name in found if name not in ("s8", ROOT)} == usable
    assert found["s8"] == ["n2"]
    tree = tree_of(desk)
    assert list(tree.problems) == list(problems)
    for name, text in problems.items():
        assert text in tree.problems[name]
        assert any(n == name and text in told for n, _, told in desk.world.notes)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"tier": -1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}]},
            "spec.tier: -1 is outside",
        ),
        (
            {"members": [{"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}]},
            "spec.tier: is missing; it has to be in 0..2147483647",
        ),
        ({"tier": 1, "members": []}, "spec.members: is empty"),
        (
            {"tier": 1, "members": [{"type": "Rack", "selector": {"exactMatch": {"name": "n0"}}}]},
            "members[0].type: Rack is neither",
        ),
        ({"tier": 1, "members": [{"type": "Node", "selector": {}}]}, "members[0].selector: sets nothing"),
        (
            {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n0"}, "labelMatch": {}}}]},
            "sets exactMatch and labelMatch",
        ),
    ],
)
def test_a_hyper_node_that_makes_no_sense_is_left_out_with_the_field_named(spec, message):
    bad = {**hyper("s0", 1, "n0"), "spec": spec}
    desk = Desk().feed(node("n0"), bad, hyper("s1", 1, "n0"))
    assert list(nodes_of(desk)) == ["s1", ROOT]
    assert not tree_of(desk).is_whole
    assert [name for name, _, text in desk.world.notes if message in text] == ["s0"]
    desk.modify(hyper("s0", 1, "n0"))
    assert list(nodes_of(desk)) == ["s0", "s1", ROOT]
    assert tree_of(desk).is_whole
    assert not desk.cache.record.problems()


def test_a_problem_is_told_once_and_taken_back_when_it_is_gone():
    desk = Desk().feed(node("n0"), hyper("s0", 1, "n0", "n1")).apply()
    desk.modify(hyper("s0", 1, "n0", "n1")).apply()
    assert len([name for name, _, _ in desk.world.notes if name == "s0"]) == 1
    assert "n1 do not exist" in desk.cache.record.problems()["HyperNode s0"]
    desk.feed(node("n1")).apply()
    assert not desk.cache.record.problems()
    desk.delete(node("n1")).apply()
    assert len([name for name, _, _ in desk.world.notes if name == "s0"]) == 2
    desk.delete(hyper("s0", 1, "n0", "n1")).apply()
    assert not desk.cache.record.problems()


def test_a_status_that_others_write_on_a_hyper_node_wakes_nobody():
    desk = Desk().feed(node("n0"), hyper("s0", 1, "n0")).apply()
    before = desk.cluster.changed
    desk.modify({**hyper("s0", 1, "n0"), "status": {"nodeCount": 1}}).apply()
    assert desk.cluster.changed == before


@given(
    st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=4), min_size=0, max_size=5),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, 3)), max_size=12),
    st.integers(0, 11),
)
@settings(max_examples=drawn(60), deadline=None)
def test_sums_of_domains_follow_what_changes_on_their_nodes(racks, placed, going):
    desk = Desk().feed(*(node(f"n{i:02d}", cpu=str(4 + i)) for i in range(12)), group("g", 1))
    desk.feed(*(hyper(f"s{k}", 1, *(f"n{i:02d}" for i in rack)) for k, rack in enumerate(racks)))
    totals = desk.cluster.hyper_nodes.totals

    def check():
        tree, table = tree_of(desk), desk.cluster.nodes
        free = table.allocatable - table.used
        later = free + table.releasing - table.pipelined
        for domain in tree.domains:
            assert totals.idle(tree)[domain.index].tolist() == free[domain.rows].sum(axis=0).tolist()
            assert totals.future_idle(tree)[domain.index].tolist() == later[domain.rows].sum(axis=0).tolist()
            assert totals.used(tree)[domain.index].tolist() == table.used[domain.rows].sum(axis=0).tolist()
            counted = np.arange(12)
            assert tree.sums(counted)[domain.index] == counted[domain.rows].sum()

    check()
    for number, (row, cpu) in enumerate(placed):
        desk.feed(pod(f"p{number}", "g", cpu=str(cpu), node=f"n{row:02d}", deleting=number % 3 == 0))
        check()
    desk.delete(node(f"n{going:02d}", cpu=str(4 + going)))
    tree = tree_of(desk)
    assert len(tree.root.rows) == 11
    assert totals.idle(tree)[tree.root.index].tolist() == (
        (desk.cluster.nodes.allocatable - desk.cluster.nodes.used)[:11].sum(axis=0).tolist()
    )


def test_names_of_tiers_are_numbers_and_the_stricter_one_where_two_tiers_share_a_name():
    first, second = hyper("s0", 1, "n0"), hyper("s1", 4, "s0")
    first["spec"]["tierName"] = second["spec"]["tierName"] = "near"
    tree = tree_of(Desk().feed(node("n0"), first, second))
    assert tree.tier_names == {"near": 1}
    assert re.fullmatch(r"<hyper-node s0 tier 1 with 1 nodes>", repr(tree.by_name["s0"]))
