"""Where filters or limits tell pods apart that are equal in everything else, nobody stands for another: neither a job for its equals nor a member for the others of its job."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod, priority_class
from choosy import Choosy, is_labelled
from pumice.framework.plugin import Plugin

CONFIG = """
actions: "%s"
tiers:
- plugins: [{name: priority}]
- plugins: [{name: gang}, {name: predicates}, {name: choosy}]
"""


class Strict(Plugin):
    """Lets no queue take a pod on that has a label."""

    name = "choosy"
    points = frozenset({"Allocatable"})

    def open(self, session):
        session.allocatable.add(lambda _, demand: "not this" if any(map(is_labelled, demand.tasks)) else None)


class Licensed(Plugin):
    """Refuses pods that have a label, wherever they go."""

    name = "choosy"
    points = frozenset({"PrePredicate"})

    def open(self, session):
        session.pre_predicate.add(lambda subject: "no licence" if is_labelled(subject.task) else None)


def full(count, action="preempt", plugin=Choosy):
    """So many nodes, each full of a pod that may go."""
    desk = Desk(CONFIG % action, plugin).feed(priority_class("low", 1), priority_class("high", 9))
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    for i in range(count):
        desk.feed(node(f"n{i:02}", "1"), pod(f"low-{i}", "low", cpu="1", node=f"n{i:02}"))
    return desk


KEPT_AWAY = {"app": "x"}


@pytest.mark.parametrize("plugin", [Choosy, Strict, Licensed])
@pytest.mark.parametrize("nodes", [1, 12])
def test_a_job_that_is_refused_for_itself_says_nothing_of_its_equals(nodes, plugin):
    desk = full(nodes, plugin=plugin)
    for i, labels in enumerate((KEPT_AWAY, {})):
        desk.feed(group(f"g{i}", 1, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"g{i}-0", f"g{i}", cpu="1", labels=labels))
    desk.cycle()
    assert len(desk.world.evictions) == 1


@pytest.mark.parametrize("nodes", [1, 12])
@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_member_that_nodes_keep_away_says_nothing_of_its_equals(action, nodes):
    desk = full(nodes, action).feed(group("g", 1, phase="Inqueue", priorityClassName="high"))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", labels=labels) for i, labels in enumerate((KEPT_AWAY, {}))))
    desk.cycle()
    assert len(desk.world.evictions) == 1


def test_a_further_member_that_nodes_keep_away_says_nothing_of_its_equals():
    desk = full(2).feed(node("own", "1"), group("g", 1, phase="Inqueue", priorityClassName="high"))
    desk.feed(pod("g-0", "g", cpu="1", node="own"))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", labels=labels) for i, labels in enumerate((KEPT_AWAY, {}), 1)))
    desk.cycle()
    assert len(desk.world.evictions) == 1


class Changing(Plugin):
    """Lets no queue take a pod on that is named, whoever that is by now."""

    name = "choosy"
    points = frozenset({"Allocatable"})
    named: frozenset[str] = frozenset()

    def open(self, session):
        session.allocatable.add(self.refusal)

    def refusal(self, _queue, demand):
        return "not this" if any(task.name in self.named for task in demand.tasks) else None


def test_a_holder_that_is_refused_for_itself_says_nothing_of_its_equals(monkeypatch):
    desk = full(2, "allocate, preempt", Changing)
    for i in range(2):
        desk.feed(group(f"g{i}", 1, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"g{i}-0", f"g{i}", cpu="1"))
    desk.cycle()
    assert len(desk.scheduler.reservations.holds) == 2
    monkeypatch.setattr(Changing, "named", frozenset({"g0-0"}))
    desk.feed(node("roomy", "9")).cycle()
    assert desk.world.binds == {"g1-0": "roomy"}
