"""How far apart members of a job may be, where they are, and where one more may go: hyper-nodes, and values of a node label."""

from __future__ import annotations

import numpy as np
import pytest

from builders import GANG, Desk, group, metadata, node, pod
from pumice.framework.job_domains import ALLOCATE, LABELLED, Limit, Purpose
from pumice.model.hypernodes import ROOT

TREE = GANG.replace("{name: nodeorder}", "{name: nodeorder}, {name: network-topology-aware}")
ZONES = {"n0": "z0", "n1": "z0", "n2": "z1", "n3": "z1"}
RACKS = {"rack-0": ("n0", "n1"), "rack-1": ("n2", "n3")}
LABEL = {"topology": [{"key": "zone"}]}


def hyper(name, tier, members, kind="Node", tier_name=""):
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    spec = {"tier": tier, "members": listed, **({"tierName": tier_name} if tier_name else {})}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": metadata(name),
        "spec": spec,
    }


def native(name, constraints):
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": metadata(name, "a", f"native.{name}"),
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "schedulingConstraints": constraints},
    }


def of_native(name, owner, **fields):
    return pod(name, cpu="1", schedulingGroup={"podGroupName": owner}, **fields)


def world(text=TREE):
    """Two racks in a block, each a zone, and a node outside."""
    desk = Desk(text)
    for name in ("n0", "n1", "n2", "n3", "n4"):
        desk.feed(node(name, "4", "16Gi", labels={"zone": ZONES[name]} if name in ZONES else {}))
    desk.feed(*(hyper(name, 1, members) for name, members in RACKS.items()))
    return desk.feed(hyper("block", 2, RACKS, "HyperNode", "aisle"))


def job(desk, name="g"):
    desk.apply()
    return next(each for key, each in desk.cluster.jobs.items() if key.startswith(f"a/{name}"))


def names_of(desk, rows):
    return None if rows is None else [desk.cluster.nodes.records[row].name for row in rows]


# ---- limits

WISHES = [
    ("none", None, None),
    ("up to a tier", {"mode": "hard", "highestTierAllowed": 1}, Limit(1)),
    ("up to a tier by its name", {"mode": "hard", "highestTierName": "aisle"}, Limit(2)),
    ("up to a tier that nobody has", {"mode": "hard", "highestTierName": "hall"}, None),
    ("as near as can be", {"mode": "soft"}, Limit(3, soft=True)),
    ("as near as can be, whatever tier is named", {"mode": "soft", "highestTierAllowed": 1}, Limit(3, soft=True)),
    ("no tier", {"mode": "hard"}, None),
]


@pytest.mark.parametrize("has_plugin", [False, True])
@pytest.mark.parametrize(("wish", "limit"), [row[1:] for row in WISHES], ids=[row[0] for row in WISHES])
def test_a_limit_is_read_against_the_tree_and_heeded_where_a_plugin_sees_to_it(wish, limit, has_plugin):
    desk = world(TREE if has_plugin else GANG)
    desk.feed(group("g", 1, **({"networkTopology": wish} if wish else {})), pod("g-0", "g", cpu="1"))
    session, made = desk.session(), job(desk)
    topology = session.topology
    assert topology.limit(made) == topology.limit(made) == limit
    assert topology.heeded(made) == (limit if has_plugin else None)
    assert topology.steers(made) is (has_plugin and limit is not None)
    assert topology.sub_limit(desk.task("g-0").sub_job) == limit


def test_a_label_is_heeded_whatever_plugins_are_listed():
    desk = world(GANG).feed(native("g", LABEL), of_native("g-0", "g"))
    topology, made = desk.session().topology, job(desk)
    assert topology.limit(made) == topology.heeded(made) == LABELLED
    assert topology.steers(made)
    assert {child.name for child in topology.tree_of(made).root.children} == {"z0", "z1"}


def test_a_job_in_sub_groups_is_placed_one_by_one_and_each_keeps_its_own_wish_inside_that_of_the_job():
    def policy(**wish):
        return {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 1, "minSubGroups": 1, **wish}

    desk = world()
    hard = {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}}
    rack = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    soft = {"networkTopology": {"mode": "soft"}}
    cases = {
        "plain": (policy(), {}),
        "soft": (policy(**soft), {}),
        "inside": (policy(**soft), hard),
        "tight": (policy(**rack), hard),
        "free": (policy(), hard),
    }
    for name, (each, wish) in cases.items():
        desk.feed(group(name, 1, subGroupPolicy=[each], **wish))
        desk.feed(pod(f"{name}-0", name, cpu="1", labels={"part": "0"}))
    topology = desk.session().topology
    assert {name: topology.sub_limit(desk.task(f"{name}-0").sub_job) for name in cases} == {
        "plain": None,
        "soft": Limit(3, soft=True),
        "inside": Limit(2, soft=True),
        "tight": Limit(1),
        "free": None,
    }
    assert all(topology.steers(job(desk, name)) for name in cases)


def test_a_tier_that_nobody_has_is_told_until_somebody_has_it_and_a_trial_takes_that_back():
    desk = world().feed(group("g", 1, networkTopology={"mode": "hard", "highestTierName": "hall"}))
    desk.feed(pod("g-0", "g", cpu="1"))
    session, made = desk.session(), job(desk)
    journal = session.findings.journal
    mark = journal.begin()
    assert session.topology.limit(made) is None
    assert "highestTierName hall" in str(session.record.verdicts(made.key))
    assert [each for each, text in session.findings.warnings if "highestTierName hall" in text] == [made]
    journal.back_to(mark)
    assert session.findings.warnings == []
    assert "highestTierName" not in str(session.record.verdicts(made.key))
    assert session.topology.limit(made) is None
    assert "highestTierName hall" in str(session.record.verdicts(made.key))
    session.rollback()
    desk.feed(hyper("hall", 3, ["block"], "HyperNode", "hall"))
    session = desk.session()
    assert session.topology.limit(made) == Limit(3)
    assert "highestTierName" not in str(session.record.verdicts(made.key))


# ---- where members are


def test_members_are_where_they_have_a_node_each_node_once_and_as_of_now():
    desk = world().feed(
        group("g", 1), *(pod(f"g-{i}", "g", cpu="1", node=at) for i, at in enumerate(("n2", "n0", "n2")))
    )
    desk.feed(pod("g-3", "g", cpu="1"), pod("g-4", "g", cpu="1", node="n1", phase="Succeeded"))
    desk.feed(pod("g-5", "g", cpu="1", node="n3", deleting=9))  # it goes, and another may come elsewhere
    session, made = desk.session(), job(desk)
    found = session.topology.rows(made)
    assert sorted(names_of(desk, found)) == ["n0", "n2"]
    assert session.topology.rows(made) is found
    session.statement().suppose([desk.task("g-3")], [desk.node("n4")], desk.task("g-0").status)
    assert sorted(names_of(desk, session.topology.rows(made))) == ["n0", "n2", "n4"]
    assert session.topology.rows(desk.task("g-0").sub_job) == session.topology.rows(made)


@pytest.mark.parametrize(
    ("nodes", "domains"),
    [
        (["n0"], ["rack-0", "block", ROOT]),
        (["n0", "n1"], ["rack-0", "block", ROOT]),
        (["n1", "n2"], ["block", ROOT]),
        (["n1", "n4"], [ROOT]),
        (["n0", None], [ROOT]),
    ],
)
def test_what_holds_all_of_some_nodes_is_told_the_lowest_first_and_what_is_gone_is_nowhere(nodes, domains):
    desk = world()
    topology = desk.session().topology
    rows = [desk.cluster.nodes.count if name is None else desk.node(name).row for name in nodes]
    assert [each.name for each in topology.containing(rows)] == domains


# ---- where one more may go

REACH = [
    ("a job without a wish", TREE, {}, [], None),
    ("a wish that nobody sees to", GANG, {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}, ["n0"], None),
    ("near those that run", TREE, {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}, ["n0"], ["n0", "n1"]),
    ("up to a block", TREE, {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}}, ["n0"], ["n0", "n1", "n2", "n3"]),
    ("any rack, but none outside", TREE, {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}, [], ["n0", "n1", "n2", "n3"]),
    ("anywhere, as near as can be", TREE, {"networkTopology": {"mode": "soft"}}, ["n0"], None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wish", "run", "reach"), [row[1:] for row in REACH], ids=[row[0] for row in REACH])
def test_one_more_member_may_go_where_the_wish_of_its_job_allows_it_beside_those_that_run(text, wish, run, reach):
    desk = world(text).feed(group("g", 1, **wish), pod("g-0", "g", cpu="1"))
    desk.feed(*(pod(f"r-{i}", "g", cpu="1", node=at) for i, at in enumerate(run)))
    session = desk.session()
    assert names_of(desk, session.topology.reach(desk.task("g-0"))) == reach


def test_a_sub_group_has_its_own_reach_though_its_job_has_no_wish():
    policy = {"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 2, "minSubGroups": 1}
    rack = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    desk = world().feed(group("g", 1, subGroupPolicy=[{**policy, **rack}]), group("h", 1, subGroupPolicy=[policy]))
    for owner in "gh":
        desk.feed(pod(f"{owner}-0", owner, cpu="1", labels={"part": "0"}, node="n2"))
        desk.feed(pod(f"{owner}-1", owner, cpu="1", labels={"part": "0"}))
    session = desk.session()
    assert names_of(desk, session.topology.reach(desk.task("g-1"))) == ["n2", "n3"]
    assert session.topology.reach(desk.task("h-1")) is None


@pytest.mark.parametrize(
    ("run", "domains", "reach"),
    [
        ([], ["z0", "z1"], ["n0", "n1", "n2", "n3"]),
        (["n3"], ["z1"], ["n2", "n3"]),
        (["n0", "n3"], [], []),
        (["n4"], [], []),
    ],
)
def test_members_of_a_native_group_share_one_value_of_their_label(run, domains, reach):
    desk = world(GANG).feed(native("g", LABEL), of_native("g-0", "g"))
    desk.feed(*(of_native(f"r-{i}", "g", node=at) for i, at in enumerate(run)))
    session, made = desk.session(), job(desk)
    (found,) = session.topology.job_domains(made, ALLOCATE)
    assert sorted(each.name for each in found) == domains
    assert names_of(desk, session.topology.reach(desk.task("g-0"))) == reach


def test_values_of_a_label_that_are_not_worthwhile_are_left_out():
    desk = world(GANG).feed(native("g", LABEL), of_native("g-0", "g"))
    session, made = desk.session(), job(desk)
    children = session.topology.tree_of(made).root.children
    mask = np.array([True] * (max(each.index for each in children) + 1))
    mask[children[0].index] = False
    (found,) = session.topology.job_domains(made, Purpose(evicts=True, worthwhile=mask))
    assert [each.name for each in found] == [each.name for each in children[1:]]


def test_of_values_of_a_label_the_fullest_is_the_best():
    """The mean of the shares of cpu and of memory that are used, each in whole percent."""
    desk = world(GANG).feed(native("g", LABEL), of_native("g-0", "g"))
    desk.feed(*(pod(f"x{i}", cpu="4", memory="4Gi", node=f"n{i}", scheduler="else") for i in range(2)))
    desk.feed(pod("y", cpu="1", memory="4Gi", node="n3", scheduler="else"))
    session = desk.session()
    domains = sorted(session.topology.tree_of(job(desk)).root.children, key=lambda each: each.name)
    assert session.topology.order(desk.task("g-0").sub_job, domains).tolist() == [(100 + 25) / 2, (12 + 12) / 2]


def test_a_pod_of_no_job_may_go_anywhere():
    desk = world().feed(pod("alone", cpu="1"))
    assert desk.session().topology.reach(desk.task("alone")) is None
