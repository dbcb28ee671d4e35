"""What nodes could ever do for a pod, as it is put into words."""

from __future__ import annotations

import numpy as np
import pytest

from builders import GANG, Desk, group, node, pod
from pumice.framework import outlooks
from pumice.framework.plugin import Plugin
from pumice.framework.reads import Reads
from pumice.framework.reasons import Code

REFUSALS = [
    (1, [("node(s) were not ready", 1)], "the only node was not ready"),
    (1, [("node(s) had untolerated taint(s)", 1)], "the only node had untolerated taint(s)"),
    (2, [("node(s) were not ready", 2)], "all 2 nodes were not ready"),
    (2, [("node(s) had untolerated taint(s)", 2)], "all 2 nodes had untolerated taint(s)"),
    (1, [("Insufficient cpu", 1)], "the only node refuses it: have too little cpu free"),
    (3, [("Insufficient cpu", 3)], "all 3 nodes refuse it: have too little cpu free"),
    (3, [("a", 1), ("b", 2)], "all 3 nodes refuse it: 2 b, 1 a"),
    (
        6,
        [("node(s) were not ready", 1), ("b", 2), ("Insufficient cpu", 1), ("a", 2)],
        "all 6 nodes refuse it: 2 a, 2 b, 1 have too little cpu free, 1 were not ready",
    ),
]


@pytest.mark.parametrize(("nodes", "reasons", "told"), REFUSALS, ids=[row[2] for row in REFUSALS])
def test_of_several_reasons_that_of_most_nodes_comes_first_and_equals_by_their_words(nodes, reasons, told):
    assert outlooks.counted(nodes, reasons) == told


# ---- what nodes could ever do for a pod

LABELLED = {"nodeSelector": {"disk": "fast"}}
NEVER = [
    ("there is none", [], {"cpu": "1"}, "there are no nodes"),
    ("one is large enough", [("n0", "4", "4Gi")], {"cpu": "4"}, ""),
    ("nobody offers it", [("n0", "4", "4Gi")], {"requests": {"example.com/a": "1"}}, "no node offers example.com/a, it asks for 1"),
    ("none is large enough", [("n0", "2", "4Gi"), ("n1", "4", "4Gi"), ("n2", "4", "4Gi")], {"cpu": "5"}, "no node has 5 cpu at all: the largest of 3, n1, has 4"),
    ("what is first asked for is told first", [("n0", "2", "4Gi")], {"cpu": "5", "memory": "5Gi"}, "no node has 5 cpu at all: the largest of 1, n0, has 2"),
    ("none has both", [("n0", "4", "1Gi"), ("n1", "1", "8Gi")], {"cpu": "2", "memory": "2Gi"}, "no node has 2 cpu and 2Gi memory together, even if it is empty"),
    ("none has both, the most that there is of each", [("n0", "4", "1Gi"), ("n1", "1", "8Gi")], {"cpu": "4", "memory": "8Gi"}, "no node has 4 cpu and 8Gi memory together, even if it is empty"),
    ("rules rule all out", [("n0", "4", "4Gi"), ("n1", "4", "4Gi")], {"cpu": "1", **LABELLED}, "no node has the label disk=fast that its nodeSelector asks for"),
    ("too small is told before rules", [("n0", "4", "4Gi")], {"cpu": "5", **LABELLED}, "no node has 5 cpu at all: the largest of 1, n0, has 4"),
    ("those that it may use are too small", [("n0", "2", "4Gi", "fast"), ("n1", "8", "4Gi")], {"cpu": "5", **LABELLED}, "no node that it may use has 5 cpu at all: the largest of 1, n0, has 2"),
    ("those that it may use are large enough", [("n0", "8", "4Gi", "fast"), ("n1", "2", "4Gi")], {"cpu": "5", **LABELLED}, ""),
]  # fmt: skip


def looking(nodes, **wish):
    made = Desk()
    for name, cpu, memory, *disk in nodes:
        made.feed(node(name, cpu, memory, labels={"disk": disk[0]} if disk else {}))
    made.feed(group("g", 1), pod("g-0", "g", **wish), pod("full", cpu="1", node="n0", scheduler="else"))
    return made


@pytest.mark.parametrize(("nodes", "wish", "never"), [row[1:] for row in NEVER], ids=[row[0] for row in NEVER])
def test_why_no_node_could_ever_take_a_pod_is_told_by_what_it_asks_for_then_by_rules(nodes, wish, never):
    made = looking(nodes, **wish)
    found = made.session().outlooks.of(made.task("g-0"))
    assert found.never == never
    assert bool(len(found.able)) is (never == "")
    asks_for_disk = "nodeSelector" in wish and any(len(each) < 4 for each in nodes)
    assert bool(found.ruled_out) is asks_for_disk


def test_nodes_that_could_take_a_pod_are_those_that_are_large_enough_and_that_rules_allow():
    made = looking([("n0", "8", "4Gi", "fast"), ("n1", "8", "4Gi"), ("n2", "8", "4Gi", "fast"), ("n3", "1", "4Gi", "fast")], cpu="5", **LABELLED)  # fmt: skip
    session = made.session()
    found = session.outlooks.of(made.task("g-0"))
    assert [made.cluster.nodes.records[row].name for row in found.able] == ["n0", "n2"]
    assert session.outlooks.of(made.task("g-0")) is found


def test_so_many_outlooks_are_remembered_and_the_oldest_forgotten(monkeypatch):
    monkeypatch.setattr(outlooks, "KEPT", 2)
    made = Desk().feed(node("n", "64"), group("g", 1), *(pod(f"g-{i}", "g", cpu=str(i + 1)) for i in range(3)))
    session = made.session()
    first, *others = [session.outlooks.of(made.task(f"g-{i}")) for i in range(3)]
    assert [session.outlooks.of(made.task(f"g-{i}")) for i in (1, 2)] == others
    assert all(a is b for a, b in zip([session.outlooks.of(made.task(f"g-{i}")) for i in (1, 2)], others, strict=True))
    assert session.outlooks.of(made.task("g-0")) is not first


@pytest.mark.parametrize(("beyond", "left"), [(0, True), (1, False)])
def test_what_was_found_of_jobs_is_forgotten_once_there_is_far_more_of_it_than_jobs(beyond, left, monkeypatch):
    monkeypatch.setattr(outlooks, "KEPT", 3)
    made = Desk().feed(node("n"), group("g", 1), group("h", 1))
    session = made.session()
    session.outlooks.jobs.update({f"gone-{i}": None for i in range(2 * 2 + 3 + beyond)})
    assert bool(session.outlooks.jobs) is left


@pytest.mark.parametrize("change", [node("n", "4"), node("m"), node("n", labels={"a": "b"})])
def test_what_was_found_out_is_forgotten_when_nodes_offer_or_say_something_else(change):
    made = Desk().feed(node("n"), group("g", 1), pod("g-0", "g", cpu="1"))
    first = made.session().outlooks
    epoch, found = first.epoch, first.of(made.task("g-0"))
    second = made.session().outlooks
    assert (second.epoch, second.of(made.task("g-0")) is found) == (epoch, True)
    third = made.modify(change).session().outlooks
    assert third.epoch != epoch
    assert third.of(made.task("g-0")) is not found


def test_what_was_found_of_jobs_is_forgotten_with_the_nodes_that_it_was_found_of():
    made = Desk().feed(node("n"), group("g", 1))
    made.session().outlooks.jobs["a/g"] = None
    assert made.session().outlooks.jobs == {"a/g": None}
    assert made.feed(node("m")).session().outlooks.jobs == {}


def test_nodes_that_come_to_have_a_label_or_come_can_take_a_pod_from_then_on():
    made = looking([("n0", "8", "4Gi"), ("n1", "8", "4Gi")], cpu="5", **LABELLED)

    def able():
        found = made.session().outlooks.of(made.task("g-0")).able
        return [made.cluster.nodes.records[row].name for row in found]

    assert able() == []
    made.modify(node("n1", "8", "4Gi", labels={"disk": "fast"}))
    assert able() == ["n1"]
    made.feed(node("n2", "8", "4Gi", labels={"disk": "fast"}))
    assert able() == ["n1", "n2"]
    made.modify(node("n1", "8", "4Gi"))
    assert able() == ["n2"]


def test_a_pod_of_no_job_has_an_outlook_too():
    made = Desk().feed(node("n", "4"), pod("alone", cpu="9"))
    assert made.session().outlooks.of(made.task("alone")).never.startswith("no node has 9 cpu at all")


class Nowhere(Plugin):
    """Knows a single reason against any node, the first that there is."""

    name = "nowhere"
    points = frozenset({"Predicate"})
    reads = Reads.NODE

    def open(self, session):
        reason = session.reason(self.name, Code.UNSCHEDULABLE, "not here")
        session.predicate.add(lambda _, nodes: np.full(len(nodes), reason, dtype=np.int16))


def test_any_reason_rules_nodes_out():
    made = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: nowhere}]\n', Nowhere).feed(node("n"), node("m"))
    found = made.feed(group("g", 1), pod("g-0", "g", cpu="1")).session().outlooks.of(made.task("g-0"))
    assert (found.ruled_out, found.never) == ({"not here"}, "all 2 nodes refuse it: not here")


class Broken(Plugin):
    """Rules nodes out by what they say, and breaks down about it."""

    name = "broken"
    points = frozenset({"Predicate"})
    reads = Reads.NODE
    breaks = True

    def open(self, session):
        session.predicate.add(self._fail)

    def _fail(self, subject, nodes):
        if self.breaks:
            raise RuntimeError("no")
        return np.zeros(len(nodes), dtype=np.int16)


def test_that_a_filter_broke_down_says_nothing_about_ever_and_is_not_remembered():
    how = type("Broken", (Broken,), {})
    made = Desk(GANG.replace("{name: gang}", "{name: gang}, {name: broken}"), how)
    made.feed(node("n", "4"), group("g", 1), pod("g-0", "g", cpu="1"))
    found = made.session().outlooks.of(made.task("g-0"))
    assert (len(found.able), found.never) == (0, "")
    how.breaks = False
    assert len(made.session().outlooks.of(made.task("g-0")).able) == 1


def test_what_a_filter_that_broke_down_once_seemed_to_rule_out_is_not_told_when_it_works_again():
    how = type("Broken", (Broken,), {})
    made = Desk(GANG.replace("{name: gang}", "{name: gang}, {name: broken}"), how)
    made.feed(node("n", "4"), pod("full", cpu="4", node="n", scheduler="else"))
    made.feed(*(each for i in range(2) for each in (group(f"g{i}", 1), pod(f"g{i}-0", f"g{i}", cpu=str(i + 1)))))
    made.cycle()
    how.breaks = False
    made.feed(group("wakes", 0)).cycle()
    told = {each.name: each.body["status"]["conditions"][-1]["message"] for each in made.world.patches("Pod")}
    assert told.keys() == {"g0-0", "g1-0"}
    assert all("cpu free" in message and "refuses it" not in message for message in told.values())
