"""Scores to the point: worked cases of binpack, nodeorder and kube-predicates.md."""

from __future__ import annotations

import json

import numpy as np
import pytest

from builders import Desk, group, node, pod
from pumice.framework.subject import Subject

ACC = "example.com/acc"


def scores(plugin, arguments, nodes, asked, *, held=None, **more):
    """Score nodes for a pod: what the plugins' functions add up to, normalised over all nodes."""
    text = json.dumps({"actions": "allocate", "tiers": [{"plugins": [{"name": plugin, "arguments": arguments}]}]})
    desk = Desk(text).feed(*nodes, group("g"), pod("p", "g", requests=asked, **more))
    if held:
        desk.feed(pod("held", requests=held, node=nodes[0]["metadata"]["name"], scheduler="other"))
    session = desk.session()
    evaluation = session.evaluate(Subject(desk.task("p")))
    evaluation.refresh_scores()
    everybody = np.arange(desk.cluster.nodes.count)
    return (evaluation.plain + evaluation.normalised(everybody)).tolist()


@pytest.mark.parametrize(
    ("arguments", "offered", "held", "asked", "expected"),
    [
        pytest.param({}, {}, {"cpu": "2", "memory": "4Gi"}, {"cpu": "2", "memory": "4Gi"}, 50, id="BP1"),
        pytest.param(
            {
                "binpack.weight": 10,
                "binpack.cpu": 5,
                "binpack.memory": 1,
                "binpack.resources": ACC,
                f"binpack.resources.{ACC}": 2,
            },
            {"cpu": "32", "memory": "128Gi", "example.com__acc": "8"},
            {"cpu": "12", "memory": "40Gi", ACC: "2"},
            {"cpu": "4", "memory": "8Gi", ACC: "2"},
            484.375,
            id="BP2",
        ),
        pytest.param({}, {}, {"cpu": "7", "memory": "4Gi"}, {"cpu": "2", "memory": "4Gi"}, 0, id="BP3"),
        pytest.param(
            {"binpack.resources": ACC, f"binpack.resources.{ACC}": 2},
            {},
            {"cpu": "2", "memory": "4Gi"},
            {"cpu": "2", "memory": "4Gi", ACC: "1"},
            25,
            id="BP4",
        ),
    ],
)
def test_binpack_scores_the_used_share_with_the_pod(arguments, offered, held, asked, expected):
    assert scores("binpack", arguments, [node("amber", **offered)], asked, held=held) == [expected]


def only(name, weight=1):
    """Arguments that switch off every score of nodeorder but one."""
    weights = dict.fromkeys(
        (
            "leastrequested",
            "mostrequested",
            "nodeaffinity",
            "podaffinity",
            "balancedresource",
            "tainttoleration",
            "imagelocality",
            "podtopologyspread",
        ),
        0,
    )
    return {f"{each}.weight": weight if each == name else off for each, off in weights.items()}


@pytest.mark.parametrize(
    ("held", "asked", "expected"),
    [
        pytest.param(
            {"cpu": "2", "memory": "4Gi"},
            {"cpu": "1", "memory": "2Gi"},
            {"leastrequested": 62, "mostrequested": 37, "balancedresource": 75},
            id="NO1",
        ),
        pytest.param(
            {"cpu": "6", "memory": "2Gi"},
            {"cpu": "1", "memory": "2Gi"},
            {"leastrequested": 43, "balancedresource": 75},
            id="NO2",
        ),
        pytest.param(
            {"cpu": "1", "memory": "8Gi"},
            {"cpu": "3", "memory": "1Gi"},
            {"leastrequested": 46, "balancedresource": 82},
            id="NO3",
        ),
    ],
)
def test_nodeorder_scores_amounts_as_kubernetes_does(held, asked, expected):
    found = {name: scores("nodeorder", only(name), [node("n")], asked, held=held)[0] for name in expected}
    assert found == expected


def test_no1_with_default_weights_adds_up():
    held, asked = {"cpu": "2", "memory": "4Gi"}, {"cpu": "1", "memory": "2Gi"}
    (total,) = scores("nodeorder", {"imagelocality.weight": 0}, [node("n")], asked, held=held)
    assert total in (137, 437)  # the constant 300 of taints that no node has changes no order


def test_no4_untolerated_soft_taints_and_preferred_affinity_are_normalised_over_the_candidates():
    soft = [{"key": key, "effect": "PreferNoSchedule"} for key in ("x", "y")]
    nodes = [node("a", taints=soft), node("b"), node("c", taints=soft[:1])]
    assert scores("nodeorder", only("tainttoleration", 3), nodes, {"cpu": "1"}) == [0, 300, 150]


PREFERENCES = [
    {"weight": 80, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}},
    {"weight": 20, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}},
]


@pytest.mark.parametrize(("weight", "expected"), [(1, [100, 20, 0]), (2, [200, 40, 0])])
def test_kp9_preferred_node_affinity_adds_up_the_weights_of_matching_terms(weight, expected):
    nodes = [node("a", labels={"disk": "ssd", "zone": "a"}), node("b", labels={"zone": "a"}), node("c")]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": PREFERENCES}}
    assert scores("nodeorder", only("nodeaffinity", weight), nodes, {"cpu": "1"}, affinity=affinity) == expected


def test_kp10_a_pod_without_requests_counts_with_stand_ins_and_is_not_balanced():
    held = {"cpu": "2", "memory": "4Gi"}
    assert scores("nodeorder", only("leastrequested"), [node("n")], {}, held=held) == [73]
    assert scores("nodeorder", only("balancedresource"), [node("n")], {}, held=held) == [0]


def test_kp13_balance_over_three_resources():
    offered = {"cpu": "16", "memory": "64Gi", "nvidia.com__gpu": "8"}
    held = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "6"}
    asked = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
    assert scores("nodeorder", only("balancedresource"), [node("n", **offered)], asked, held=held) == [75]
