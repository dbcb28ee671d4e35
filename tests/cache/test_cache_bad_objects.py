"""What is wrong with an object is told once, again when it is another thing or another object, and no longer once it is right or gone: for every kind that is read."""

from __future__ import annotations

import copy

import pytest

from builders import Desk, group, metadata, node, pod, priority_class, queue
from pumice.api import names
from pumice.cache.effects import Note
from pumice.cache.options import QUEUE_ADMISSION, Options


def budget(minimum):
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata("b", "a")}
    return {**made, "spec": {"minAvailable": minimum, "selector": {}}}


def quota(amount, **hard):
    made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata("q", "a")}
    return {**made, "spec": {"hard": {"cpu": amount, **hard}}}


def hyper_node(name, tier, inside, kind="HyperNode"):
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(name)}
    return {**made, "spec": {"tier": tier, "members": [{"type": kind, "selector": {"exactMatch": {"name": inside}}}]}}


def test_objects_without_a_uid_are_told_apart_by_kind_and_name():
    made = Desk()
    for manifest in (queue("q", weight=0), queue("r", weight=0), group("q", -1)):
        del manifest["metadata"]["uid"]
        made.feed(manifest, manifest)
    made.apply()
    assert [note.name for note in made.world.of(Note)] == ["q", "r", "q"]


def test_what_is_wrong_with_a_group_is_said_of_its_job():
    made = Desk().feed(group("g", minResources={"cpu": "x"})).apply()
    assert made.cache.record.explain("a/g").startswith("a/g: the PodGroup is invalid: spec.minResources")


UNREADABLE = {
    "node": node("n1"),
    "pod": pod("p", "g", node="n1", cpu="1"),
    "pod without a group": pod("p", node="n1", cpu="1"),
}


@pytest.mark.parametrize("right", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_can_be_read_no_longer_counts_for_nothing_and_is_told_once(right):
    def counts():
        return bool(made.cluster.tasks) or made.cluster.nodes.count > 0

    wrong, kind = {**right, "spec": "x"}, right["kind"]
    made = Desk().feed(group("g"), right).apply()
    assert counts()
    for _ in range(2):
        made.modify(wrong).apply()
    assert not counts()
    assert [note.type for note in told(made, kind)] == ["Warning"]
    assert problems(made)
    made.delete(wrong).apply()
    assert not problems(made)
    made.feed(wrong).apply()
    assert len(told(made, kind)) == 1
    made.modify(right).apply()
    assert counts()
    assert not problems(made)


def test_a_node_that_turns_bad_takes_no_pod():
    made = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1")).apply()
    made.modify(node("n1", cpu="-1")).cycle()
    assert made.world.binds == {}


def usage(*percent):
    made = {"apiVersion": "pumice.dev/v1alpha1", "kind": "NodeUsage", "metadata": metadata("u")}
    return {**made, "nodes": {f"n{number}": {"cpu": each, "memory": "0"} for number, each in enumerate(percent)}}


@pytest.mark.parametrize(
    ("manifest", "wrong"),
    [
        (quota("0"), ""),
        (quota("-1m"), "spec.hard[cpu] is -1m, which is negative"),
        (usage("0", "100"), ""),
        (usage("0", "-1"), "nodes[n1].cpu is -1, which is no percentage"),
        (usage("101"), "nodes[n0].cpu is 101, which is no percentage"),
    ],
)
def test_nothing_is_an_amount_and_everything_a_percentage(manifest, wrong):
    made = Desk().feed(manifest).apply()
    said = " ".join(note.message for note in told(made, manifest["kind"]))
    assert (wrong in said) if wrong else said == ""


def test_a_namespace_is_weighed_by_its_own_quota_and_only_if_it_is_a_queue():
    quotas = [
        {**quota("1", **{names.NAMESPACE_WEIGHT: weight}), "metadata": metadata("q", namespace)}
        for namespace, weight in (("a", "7"), ("b", "8"))
    ]
    made = Desk(options=Options(enable_namespace_as_queue=True)).feed(*quotas, priority_class("c", 1)).apply()
    assert {"a", "b"}.isdisjoint(made.cluster.queues)
    made.feed(group("g")).modify(*quotas).apply()
    assert made.cluster.queues["a"].weight == 7
    assert "b" not in made.cluster.queues
    plain = Desk().feed(*quotas, queue("a")).apply()
    assert plain.cluster.queues["a"].weight == 1
    assert "b" not in plain.cluster.queues


# By kind: one that is right, and two that are wrong in different ways.
KINDS = {
    "Node": (node("n1"), node("n1", cpu="x"), node("n1", memory="-1")),
    "Queue": (queue("q"), queue("q", weight=0), queue("q", capability={"cpu": "x"})),
    "PodGroup": (group("g"), group("g", -1), group("g", minResources={"cpu": "x"})),
    "Pod": (pod("p", "g"), pod("p", "g", cpu="x"), pod("p", "g", memory="-1")),
    "PriorityClass": (priority_class("c", 1), priority_class("c", "x"), priority_class("c", [])),
    "ResourceQuota": (quota("1"), quota("x"), quota("-1")),
    "HyperNode": (hyper_node("h", 1, "n0", "Node"), hyper_node("h", -1, "n0", "Node"), hyper_node("h", 1, "n0", "X")),
    "PodDisruptionBudget": (budget(1), budget([]), budget({})),
}


def told(made, kind):
    """What was told of what is wrong since the last look."""
    found = [note for note in made.world.of(Note) if note.reason == "InvalidObject" and note.kind.name == kind]
    made.world.effects.clear()
    return found


def problems(made):
    return {**made.cache.record.problems(), **made.cache.record.problems("a/g")}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_is_told_once_for_each_thing_and_each_object(kind):
    right, wrong, other = (copy.deepcopy(each) for each in KINDS[kind])
    made = Desk().feed(group("g"), node("n0")).apply()
    made.feed(wrong).apply()
    assert len(told(made, kind)) == 1
    made.modify(wrong).apply()
    assert told(made, kind) == []
    made.modify(other).apply()
    assert len(told(made, kind)) == 1
    made.modify(right).apply()
    assert told(made, kind) == []
    assert not problems(made)
    made.modify(wrong).apply()
    assert len(told(made, kind)) == 1
    made.delete(wrong).apply()
    assert not problems(made)
    made.feed(wrong).apply()
    assert len(told(made, kind)) == 1


@pytest.mark.parametrize(
    ("gates", "taken"),
    [
        ((), False),
        ((f"{QUEUE_ADMISSION}=true",), True),
        ((f"{QUEUE_ADMISSION}=True",), True),
        ((f"{QUEUE_ADMISSION}=false",), False),
        (("Else=true",), False),
        ((f"{QUEUE_ADMISSION}=true", "Else=false"), True),
        ((f"{QUEUE_ADMISSION}=true", f"{QUEUE_ADMISSION}=false"), False),
        ((f"{QUEUE_ADMISSION}=false", f"{QUEUE_ADMISSION}=true"), True),
    ],
)
def test_the_last_word_on_a_feature_gate_counts(gates, taken):
    assert Options(feature_gates=gates).takes_gates_off is taken


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("1", 1),
        ("7", 7),
        ("65535", 65535),
        ("65536", 1),
        ("99999", 1),
        ("100000", 1),
        ("x", 1),
        ("-3", 1),
        ("", 1),
        ("٣", 1),
    ],
)
@pytest.mark.parametrize("late", [False, True], ids=["quota first", "group first"])
def test_a_namespace_that_is_a_queue_weighs_what_its_quota_says(text, weight, late):
    made = Desk(options=Options(enable_namespace_as_queue=True))
    objects = [quota("1", **{names.NAMESPACE_WEIGHT: text}), group("g")]
    made.feed(*(reversed(objects) if late else objects)).apply()
    assert (made.cluster.queues["a"].weight, made.cluster.queues["a"].bad) == (weight, "")
    made.delete(objects[0]).apply()
    assert made.cluster.queues["a"].weight == 1


@pytest.mark.parametrize("wrong", [hyper_node("h", -1, "n1", "Node"), hyper_node("h", [], "n1", "Node")])
def test_a_hyper_node_that_turns_bad_leaves_the_tree_until_it_is_mended(wrong):
    right = hyper_node("h", 1, "n1", "Node")
    made = Desk().feed(node("n1"), right).apply()
    for manifest, there in ((wrong, False), (right, True)):
        before = made.cluster.changed
        made.modify(manifest).apply()
        assert ("h" in made.cluster.hyper_nodes.tree.by_name) is there
        assert made.cluster.changed != before


def test_what_a_hyper_node_itself_says_wrong_takes_the_place_of_what_is_wrong_with_it_among_others():
    made = Desk().feed(hyper_node("h", 1, "n1", "Node")).apply()
    assert "do not exist" in str(problems(made))
    made.modify(hyper_node("h", -1, "n1", "Node")).apply()
    assert "spec.tier" in str(problems(made))
    assert "do not exist" not in str(problems(made))


def test_what_is_wrong_with_a_hyper_node_among_the_others_is_told_until_the_others_are_right():
    leaf = hyper_node("leaf", 1, "n1", "Node")
    made = Desk().feed(node("n1"), leaf, hyper_node("spine", 1, "leaf")).apply()
    (note,) = told(made, "HyperNode")
    assert f"HyperNode {note.name}" in problems(made)
    made.modify(node("n1", cpu="1")).apply()
    assert told(made, "HyperNode") == []
    made.modify(hyper_node("spine", 2, "leaf")).apply()
    assert not problems(made)
