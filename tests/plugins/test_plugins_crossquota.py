"""crossquota: pods without GPUs hold no more than their quota of nodes with GPUs, whoever comes when, and are packed or spread there."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from builders import Desk, group, node, pod
from pumice.framework import configuration, registry
from pumice.framework.subject import Subject

GPU = "nvidia.com/gpu"
STRATEGY = "volcano.sh/crossquota-scoring-strategy"
QUOTA = {"gpu-resource-names": "nvidia.com/gpu, amd.com/.*", "quota-resources": "cpu,memory", "quota.cpu": "4"}


def config(**arguments):
    tiers = [{"plugins": [{"name": "gang"}]}, {"plugins": [{"name": "predicates"}, {"name": "crossquota"}]}]
    tiers[1]["plugins"][1]["arguments"] = arguments
    return json.dumps({"actions": "enqueue, allocate, backfill", "tiers": tiers})


def gpu_node(name, cpu="16", gpus="8", **more):
    return node(name, cpu, memory="64Gi", nvidia__com___gpu=None, **more) | {
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110", GPU: gpus}}
    }


def desk(*nodes, plain=False, **arguments):
    return Desk(config(**{**QUOTA, **arguments}), plain=plain).feed(*nodes)


def asking(name, cpu="2", gpus=0, memory=None, **more):
    requests = {"cpu": cpu} | ({GPU: str(gpus)} if gpus else {}) | ({"memory": memory} if memory else {})
    return [group(f"g-{name}"), pod(name, f"g-{name}", requests=requests, **more)]


def test_pods_without_gpus_stop_at_the_quota_and_others_do_not():
    found = desk(gpu_node("n1"))
    for index in range(3):
        found.feed(*asking(f"plain-{index}"), *asking(f"gpu-{index}", gpus=1))
    found.cycle()
    assert sorted(found.world.binds) == ["gpu-0", "gpu-1", "gpu-2", "plain-0", "plain-1"]
    told = found.cache.record.explain("a/g-plain-2")
    assert "had no room left of what pods without GPUs may hold there" in told


def test_nodes_without_gpus_are_not_limited():
    found = desk(node("n1", "16"), gpu_node("n2", gpus="0"))
    found.feed(*(each for index in range(12) for each in asking(f"plain-{index}")))
    found.cycle()
    assert len(found.world.binds) == 12


@pytest.mark.parametrize(
    ("arguments", "annotations", "fit"),
    [
        ({}, {}, 4),
        ({"quota.cpu": "6"}, {}, 6),
        ({"quota-percentage.cpu": "50"}, {}, 4),
        ({}, {"volcano.sh/crossquota-cpu": "2500m"}, 2),
        ({}, {"volcano.sh/crossquota-percentage-cpu": "50"}, 8),
        ({}, {"volcano.sh/crossquota-cpu": "3", "volcano.sh/crossquota-percentage-cpu": "50"}, 3),
        ({}, {"volcano.sh/crossquota-cpu": "three"}, 4),
        ({"quota.memory": "2Gi"}, {}, 2),
    ],
)
def test_the_first_word_about_a_quota_counts(arguments, annotations, fit):
    made = gpu_node("n1")
    made["metadata"]["annotations"] = annotations
    found = desk(made, **arguments)
    found.feed(*(each for index in range(16) for each in asking(f"p{index}", "1", memory="1Gi")))
    found.cycle()
    assert len(found.world.binds) == fit


def test_an_annotation_that_comes_later_counts_from_then_on():
    found = desk(gpu_node("n1")).feed(*asking("large", "5"))
    found.cycle()
    assert found.world.binds == {}
    changed = gpu_node("n1")
    changed["metadata"]["annotations"] = {"volcano.sh/crossquota-cpu": "5"}
    found.modify(changed).cycle()
    assert found.world.binds == {"large": "n1"}


def test_only_pods_with_the_labels_that_are_asked_for_count_and_are_limited():
    found = desk(gpu_node("n1"), **{"label-selector": {"matchLabels": {"tier": "batch"}}})
    found.feed(*asking("free", "6", labels={"tier": "web"}))
    for index in range(3):
        found.feed(*asking(f"batch-{index}", labels={"tier": "batch"}))
    found.cycle()
    assert sorted(found.world.binds) == ["batch-0", "batch-1", "free"]


def scores(found, name):
    session = found.session()
    subject = Subject(found.task(name))
    (function,) = [each for each in session.score if each.plugin == "crossquota"]
    return [round(points, 3) for points in function.function(subject, found.cluster.nodes.view()).tolist()]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, [8.636, 1.364, 0.0]),
        ({STRATEGY: "least-allocated"}, [1.364, 8.636, 0.0]),
        ({STRATEGY: "unknown"}, [8.636, 1.364, 0.0]),
    ],
)
def test_the_score_is_the_part_of_the_quota_that_such_pods_would_hold(annotations, expected):
    quota = {"quota.cpu": "32", "quota.memory": "64Gi", "weight.cpu": 10, "weight.memory": 1}
    found = desk(gpu_node("n1", "64"), gpu_node("n2", "64"), node("n3", "64"), **quota)
    found.feed(pod("old", requests={"cpu": "24", "memory": "40Gi"}, node="n1", scheduler="other"))
    found.feed(pod("trains", requests={"cpu": "30", GPU: "8"}, node="n2", scheduler="other"))
    found.feed(*asking("p", "4", memory="8Gi", annotations=annotations))
    wanted = [(28 / 32 * 10 + 48 / 64) / 11 * 10, (4 / 32 * 10 + 8 / 64) / 11 * 10, 0.0]
    if annotations == {STRATEGY: "least-allocated"}:
        wanted = [10 - wanted[0], 10 - wanted[1], 0.0]
    assert scores(found, "p") == [round(each, 3) for each in wanted]
    assert scores(found, "p")[0] == pytest.approx(expected[0], abs=0.001)


@pytest.mark.parametrize("seed", range(20))
def test_whoever_comes_and_goes_nobody_is_over_the_quota_and_shortcuts_change_nothing(seed):
    lives = []
    for plain in (False, True):
        chance = random.Random(seed)  # noqa: S311  worlds, not secrets
        found = desk(*(gpu_node(f"n{index}") for index in range(3)), node("n3", "4"), plain=plain)
        alive = {}
        for wave in range(5):
            for index in range(chance.randint(1, 6)):
                name = f"p{wave}-{index}"
                gpus = chance.choice((0, 0, 1))
                alive[name] = asking(name, str(chance.randint(1, 3)), gpus)
                found.feed(*alive[name])
            if alive and chance.random() < 0.5:
                found.delete(alive.pop(chance.choice(sorted(alive)))[1])
            found.cycle()
            assert held(found).max() <= 4000
        lives.append((found.world.binds, found.world.evictions))
    assert lives[0] == lives[1]
    assert lives[0][0]


def held(found):
    """What pods without GPUs hold of each node with GPUs, one by one."""
    sums = np.zeros(3, dtype=np.int64)
    for index in range(3):
        for task in found.node(f"n{index}").tasks.values():
            amounts = task.shape.request.amounts
            sums[index] += 0 if amounts.get(GPU) else amounts["cpu"]
    return sums


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"gpu-resource-names": "nvidia.com/(gpu"}, "is no regular expression"),
        ({"quota.cpu": "many"}, "many"),
        ({"quota-percentage.cpu": "101"}, "at most 100"),
        ({"quota-percentage.memory": "0"}, "not above 0"),
        ({"quota.hugepages-1Gi": "8Gi"}, "quota-resources does not list hugepages-1Gi"),
        ({"label-selector": {"matchLabels": "tier"}}, "is no selector of labels"),
        ({"quota.cpu": 32}, "expected a string"),
        ({"quotas.cpu": "32"}, "quotas.cpu"),
    ],
)
def test_what_cannot_be_read_refuses_the_file(arguments, said):
    with pytest.raises(configuration.ConfigurationError, match=said):
        configuration.load(config(**{**QUOTA, **arguments}), registry.catalog())
