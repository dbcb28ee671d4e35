"""Small worlds of allocate, each made for one rule: whose turn it is, who uses what is held, and what is said of whom."""

from __future__ import annotations

import msgspec
import pytest

from builders import Desk, group, metadata, node, pod, priority_class, queue
from pumice.actions.placing import waiting_tasks
from pumice.actions.placing.held_back import HeldBack
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin

GANG = """
actions: "%s"
tiers:
- plugins: [{name: priority}, {name: gang%s}]
- plugins: [{name: predicates}%s]
"""
ALLOCATE = GANG % ("allocate", "", "")


def holders(count, *plugins, more="", **options):
    """Nodes each of which is held for a pod that waits for its victim to go."""
    desk = Desk(GANG % ("allocate, preempt", ", enablePreemptable: false", more), *plugins, **options)
    desk.feed(priority_class("low", 1), priority_class("high", 9))
    for i in range(count):
        desk.feed(node(f"n{i}", "1"), group(f"low{i}", 0, phase="Running", priorityClassName="low"))
        desk.feed(pod(f"low{i}-0", f"low{i}", cpu="1", node=f"n{i}"))
        desk.feed(group(f"g{i}", 1, phase="Inqueue", priorityClassName="high"), pod(f"g{i}-0", f"g{i}", cpu="1"))
    desk.cycle()
    assert len(desk.scheduler.reservations.holds) == count
    return desk


def test_a_holder_that_stays_where_it_is_speaks_for_its_equals(monkeypatch):
    found, known = [], HeldBack.known
    monkeypatch.setattr(HeldBack, "known", lambda *args: found.append(known(*args)) or found[-1])
    desk = holders(6, taken=msgspec.structs.replace(shortcuts.ALL, resting_holders=False))
    found.clear()
    desk.feed(group("late", 1, phase="Inqueue"), pod("late-0", "late", cpu="1")).cycle()
    assert sum(each is not None for each in found) == 5


def test_who_holds_room_that_is_free_now_starts_though_an_equal_of_higher_priority_found_none():
    """Also where it could not be written on the pod which node is held for it."""
    desk = holders(2).feed(priority_class("higher", 10))
    for effect in desk.world.patches("Pod"):
        desk.settle(effect, "unavailable")
    desk.feed(group("first", 1, phase="Inqueue", priorityClassName="higher"), pod("first-0", "first", cpu="1"))
    (holder,) = (uid for uid, hold in desk.scheduler.reservations.holds.items() if hold.node == "n0")
    desk.delete(pod("low0-0", "low0", cpu="1", node="n0")).cycle()
    assert desk.world.binds == {holder.removeprefix("a."): "n0"}


class Enough(Plugin):
    """Lets no queue have more, once it is told so."""

    name = "enough"
    points = frozenset({"Overused"})
    told = False

    def open(self, session):
        session.overused.add(lambda _: "it has enough" if self.told else None)


@pytest.mark.parametrize("told", [False, True])
def test_what_is_held_is_used_only_if_that_is_not_more_than_its_queue_may_have(told, monkeypatch):
    desk = holders(1, Enough, more=", {name: enough}")
    monkeypatch.setattr(Enough, "told", told)
    desk.delete(pod("low0-0", "low0", cpu="1", node="n0")).cycle()
    assert desk.world.binds == ({} if told else {"g0-0": "n0"})


class Full(Plugin):
    """Serves one queue no further."""

    name = "full"
    points = frozenset({"Overused"})

    def open(self, session):
        session.overused.add(lambda owner: "it is full" if owner.name == "default" else None)


def test_what_is_held_for_a_job_of_a_queue_that_is_served_no_further_is_not_given_to_others():
    desk = holders(1, Full, more=", {name: full}").delete(pod("low0-0", "low0", cpu="1", node="n0"))
    desk.feed(queue("other"), group("late", 1, queue="other", phase="Inqueue"), pod("late-0", "late", cpu="1"))
    record = desk.cycle()
    assert desk.world.binds == {}
    assert "queue default is overused: it is full" in record.explain("a/g0")


def test_a_job_that_starves_in_a_queue_that_is_served_no_further_is_told_so_by_reclaim():
    desk = Desk(GANG % ("reclaim", "", ", {name: full}"), Full).feed(node("n", "1"), queue("other"))
    desk.feed(group("old", 0, phase="Running", queue="other"), pod("old-0", "old", cpu="1", node="n"))
    desk.feed(group("g", 1, phase="Inqueue"), pod("g-0", "g", cpu="1"))
    assert "reclaim (cycle 1): queue default is overused: it is full" in desk.cycle().explain("a/g")


@pytest.mark.parametrize(("room", "bound"), [(3, ["a-1"]), (4, ["a-1", "b-1"]), (5, ["a-1", "a-2", "b-1"])])
def test_gangs_that_were_left_incomplete_are_finished_one_after_the_other_and_go_on_with_what_they_have_more(
    room, bound
):
    desk = Desk(ALLOCATE).feed(node("n", str(room)), queue("z"))
    for number, name in enumerate("ab"):
        desk.feed(group(name, 2, phase="Running", queue="z", created=number))
        desk.feed(pod(f"{name}-0", name, cpu="1", node="n"))
    desk.feed(pod("a-1", "a", cpu="1"), pod("a-2", "a", cpu="1", created=1), pod("b-1", "b", cpu="1"))
    desk.feed(group("first", 2, phase="Inqueue"), *(pod(f"first-{i}", "first", cpu="1") for i in range(2)))
    desk.cycle()
    assert sorted(desk.world.binds) == bound


class Claiming(Plugin):
    """Lets a queue claim one pod more, and no second one."""

    name = "claiming"
    points = frozenset({"Preemptive"})

    def open(self, session):
        session.preemptive.add(lambda _, demand: "too much" if len(demand.tasks) > 1 else None)


def test_a_gang_is_finished_first_if_its_queue_may_claim_what_it_lacks_whatever_more_it_has():
    desk = Desk(GANG % ("allocate", "", ", {name: claiming}"), Claiming).feed(node("n", "3"), queue("z"))
    desk.feed(group("half", 2, queue="z", phase="Running"), pod("half-0", "half", cpu="1", node="n"))
    desk.feed(*(pod(f"half-{i}", "half", cpu="1", created=i) for i in (1, 2)))
    desk.feed(group("first", 2, phase="Inqueue"), *(pod(f"first-{i}", "first", cpu="1") for i in range(2)))
    desk.cycle()
    assert "half-1" in desk.world.binds
    assert "first-0" not in desk.world.binds


class Enlisted(Plugin):
    """Serves a queue until it holds a whole cpu."""

    name = "enlisted"
    points = frozenset({"Overused"})

    def open(self, session):
        sums = session.cluster.queue_sums
        session.overused.add(lambda owner: "that is enough" if sums.held(owner.row)[0] >= 1000 else None)


def test_whoever_has_used_what_was_held_is_told_why_nothing_more_is_given():
    desk = holders(1, Enlisted, more=", {name: enlisted}").delete(pod("low0-0", "low0", cpu="1", node="n0"))
    record = desk.feed(node("m", "9"), pod("g0-1", "g0", cpu="1", created=1)).cycle()
    assert desk.world.binds == {"g0-0": "n0"}
    assert "queue default is overused: that is enough" in record.explain("a/g0")


def test_what_a_gang_that_waits_has_already_is_given_to_nobody_else():
    desk = Desk(ALLOCATE).feed(node("n", "3"), group("old", 1), pod("old-0", "old", cpu="2", node="n", deleting=3600))
    desk.feed(group("g", 2, phase="Inqueue"), *(pod(f"g-{i}", "g", cpu=str(i + 1)) for i in range(2)))
    desk.feed(group("late", 1, phase="Inqueue", created=9), pod("late-0", "late", cpu="1")).cycle()
    assert desk.world.binds == {}


def test_a_gang_of_unequal_members_starts_in_another_order_than_its_own():
    desk = Desk(ALLOCATE).feed(node("n0", "3"), node("n1", "2"), group("g", 2, phase="Inqueue"))
    trace = desk.feed(*(pod(f"g-{i}", "g", cpu=str(i + 2)) for i in range(2))).cycle().trace()
    assert desk.world.binds == {"g-0": "n1", "g-1": "n0"}
    assert "allocate: a/g: 2 pods placed, 0 left" in trace


@pytest.mark.parametrize("more", [{"memory": "1Mi"}, {"nodeSelector": {"is": "elsewhere"}}])
def test_a_job_that_has_its_minimum_is_told_why_no_more_is_placed_and_once_more_is_nothing(more):
    desk = Desk(ALLOCATE).feed(node("n", "1"), group("g", 1, phase="Inqueue"), pod("g-0", "g", cpu="1"))
    desk.feed(pod("g-1", "g", cpu="1", created=1, **more))
    record = desk.cycle()
    assert "has its minimum of 1; 1 more pods wait; g-1: 0/1 nodes are unavailable" in record.explain("a/g")
    record = desk.modify(node("n", "2", labels={"is": "elsewhere"})).cycle()
    assert "0/1 nodes" not in record.explain("a/g")


@pytest.mark.parametrize(("phase", "told"), [("Inqueue", True), ("Running", False)])
def test_a_gang_that_waits_to_start_and_never_can_is_told_so(phase, told):
    desk = Desk(ALLOCATE).feed(node("n", "4"), group("g", 2, phase=phase))
    session = desk.feed(*(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(("1", "9")))).session()
    next(action for action in desk.scheduler.engine.actions if action.name == "allocate").execute(session)
    said = [*session.findings.conditions.get("a/g", ()), *session.findings.notices]
    assert bool(said) is told


PROPORTION = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: proportion}]\n'


def test_pods_beyond_the_minimum_too_are_given_what_nobody_else_is_due():
    """And who finds no node for what it is has no other turn."""
    desk = Desk(PROPORTION).feed(node("n", "4"), queue("a"), queue("b"))
    desk.feed(group("b0", 1, queue="b", phase="Inqueue"))
    desk.feed(pod("b0-0", "b0", cpu="2", nodeSelector={"is": "elsewhere"}), group("g", 1, queue="a", phase="Inqueue"))
    trace = desk.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(4))).cycle().trace()
    assert len(desk.world.binds) == 4
    assert len([line for line in trace if line.startswith("allocate: a/b0:")]) == 1


def test_a_gang_that_was_left_incomplete_is_finished_before_a_queue_that_would_come_first_is_served():
    desk = Desk(ALLOCATE).feed(node("n", "3"), queue("a"), queue("b"))
    desk.feed(group("half", 2, queue="b", phase="Running"), pod("half-0", "half", cpu="1", node="n"))
    desk.feed(pod("half-1", "half", cpu="1"))
    desk.feed(group("first", 2, queue="a", phase="Inqueue"), *(pod(f"first-{i}", "first", cpu="1") for i in range(2)))
    desk.cycle()
    assert desk.world.binds == {"half-1": "n"}


def rack(name):
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}}]
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(f"rack-{name}")}
    return {**made, "spec": {"tier": 1, "members": members}}


def test_many_small_jobs_that_must_stay_together_do_though_they_take_turns():
    desk = Desk(GANG % ("allocate", "", ", {name: network-topology-aware}"))
    for i in range(8):
        desk.feed(node(f"n{i}", "3"), rack(f"n{i}"))
    limit = {"mode": "hard", "highestTierAllowed": 1}
    for i in range(12):
        desk.feed(group(f"j{i}", 1, phase="Inqueue", networkTopology=limit))
        desk.feed(*(pod(f"j{i}-{n}", f"j{i}", cpu="1") for n in range(2)))
    desk.cycle()
    bound = desk.world.binds
    together = [(bound[f"j{i}-0"], bound[f"j{i}-1"]) for i in range(12) if f"j{i}-1" in bound and f"j{i}-0" in bound]
    assert together
    assert all(one == other for one, other in together)


class Licensed(Plugin):
    """Refuses pods that have a label, wherever they go."""

    name = "licensed"
    points = frozenset({"PrePredicate"})

    def open(self, session):
        session.pre_predicate.add(lambda subject: "no licence" if subject.task.pod.metadata.labels else None)


def test_equal_gangs_name_the_same_member_as_the_reason_for_which_they_wait():
    """Of the second it is known that it need not be tried."""
    desk = Desk(ALLOCATE).feed(node("n", "2"))
    for name in ("g", "h"):
        desk.feed(group(name, 2, phase="Inqueue", minTaskMember={"b": 1}))
        for i, role in enumerate("ab"):
            desk.feed(pod(f"{name}-{i}", name, cpu="1", role=role, created=i, nodeSelector={"is": "elsewhere"}))
    trace = desk.cycle().trace()
    said = {name: next(line for line in trace if line.startswith(f"allocate: a/{name}")) for name in "gh"}
    assert said["h"] == said["g"].replace("a/g", "a/h").replace("g-", "h-")


def test_a_gang_of_unequal_members_that_could_start_in_no_way_keeps_the_room_that_it_waits_for():
    desk = Desk(ALLOCATE).feed(node("n", "3"), group("old", 1), pod("old-0", "old", cpu="3", node="n", deleting=5))
    desk.feed(group("g", 2, phase="Inqueue"), *(pod(f"g-{i}", "g", cpu=str(i + 1)) for i in range(2)))
    (line,) = (line for line in desk.cycle().trace() if "a/g" in line)
    assert line.endswith("holds room: 0 of 2 members placed, 2 wait for pods being released")


def test_members_for_whom_room_is_held_come_before_others_of_their_job():
    desk = Desk(ALLOCATE).feed(group("g", 1), *(pod(f"g-{i}", "g", cpu="1", priority=9 - i) for i in range(3)))
    session = desk.session()
    tasks = [desk.task(f"g-{i}") for i in range(3)]
    held = tasks[2]
    for reserved, expected in (({}, tasks), ({held.uid: held}, [held, *tasks[:2]])):
        session.reserved.update(reserved)
        assert waiting_tasks.in_order(session, held.job, list(tasks)) == expected


@pytest.mark.parametrize("nominated", ["", "n"])
def test_of_a_gang_no_member_is_placed_that_its_queue_may_not_take_on(nominated):
    """Be the members asked about together or, with nodes of their own, one by one."""
    desk = Desk(GANG % ("allocate", "", ", {name: capacity}")).feed(node("n", "9"))
    desk.modify(queue("default", capability={"cpu": "1"})).feed(group("old", 0, phase="Running"))
    desk.feed(pod("old-0", "old", cpu="1", node="n"), group("g", 2, phase="Inqueue"))
    for member in (pod(f"g-{i}", "g", cpu="1") for i in range(2)):
        member["status"]["nominatedNodeName"] = nominated
        desk.feed(member)
    (line,) = (line for line in desk.cycle().trace() if "a/g" in line)
    assert line.startswith("allocate: a/g: 0 of the 2 members it still needs could be placed")
