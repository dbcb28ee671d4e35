"""What sharing plugins count: limits of queues, what was let in, what is held beyond minimums."""

from __future__ import annotations

import numpy as np
import pytest

from builders import Desk, group, node, pod, queue
from pumice.plugins.sharing import admission, flat_limits, queue_limits

GATED = {"schedulingGates": [{"name": "example.com/wait"}]}
QUEUE_GATED = {"schedulingGates": [{"name": "scheduling.volcano.sh/queue-allocation-gate"}]}
GI = 2**30


def cluster(*manifests):
    desk = Desk().feed(node("m", "20", "40Gi", "100", example__acc="8"), *manifests).apply()
    return desk.cluster


def admitted(made, above=None):
    found = admission.Admitted()
    found.open(made, above)
    return found


def amounts(made, matrix, name="default"):
    return made.vocabulary.amounts(matrix[made.queues[name].row])


# -- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "cpu", "memory", "acc"),
    [
        ({}, None, None, None),
        ({"cpu": "3"}, 3000, None, None),
        ({"cpu": "0", "memory": "0"}, None, None, None),
        ({"memory": "1Gi", "example/acc": "0"}, None, GI, 0),
        ({"example/other": "1"}, None, None, None),
    ],
)
def test_unlisted_is_unlimited(capability, cpu, memory, acc):
    made = cluster(queue("red", capability=capability))
    row = queue_limits.ceiling(made.vocabulary, made.queues["red"].capability)
    column = made.vocabulary.columns["example/acc"]
    assert [row[0], row[1], row[column]] == [queue_limits.UNLIMITED if v is None else v for v in (cpu, memory, acc)]


def test_ca1_limit_is_the_cluster_without_the_guarantees_of_others():
    made = cluster(
        queue("ore", guarantee={"resource": {"cpu": "2", "memory": "4Gi"}}, capability={"cpu": "12"}),
        queue("tin"),
        queue("bad", guarantee={"resource": {"cpu": "9"}}, capability={"cpu": "-1"}),
    )
    limits = flat_limits.Limits()
    assert limits.refresh(made)
    rows = {name: limits.real_capability[made.queues[name].row][:2].tolist() for name in ("ore", "tin")}
    assert rows == {"ore": [12_000, 40 * GI], "tin": [18_000, 36 * GI]}
    assert not limits.refresh(made)


def test_guarantees_that_together_exceed_the_cluster_are_scaled_down_but_limit_nobody_below_what_was_written():
    made = cluster(*(queue(name, guarantee={"resource": {"cpu": "15"}}) for name in ("a", "b")))
    limits = flat_limits.Limits()
    limits.refresh(made)
    assert limits.guarantee[made.queues["a"].row, 0] == 10_000
    assert limits.real_capability[made.queues["a"].row, 0] == 15_000
    assert limits.real_capability[made.queues["default"].row, 0] == 0


# -- what was let in -------------------------------------------------------------------------------------------


def inqueue(*manifests):
    made = cluster(*manifests)
    return amounts(made, admitted(made).inqueue)


def test_inqueue_counts_what_is_missing_to_the_minimum():
    minimum = {"cpu": "4", "memory": "4Gi", "example/acc": "1"}
    held = [pod("p", "g", cpu="1", memory="5Gi", node="m")]
    assert inqueue(group("g", phase="Inqueue", minResources=minimum), *held) == {"cpu": 3000, "example/acc": 1000}


@pytest.mark.parametrize(
    ("phase", "members", "counts"),
    [("Running", 1, True), ("Running", 2, False), ("Pending", 1, False), ("Unknown", 1, False)],
)
def test_running_groups_count_only_with_all_members_placed(phase, members, counts):
    found = inqueue(
        group("g", members, phase=phase, minResources={"cpu": "4"}), pod("p", "g", cpu="1", memory="1Gi", node="m")
    )
    assert found == ({"cpu": 3000} if counts else {})


@pytest.mark.parametrize(
    ("gate", "expected"), [(GATED, {"memory": 2 * GI}), (QUEUE_GATED, {"cpu": 4000, "memory": 4 * GI})]
)
def test_core_18_gated_pods_are_taken_off(gate, expected):
    pods = [pod(f"p{i}", "g", cpu="3", memory="1Gi", **gate) for i in range(2)]
    assert inqueue(group("g", phase="Inqueue", minResources={"cpu": "4", "memory": "4Gi"}), *pods) == expected


def test_gate_that_is_taken_away_counts_again():
    desk = Desk().feed(
        node("m"), group("g", phase="Inqueue", minResources={"cpu": "4"}), pod("p", "g", cpu="3", **GATED)
    )
    counted = admission.Admitted()
    seen = []
    for change in (None, pod("p", "g", cpu="3")):
        if change:
            desk.modify(change)
        desk.apply()
        counted.open(desk.cluster)
        seen.append(amounts(desk.cluster, counted.inqueue))
    assert seen == [{"cpu": 1000}, {"cpu": 4000}]


def test_core_19_elastic_is_what_is_held_beyond_the_minimum_or_all_without_one():
    made = cluster(
        group("g", phase="Running", minResources={"cpu": "2"}),
        group("h", phase="Running"),
        pod("p", "g", cpu="5", memory="1Gi", node="m"),
        pod("q", "h", cpu="1", memory="1Gi", node="m"),
    )
    assert amounts(made, admitted(made).elastic) == {"cpu": 4000, "memory": 2 * GI, "pods": 2}


def test_ancestors_count_what_is_below_them():
    made = cluster(
        queue("eng"),
        queue("ml"),
        group("g", queue="ml", phase="Inqueue", minResources={"cpu": "4"}),
        group("h", queue="eng", phase="Inqueue", minResources={"cpu": "1"}),
        group("new", queue="ml", minResources={"cpu": "2"}),
    )
    above = {
        made.queues["ml"].row: [made.queues["eng"].row, made.queues["root"].row],
        made.queues["eng"].row: [made.queues["root"].row],
    }
    counted = admitted(made, above)
    assert [amounts(made, counted.inqueue, name) for name in ("ml", "eng", "root")] == [
        {"cpu": 4000},
        {"cpu": 5000},
        {"cpu": 5000},
    ]
    counted.enter(made.jobs["a/new"])
    assert [amounts(made, counted.inqueue, name)["cpu"] for name in ("ml", "eng", "root")] == [6000, 7000, 7000]


def test_changed_minimum_and_changed_queue_are_followed():
    desk = Desk().feed(node("m"), queue("red"), group("g", phase="Inqueue", minResources={"cpu": "4"}))
    counted = admission.Admitted()
    for written, name, expected in (
        ({"minResources": {"cpu": "4"}}, "default", {"cpu": 4000}),
        ({"minResources": {"memory": "1Gi"}}, "default", {"memory": GI}),
        ({"minResources": {"cpu": "1"}, "queue": "red"}, "red", {"cpu": 1000}),
        ({}, "default", {}),
    ):
        desk.modify(group("g", phase="Inqueue", **written)).apply()
        counted.open(desk.cluster)
        assert amounts(desk.cluster, counted.inqueue, name) == expected


def test_resource_that_a_node_brings_later_is_counted_from_then_on():
    desk = Desk().feed(node("m"), group("g", phase="Inqueue", minResources={"cpu": "1", "example/acc": "2"})).apply()
    counted = admitted(desk.cluster)
    assert amounts(desk.cluster, counted.inqueue) == {"cpu": 1000}
    desk.feed(node("n", example__acc="8")).apply()
    counted.open(desk.cluster)
    assert amounts(desk.cluster, counted.inqueue) == {"cpu": 1000, "example/acc": 2000}


# -- comparing -------------------------------------------------------------------------------------------------


def test_only_what_is_asked_for_is_compared_and_never_pods():
    asked, wanted, limit = np.array([1, 0, 5, 2]), np.array([5, 9, 9, 3]), np.array([4, 1, 1, 3])
    assert queue_limits.exceeded(asked, wanted, limit) == [0]
    assert queue_limits.exceeded(asked, limit, limit) == []
