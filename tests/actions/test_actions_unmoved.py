"""What must not matter does not: units, empty nodes, empty queues and labels that nobody names change no verdict."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, priority_class, queue
from drawing import drawn

FULL = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
TREE = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""
ZONE = "topology.kubernetes.io/zone"


@st.composite
def clusters(draw):
    """Nodes in two zones, three queues, and gangs that run or wait; every pod asks for cpu and memory."""
    pick = lambda *options: draw(st.sampled_from(options))  # noqa: E731  read as a word below
    made = [priority_class("low", 1), priority_class("high", 100)]
    nodes = [
        node(
            f"n{i}",
            cpu=str(pick(4, 8)),
            memory=f"{pick(8, 16)}Gi",
            labels={ZONE: pick("z1", "z2"), "kubernetes.io/hostname": f"n{i}"},
        )
        for i in range(draw(st.integers(2, 4)))
    ]
    made += nodes
    made += [
        queue("red", weight=pick(1, 2), deserved={"cpu": "4", "memory": "8Gi"}),
        queue(
            "blue",
            weight=pick(1, 3),
            deserved={"cpu": "4", "memory": "8Gi"},
            guarantee={"resource": pick({}, {"cpu": "1"})},
        ),
        queue("green", capability=pick({}, {"cpu": "6"})),
    ]
    room = {each["metadata"]["name"]: [int(each["status"]["allocatable"]["cpu"]), 110] for each in nodes}
    for number in range(draw(st.integers(2, 6))):
        name, size = f"g{number}", draw(st.integers(1, 4))
        least = {"minResources": {"cpu": "2", "memory": "2Gi"}} if pick(True, False) else {}
        made.append(
            group(
                name,
                draw(st.integers(0, size)),
                created=number,
                queue=pick("red", "blue", "green"),
                priorityClassName=pick("low", "high"),
                **least,
            )
        )
        cpu, memory = pick(1, 2, 3), pick(1, 2, 4)
        spread = pick(True, False)
        for index in range(size):
            home = next((n for n, (left, _) in room.items() if left >= cpu), "") if pick(True, False) else ""
            if home:
                room[home][0] -= cpu
            spec = {"affinity": _apart(name)} if spread else {}
            made.append(
                pod(
                    f"{name}-w-{index}",
                    name,
                    created=number,
                    cpu=str(cpu),
                    memory=f"{memory}Gi",
                    node=home,
                    labels={"app": name},
                    **spec,
                )
            )
    return made


def _apart(app):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": ZONE}
    return {
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": term}]}
    }


def verdict(manifests, config):
    """Run one cycle and return who is bound where, who is evicted, and the phase of every group that has one."""
    desk = Desk(config)
    desk.feed(*copy.deepcopy(manifests))
    desk.cycle()
    assert desk.scheduler.failures == []
    phases = {job.key: job.phase for job in desk.cluster.jobs.values()}
    return desk.world.binds, sorted(desk.world.evictions), phases


def scaled(manifests, factor):
    """Multiply memory everywhere."""

    def walk(value):
        if isinstance(value, dict):
            return {
                k: f"{int(v.removesuffix('Gi')) * factor}Gi" if k == "memory" else walk(v) for k, v in value.items()
            }
        return [walk(each) for each in value] if isinstance(value, list) else value

    return [walk(each) for each in manifests]


@settings(max_examples=drawn(60), deadline=None)
@given(clusters(), st.integers(2, 7), st.sampled_from([FULL, TREE]))
def test_scaling_one_resource_everywhere_changes_no_verdict(manifests, factor, config):
    assert verdict(scaled(manifests, factor), config) == verdict(manifests, config)


@settings(max_examples=drawn(60), deadline=None)
@given(clusters(), st.sampled_from([FULL, TREE]), st.sampled_from(["aaa", "zzz"]))
def test_a_node_that_offers_nothing_and_takes_nobody_changes_no_verdict(manifests, config, name):
    empty = node(name, cpu="0", memory="0", pods="0", cordoned=True)
    assert verdict([*manifests, empty], config) == verdict(manifests, config)


@settings(max_examples=drawn(60), deadline=None)
@given(clusters(), st.sampled_from([FULL, TREE]))
def test_a_queue_without_jobs_or_guarantee_changes_no_verdict(manifests, config):
    assert verdict([queue("aaa", weight=9), *manifests], config) == verdict(manifests, config)


@settings(max_examples=drawn(60), deadline=None)
@given(clusters(), st.sampled_from([FULL, TREE]))
def test_labels_that_no_selector_names_change_no_verdict(manifests, config):
    marked = copy.deepcopy(manifests)
    for index, each in enumerate(marked):
        if each["kind"] in ("Pod", "Node"):
            each["metadata"].setdefault("labels", {})["example.com/serial"] = str(index)
    assert verdict(marked, config) == verdict(manifests, config)
