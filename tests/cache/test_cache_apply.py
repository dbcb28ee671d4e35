"""What bringing the model up to date means: in which order, what a failure leaves behind, and what somebody who stands by leaves alone."""

from __future__ import annotations

import pytest

import recount
from builders import NOW, SECOND, Desk, World, group, kind_of, node, pod, queue
from pumice.api import decoding
from pumice.cache.cache import FAILURES, Cache
from pumice.cache.effects import Bind, Evict, Failure, Outcome
from pumice.cache.inputs import InputListener
from pumice.model.accounting import Accounting


class Told(InputListener):
    """Takes note of everything that comes in."""

    def __init__(self):
        self.said = []

    def begins(self, now, *, standby):
        self.said.append(("begins", now - NOW, standby))

    def looking(self):
        self.said.append("looking")

    def looked(self, kind, event_type, found):
        self.said.append((event_type, kind.name, found.metadata.name))

    def settling(self):
        self.said.append("settling")

    def settled(self, outcome):
        self.said.append(("settled", outcome.effect.name))

    def ends(self, *, skipped):
        self.said.append(("ends", skipped))


@pytest.mark.parametrize("standby", [False, True])
def test_a_listener_hears_of_events_then_of_answers_and_that_nothing_was_decided_of_who_stands_by(standby):
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    desk.cycle()
    (bind,) = desk.world.of(Bind)
    desk.cache.inputs = Told()
    desk.settle(bind).feed(node("n2")).delete(pod("p", "g"))
    desk.cache.apply(NOW + 5, standby=standby)
    assert desk.cache.inputs.said == [
        ("begins", 5, standby),
        "looking",
        ("ADDED", "Node", "n2"),
        ("DELETED", "Pod", "p"),
        "settling",
        ("settled", "p"),
        *[("ends", True)] * standby,
    ]


def test_what_was_looked_at_and_is_not_taken_in_yet_waits_still():
    desk = Desk().apply().feed(node("n1"), node("n2"))
    assert desk.cache.waiting == 2
    assert desk.cache.overtaken([]) == {}
    assert desk.cache.waiting == 2
    desk.feed(node("n3"))
    assert desk.cache.waiting == 3
    assert desk.apply().cache.waiting == 0
    assert desk.cluster.nodes.count == 3


def test_objects_without_a_uid_are_each_taken_in():
    desk = Desk()
    for name in ("n1", "n2"):
        manifest = node(name)
        del manifest["metadata"]["uid"]
        desk.cache.fold(kind_of(manifest), "ADDED", decoding.decode(manifest))
    assert desk.apply().cluster.nodes.count == 2


def broken(*_):
    raise RuntimeError("no such luck")


def test_sums_are_right_after_an_object_broke_the_machinery_half_way(monkeypatch):
    desk = Desk().feed(node("n1"), group("g", 0), pod("p", "g", cpu="1", node="n1")).apply()
    count = Accounting.count

    def fails_once(accounting, task, sign):
        if task.name == "q" and not desk.cache.failures:
            broken()
        count(accounting, task, sign)

    monkeypatch.setattr(Accounting, "count", fails_once)
    desk.feed(pod("q", "g", cpu="2", node="n1")).apply()
    assert [str(failure) for failure in desk.cache.failures] == ["no such luck"]
    recount.check(desk.cluster)


@pytest.mark.parametrize("count", [3, FAILURES + 3])
def test_failures_while_somebody_stands_by_are_told_with_those_of_the_next_cycle_the_last_of_them(monkeypatch, count):
    desk = Desk().apply()
    raised = [RuntimeError(str(number)) for number in range(count)]
    left = iter(raised)

    def fails(*_):
        raise next(left)

    monkeypatch.setattr(desk.cluster, "set_node", fails)
    desk.feed(*(node(f"n{number}") for number in range(count)))
    desk.cache.apply(desk.now, standby=True)
    assert desk.cache.failures == raised
    desk.cycle()
    assert desk.scheduler.failures == raised[-FAILURES:]
    desk.cycle()
    assert desk.scheduler.failures == []


def test_binds_that_cannot_leave_cost_nobody_a_cycle(monkeypatch):
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1"))
    monkeypatch.setattr(desk.cache.assumptions, "leave", broken)
    record = desk.cycle()
    assert desk.world.binds == {"p": "n1"}
    assert "binds that were prepared could not be sent: RuntimeError: no such luck" in "\n".join(record.trace())
    assert [str(failure) for failure in desk.scheduler.failures] == ["no such luck"]


@pytest.mark.parametrize("standby", [False, True])
def test_a_queue_whose_turn_has_come_is_written_between_cycles_but_not_by_who_stands_by(standby):
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1", node="n1"))
    desk.cycle(seconds=0)
    before = len(desk.world.patches("Queue"))
    desk.feed(pod("q", "g", cpu="1", node="n1")).cycle(seconds=0)
    assert len(desk.world.patches("Queue")) == before
    desk.now += SECOND
    desk.cache.apply(desk.now, standby=standby)
    assert (len(desk.world.patches("Queue")) == before) is standby


def test_an_eviction_is_not_given_up_where_nobody_knows_who_waits():
    world = World()
    cache = Cache(world)
    for manifest in (queue("root"), queue("default"), node("n1"), group("g"), pod("p", "g", node="n1")):
        cache.feed(kind_of(manifest), "ADDED", manifest)
    cache.apply(NOW)
    (task,) = cache.cluster.tasks.values()
    cache.evict(task, "somebody else")
    cache.settled(Outcome(effect=world.of(Evict)[-1], failure=Failure("refused", "protected")))
    cache.apply(NOW)
    cache.apply(NOW + SECOND)
    assert world.evictions == ["p", "p"]
