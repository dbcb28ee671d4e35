"""Where a pod could go: every node counted once, under the first reason that rejects it, with the nearest miss."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from explaining_worlds import GPU, MAINTENANCE, asked, desk, nodes, requests, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import GANG, Desk, group, node, pod
from drawing import drawn
from pumice.api import quantity
from pumice.framework.explaining import text
from pumice.framework.plugin import Plugin
from pumice.framework.reasons import Code


@settings(max_examples=drawn(100))
@given(worlds())
def test_the_groups_of_nodes_add_up_to_all_nodes(objects):
    made = desk(objects)
    jobs = [each["metadata"]["name"] for each in objects if each["kind"] == "PodGroup"]
    total = sum(1 for each in objects if each["kind"] == "Node")
    for explained in asked(made, *(("job", f"a/{name}") for name in jobs)):
        missing = explained.gang.missing if explained.gang is not None else ()
        placements = [*explained.placements, *(each.placement for each in missing if each.placement is not None)]
        for placement in placements:
            assert placement.nodes == total
            assert placement.fitting + sum(group.count for group in placement.groups) == total
            assert all(sum(detail.count for detail in group.details) <= group.count for group in placement.groups)


def milli(amount):
    return quantity.scaled(amount, 1000)


def slow_nearest(described, wanted, zone):
    """Look at nodes one by one: who lacks an amount, who lacks least, those first against which nothing else speaks."""
    short = []
    for each in described:
        offered = each["status"]["allocatable"]
        lacking = {
            name: milli(amount) - milli(offered.get(name, "0"))
            for name, amount in wanted.items()
            if milli(amount) > milli(offered.get(name, "0"))
        }
        if lacking:
            otherwise = (
                each["spec"]["unschedulable"]
                or bool(each["spec"]["taints"])
                or (zone and each["metadata"]["labels"]["zone"] != zone)
            )
            part = max(Fraction(units, milli(wanted[name])) for name, units in lacking.items())
            first = next(name for name in ("cpu", "memory", GPU) if name in lacking)
            short.append((first, bool(otherwise), len(lacking), part, each["metadata"]["name"], lacking))
    return short


@settings(max_examples=drawn(100))
@given(nodes(), st.data())
def test_the_nearest_miss_is_the_one_that_a_look_at_every_node_finds(described, data):
    wish = requests(data.draw)
    zone = data.draw(st.sampled_from(["", "a"]))
    spec = {"nodeSelector": {"zone": zone}} if zone else {}
    made = Desk().feed(*described, group("g", 1), pod("g-w-0", "g", **wish, **spec))
    (explained,) = asked(made, ("job", "a/g"))
    if not explained.placements or (
        GPU in wish["requests"] and not any(each["status"]["allocatable"][GPU] != "0" for each in described)
    ):
        return  # it was placed, or no node offers what it asks for, and none is nearer than another
    wanted = {"cpu": wish["cpu"], "memory": wish["memory"], **wish["requests"]}
    short = slow_nearest(described, wanted, zone)
    groups = {each.resource: each for each in explained.placements[0].groups if each.nearest is not None}
    assert sorted(groups) == sorted({each[0] for each in short})
    for resource, found in groups.items():
        mine = sorted(each[1:5] for each in short if each[0] == resource)
        best = next(each for each in short if each[1:5] == mine[0])
        assert found.count == len(mine)
        assert found.nearest.node == best[4]
        assert {name: milli(amount) for name, amount in found.nearest.short.items()} == best[5]
        assert bool(found.nearest.otherwise) == best[1]


def test_nodes_are_told_by_what_they_lack_which_taint_they_have_and_which_label_they_have_not():
    made = Desk().feed(*(node(f"gpu-{i:02}", **{"nvidia.com__gpu": "4"}, labels={"zone": "a"}) for i in range(3)))
    made.feed(node("m", **{"nvidia.com__gpu": "4"}, labels={"zone": "a"}, taints=[MAINTENANCE]))
    made.feed(node("z", **{"nvidia.com__gpu": "4"}, labels={"zone": "b"}), group("run", 1), group("g", 1))
    made.feed(*(pod(f"run-{i}", "run", requests={GPU: str(4 - i % 2)}, node=f"gpu-{i:02}") for i in range(3)))
    made.feed(pod("g-0", "g", requests={GPU: "2"}, nodeSelector={"zone": "a"}))
    (explained,) = asked(made, ("job", "a/g"))
    assert (
        f"  nodes for a/g-0: 3 nodes short of 2 {GPU}, closest gpu-01 by 1; 1 not zone=a; 1 tainted maintenance:NoSchedule"
    ) in text(explained)


def test_a_node_that_another_reason_keeps_out_too_is_not_the_nearest_while_there_is_one_without():
    made = Desk().feed(
        node("a", cpu="3", taints=[MAINTENANCE]), node("b", cpu="2"), group("g", 1), pod("g-0", "g", cpu="4")
    )
    (explained,) = asked(made, ("job", "a/g"))
    (found,) = explained.placements[0].groups
    assert (found.nearest.node, found.nearest.short, found.nearest.otherwise) == ("b", {"cpu": "2"}, "")


def test_who_lacks_one_thing_is_nearer_than_who_lacks_a_little_of_two():
    made = Desk().feed(node("a", cpu="3", memory="4294967295"), node("b", cpu="2", memory="4Gi"), group("g", 1))
    (explained,) = asked(made.feed(pod("g-0", "g", cpu="4", memory="4Gi")), ("job", "a/g"))
    (found,) = explained.placements[0].groups
    assert (found.nearest.node, found.nearest.short) == ("b", {"cpu": "2"})


def test_the_counts_of_an_explanation_are_those_of_the_condition():
    made = Desk().feed(*(node(f"n{i}", cpu="1") for i in range(3)), node("c", cordoned=True))
    made.feed(group("g", 1), pod("g-0", "g", cpu="4"))
    (explained,) = asked(made, ("pod", "a/g-0"))
    assert explained.reason == "0/4 nodes are unavailable: 1 node(s) were unschedulable, 3 Insufficient cpu."
    assert {group.reason: group.count for group in explained.placement.groups} == {
        "Insufficient cpu": 3,
        "node(s) were unschedulable": 1,
    }


AFFINITY = [
    ([[("zone", "In", ["a", "c"])]], "not zone In a,c"),
    ([[("zone", "In", ["c"])], [("disk", "Exists", [])]], "not zone In c or disk Exists"),
    ([[("zone", "In", ["b"]), ("disk", "Exists", [])]], "not disk Exists"),
]


@pytest.mark.parametrize(("terms", "expected"), AFFINITY, ids=[row[1] for row in AFFINITY])
def test_what_a_node_affinity_asks_for_and_a_node_has_not_is_named(terms, expected):
    written = [
        {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in term]}
        for term in terms
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}
    made = Desk().feed(node("n", labels={"zone": "b"}), group("g", 1))
    made.feed(pod("g-0", "g", cpu="1", affinity={"nodeAffinity": required}))
    (explained,) = asked(made, ("job", "a/g"))
    assert f"  nodes for a/g-0: 1 {expected}" in text(explained)


def test_what_no_node_offers_is_told_of_those_that_have_the_rest_and_nobodys_going_would_cure_it():
    made = Desk().feed(node("n1", cpu="8"), node("n2", cpu="2"), group("g", 1))
    made.feed(pod("g-0", "g", cpu="4", requests={"example.com/acc": "2", "example.com/bus": "1"}))
    (explained,) = asked(made, ("job", "a/g"))
    told = [(each.reason, each.asked, each.first, each.curable) for each in explained.placements[0].groups]
    assert told == [("Insufficient cpu", "4", "n2", True), ("Insufficient example.com/acc", "2", "n1", False)]


class Opposed(Plugin):
    """Says of every pod that it fits nowhere."""

    name = "opposed"

    def open(self, session):
        session.pre_predicate.add(lambda _: "it has no licence")


def test_what_is_said_before_any_node_is_looked_at_comes_before_what_nodes_say():
    made = Desk(GANG.replace("[{name: predicates}", "[{name: opposed}, {name: predicates}"), Opposed)
    made.feed(node("n1", cpu="2"), node("n2", cpu="9"), group("g", 1), pod("g-0", "g", cpu="4"))
    job, small = asked(made, ("job", "a/g"), ("node", "n1"))
    (placement,) = job.placements
    assert (placement.refusal, placement.fitting) == ("it has no licence", 1)
    assert [each.reason for each in small.waiting] == ["it has no licence"]


class Particular(Plugin):
    """Takes no node that says something is wrong, and tells of those that have a name for it what."""

    name = "particular"

    def open(self, session):
        number = session.reason(self.name, Code.UNRESOLVABLE, "node(s) had something wrong")
        session.predicate.add(
            lambda _, nodes: np.array([number * ("wrong" in each.labels) for each in nodes.records()], dtype=np.int16),
            details=lambda _subject, record: record.labels.get("wrong", ""),
        )


@pytest.mark.parametrize("kinds", [1, 4, 5, 6, 7])
def test_what_a_reason_means_is_told_of_the_commonest_kinds_and_the_others_are_counted(kinds):
    counts = {"the rack": 1, "a disk": 1, "the bus": 3, "a fan": 1, "the card": 2, "a cable": 1, "a leak": 1}
    counts = dict(list(counts.items())[:kinds])
    made = Desk(GANG.replace("[{name: predicates}", "[{name: particular}"), Particular)
    for place, (wrong, count) in enumerate({**counts, "": 4}.items()):
        made.feed(*(node(f"n{place}-{i}", labels={"wrong": wrong}) for i in range(count)))
    (explained,) = asked(made.feed(group("g", 1), pod("g-0", "g", cpu="1")), ("job", "a/g"))
    (found,) = explained.placements[0].groups
    listed = sorted(counts, key=lambda wrong: (-counts[wrong], wrong))
    others = [("others", sum(counts[wrong] for wrong in listed[5:]))] if listed[5:] else []
    assert [(each.text, each.count) for each in found.details] == [(w, counts[w]) for w in listed[:5]] + others
    assert (found.reason, found.count) == ("node(s) had something wrong", sum(counts.values()) + 4)


def test_that_there_is_no_place_for_a_pod_is_said_of_those_of_whom_nothing_else_is():
    made = Desk("actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: particular}]", Particular)
    made.feed(*(node(f"n{i}", cpu="2", pods="1", labels=labels) for i, labels in enumerate([{}, {"wrong": "it"}, {}])))
    made.feed(node("small", cpu="1"), group("old", 1), group("g", 1), pod("g-0", "g", cpu="1001m"))
    made.feed(*(pod(f"old-{i}", "old", node=f"n{i}") for i in range(3)))
    (placement,) = asked(made, ("job", "a/g"))[0].placements
    told = [(each.reason, each.count, each.resource, each.asked) for each in placement.groups]
    assert told == [
        ("Insufficient pods", 2, "pods", "1"),
        ("Insufficient cpu", 1, "cpu", "1001m"),
        ("node(s) had something wrong", 1, "", ""),
    ]
    assert placement.groups[1].nearest.short == {"cpu": "1m"}
    assert placement.fitting == 0


def test_a_place_counts_as_free_that_is_being_released():
    made = Desk().feed(node("n1", pods="1"), pod("leaves", scheduler="else", node="n1", deleting=9), group("g", 2))
    (explained,) = asked(made.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(2))), ("job", "a/g"))
    assert [(each.members, each.fitting) for each in explained.placements] == [(2, 1)]
