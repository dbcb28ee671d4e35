"""Runs of equal tasks: who is of one run, who is told what of a run that ends early, and where a pod that names its node goes."""

from __future__ import annotations

import pytest
from test_actions_small_rules import rack
from test_actions_small_worlds import Licensed

from builders import Desk, group, node, pod, queue
from pumice.actions.placing import gang_fit, task_runs
from pumice.framework.plugin import Plugin

TEXT = """
actions: "allocate"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}%s]
"""
HOST = "kubernetes.io/hostname"
GATE = {"schedulingGates": [{"name": "wait"}]}


# -- who is of one run -----------------------------------------------------------------------------------------


def away_from(app):
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


class Parted(Plugin):
    """Tells members apart by a label."""

    name = "parted"

    def open(self, session):
        session.divide_runs(lambda task: task.pod.metadata.labels.get("part"))


ALIKE, OTHER = {"cpu": "1"}, {"cpu": "2"}


@pytest.mark.parametrize(
    ("members", "size"),
    [
        ([ALIKE, ALIKE, ALIKE], 3),
        ([ALIKE, ALIKE, OTHER], 2),
        ([ALIKE, {**ALIKE, "labels": {"mark": "x"}}, ALIKE], 3),  # a label that nobody asks about
        ([ALIKE, {**ALIKE, "labels": {"app": "minded"}}, ALIKE], 1),  # one that a running pod keeps away
        ([{**ALIKE, "labels": {"app": "minded"}}, {**ALIKE, "labels": {"app": "minded", "mark": "x"}}, ALIKE], 2),
        ([ALIKE, {**ALIKE, **GATE}, ALIKE], 1),
        ([{**ALIKE, **GATE}, {**ALIKE, **GATE}, ALIKE], 2),
        ([ALIKE, ALIKE, {**ALIKE, "nominated": "n"}], 2),
        ([{**ALIKE, "nominated": "n"}, ALIKE, ALIKE], 1),
        ([ALIKE, {**ALIKE, "role": "w"}], 1),
        ([{**ALIKE, "labels": {"part": "a"}}, {**ALIKE, "labels": {"part": "a"}}, ALIKE], 2),
    ],
)
def test_a_run_goes_on_as_long_as_nothing_tells_members_apart(members, size):
    desk = Desk(TEXT % ", {name: parted}", Parted).feed(node("n", labels={HOST: "n"}), group("old", 0))
    desk.feed(pod("old-0", "old", cpu="1", node="n", affinity=away_from("minded")), group("g", 1))
    for i, each in enumerate(members):
        made = pod(f"g-{i}", "g", **{name: value for name, value in each.items() if name != "nominated"})
        made["status"]["nominatedNodeName"] = each.get("nominated", "")
        desk.feed(made)
    session = desk.session()
    tasks = [desk.task(f"g-{i}") for i in range(len(members))]
    assert task_runs.next_run(session, tasks) == tasks[:size]


def test_a_member_that_names_its_node_is_placed_after_others_that_are_placed_together():
    """Also where gangs are tried in no other order than their own."""
    desk = Desk("compatibility: volcano" + TEXT % "").feed(node("n", "9"), group("g", 3, phase="Inqueue"))
    for i in range(3):
        made = pod(f"g-{i}", "g", cpu=str(i + 1))
        made["status"]["nominatedNodeName"] = "n" if i == 2 else ""
        desk.feed(made)
    desk.cycle()
    assert sorted(desk.world.binds) == ["g-0", "g-1", "g-2"]


# -- what is said where a run ends early -----------------------------------------------------------------------


class Limited(Plugin):
    """Lets a queue take on so many pods in a cycle, and counts those that are too many."""

    name = "limited"
    points = frozenset({"Allocatable"})
    most = 2

    def open(self, session):
        self.taken = 0
        session.add_handler(self.follow)
        session.allocatable.add(self.allows)

    def follow(self, run, sign):
        self.taken += sign * len(run.tasks)

    def allows(self, _, demand):
        beyond = self.taken + len(demand.tasks) - self.most
        return f"{beyond} too many" if beyond > 0 else None


def told(desk):
    """Give why pods were not placed, by name."""
    desk.cycle()
    return {name: message for name, reason, message in desk.world.notes if reason == "FailedScheduling"}


def limited(*cpus, least=1, room="64", **more):
    desk = Desk(TEXT % ", {name: limited}", Limited).feed(node("n", room, "64Gi"), group("g", least, phase="Inqueue"))
    return desk.feed(*(pod(f"g-{i}", "g", cpu=cpu, **more) for i, cpu in enumerate(cpus)))


def test_a_queue_that_takes_on_a_part_of_a_run_says_why_not_one_more():
    found = told(limited(*"11111", least=4))
    assert {name: text for name, text in found.items() if "queue" in text}
    assert all("1 too many" in text for text in found.values() if "queue" in text)


def test_members_beyond_what_their_queue_takes_on_are_told_of_nodes_if_these_stopped_an_equal_one_before():
    found = told(limited(*"1111", least=3, room="1"))
    assert sorted(found) == ["g-0", "g-1", "g-2", "g-3"]
    assert all("Insufficient cpu" in found[f"g-{i}"] for i in (1, 2, 3))


def test_members_of_another_role_are_told_of_nodes_where_their_queue_would_take_them_on():
    desk = Desk(TEXT % ", {name: limited}", Limited).feed(node("n", "500m"), group("g", 1, minTaskMember={"w": 0}))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", role="w" if i < 3 else "x") for i in range(4)))
    assert ["Insufficient cpu" in text for _, text in sorted(told(desk).items())] == [True] * 4


class Refusing(Plugin):
    """Refuses to have one pod placed, as somebody who keeps volumes would."""

    name = "refusing"

    def open(self, session):
        session.add_handler(self.follow, may_refuse=True)

    def follow(self, run, sign):
        return "no volume" if sign > 0 and run.tasks[0].pod.metadata.labels else None


class Small(Plugin):
    """Lets a queue take on no pod that has a label."""

    name = "small"
    points = frozenset({"Allocatable"})

    def open(self, session):
        session.allocatable.add(
            lambda _, demand: "not this one" if any(task.pod.metadata.labels for task in demand.tasks) else None
        )


@pytest.mark.parametrize("plugin", [Licensed, Refusing, Small])
def test_after_a_member_that_somebody_refuses_the_next_of_the_role_that_the_minimum_names_comes(plugin):
    """There is room for two, of which one must be of that role; each asks for as much as its role does."""
    desk = Desk(TEXT % f", {{name: {plugin.name}}}", plugin).feed(node("n", "2"))
    desk.feed(group("g", 2, phase="Inqueue", minTaskMember={"m": 1}))
    for i, role in enumerate(("m", "w", "w", "m")):
        labels = {} if i else {"app": "x"}
        desk.feed(pod(f"g-{i}", "g", cpu="1", memory=f"{i}Mi", role=role, created=i, labels=labels))
    desk.cycle()
    assert sorted(desk.world.binds) == ["g-1", "g-3"]


def test_who_fits_nowhere_is_not_told_of_the_due_of_its_queue_nor_tried_again_beyond_it():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: proportion}]\n'
    desk = Desk(text).feed(node("n", "4"), queue("a"), queue("b"), group("old", 0, queue="a", phase="Running"))
    desk.feed(pod("old-0", "old", cpu="2", node="n"), group("b0", 1, queue="b", phase="Inqueue"))
    desk.feed(pod("b0-0", "b0", cpu="2", nodeSelector={"is": "elsewhere"}), group("g", 1, queue="a", phase="Inqueue"))
    desk.feed(pod("g-0", "g", cpu="1", nodeSelector={"is": "elsewhere"}))
    (said,) = (line for line in desk.cycle().trace() if line.startswith("allocate: a/g:"))
    assert "node(s) didn't match" in said


# -- how much of a gang fits -----------------------------------------------------------------------------------


def verdict(desk, count):
    session = desk.session()
    tasks = [desk.task(f"g-{i}") for i in range(count)]
    return gang_fit.verdict(session, tasks[0].job, tasks)


def test_all_members_that_fit_are_counted_and_those_that_wait_for_a_gate_are_not():
    desk = Desk(TEXT % "").feed(node("n", "5"), group("g", 1), *(pod(f"g-{i}", "g", cpu="1") for i in range(4)))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", **GATE) for i in (4, 5)))
    found = verdict(desk, 6)
    assert (found.fit, [(each.pod, each.count) for each in found.missing]) == (4, [("g-4", 2)])


def test_members_that_their_queue_does_not_take_on_are_told_so():
    desk = Desk(TEXT % ", {name: capacity}").feed(node("n", "9"), group("g", 1))
    desk.modify(queue("default", capability={"cpu": "2"})).feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(3)))
    found = verdict(desk, 3)
    assert (found.fit, [each.pod for each in found.missing]) == (2, ["g-2"])
    assert found.missing[0].reason.startswith("queue default")


def test_of_a_gang_that_must_stay_in_one_rack_those_are_counted_that_fit_into_one():
    desk = Desk(TEXT % ", {name: network-topology-aware}").feed(*(node(f"n{i}", str(2 - i)) for i in range(2)))
    desk.feed(rack("r0", "n0"), rack("r1", "n1"))
    desk.feed(group("g", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(2)))
    found = verdict(desk, 2)
    assert (found.fit, found.enough, found.missing) == (2, True, ())
    found = verdict(desk.modify(node("n0", "1")), 2)
    assert (found.fit, [(each.pod, each.count) for each in found.missing]) == (0, [("g-0", 2)])


# -- nodes that pods name --------------------------------------------------------------------------------------


def naming(where, desk, **more):
    """A gang of two that must stay in one rack, of which the first pod names a node."""
    limit = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}} if more else {}
    desk.feed(group("g", 2, phase="Inqueue", **limit))
    for i in range(2):
        made = pod(f"g-{i}", "g", cpu="1")
        made["status"]["nominatedNodeName"] = "" if i else where
        desk.feed(made)
    desk.cycle()
    return desk.world.binds


def test_a_pod_that_names_a_node_of_which_there_is_no_object_goes_elsewhere():
    desk = Desk(TEXT % "").feed(node("n", "9"), pod("old", scheduler="other", cpu="1", node="ghost"))
    assert naming("ghost", desk) == {"g-0": "n", "g-1": "n"}


@pytest.mark.parametrize(("named", "goes"), [("n1", "n1"), ("n3", "n0")])
def test_inside_a_hyper_node_a_pod_goes_to_the_node_that_it_names_if_that_is_inside_too(named, goes):
    """Of both racks the first is as good."""
    desk = Desk(TEXT % ", {name: network-topology-aware}").feed(*(node(f"n{i}", "2") for i in range(4)))
    desk.feed(rack("r0", "n0", "n1"), rack("r1", "n2", "n3"))
    desk.modify(node("n2", "1", cordoned=True), node("n3", "1"))  # the other rack has too little room
    binds = naming(named, desk, inside=True)
    assert binds["g-0"] == goes
    assert set(binds.values()) <= {"n0", "n1"}
