"""Evictions that were sent: who is told, in which order they are repeated, and what is left once they are over."""

from __future__ import annotations

import pytest

from builders import SECOND, Desk, group, node, pod
from pumice.api import kinds
from pumice.cache.effects import Evict, Note, Read
from pumice.model.statuses import Status

GIVEN_UP = "a/p: its eviction was refused 1 times and nobody waits for its room any more; it stays"


def evicting(*names):
    """A desk at which pods are evicted, in this order."""
    desk = Desk().feed(node("n1"), group("g"), *(pod(name, "g", cpu="1", node="n1") for name in names or "p"))
    statement = desk.session().statement()
    for name in names or "p":
        statement.evict([desk.task(name)], "somebody else")
    statement.commit()
    return desk


@pytest.mark.parametrize("kind", [kinds.POD_GROUP, kinds.INCUBATOR_POD_GROUP])
def test_an_eviction_is_told_on_the_pod_and_on_its_group_under_the_kind_it_was_read_in(kind):
    desk = Desk().feed(node("n1"), {**group("g"), "apiVersion": kind.api_version}, pod("p", "g", node="n1")).apply()
    desk.cache.evict(desk.task("p"), "somebody else")
    assert [(each.kind, each.name, each.type, each.reason, each.message) for each in desk.world.of(Note)] == [
        (kinds.POD, "p", "Warning", "Evict", "Pod is evicted, because of somebody else"),
        (kind, "g", "Normal", "Evict", "somebody else"),
    ]


def test_evictions_are_repeated_in_the_order_in_which_they_were_sent_whichever_failed_first():
    desk = evicting("p", "q", "r")
    for sent in reversed(desk.world.of(Evict)):
        desk.settle(sent, "unavailable", "no such luck").apply()
        assert f"a/{sent.name}: no such luck; attempt 1 failed, it will be repeated" in str(desk.cache.record.trace())
        desk.now += 1
    desk.now += SECOND
    assert desk.apply().world.evictions == ["p", "q", "r"] * 2


def test_nobody_is_woken_again_before_something_is_due():
    desk = evicting()
    for reads in (1, 2):
        desk.now = desk.cache.assumptions.evictions.next_wake()
        assert desk.apply().world.reads == ["p"] * reads
        assert desk.cache.assumptions.evictions.next_wake() == desk.now + 30 * SECOND


def test_a_read_that_failed_is_made_again_after_a_second_and_not_before():
    desk = evicting()
    desk.now = desk.cache.assumptions.evictions.next_wake()
    desk.apply()
    desk.settle(desk.world.of(Read)[-1], "unavailable").apply()
    for now, reads in ((SECOND - 1, 1), (1, 2)):
        desk.now += now
        assert desk.apply().world.reads == ["p"] * reads


def test_the_eviction_of_a_pod_that_cannot_be_read_any_more_is_over():
    desk = evicting()
    desk.modify({**pod("p", "g", node="n1"), "spec": "x"})
    desk.now += 60 * SECOND
    desk.apply()
    assert (desk.world.evictions, desk.world.reads) == (["p"], [])
    assert desk.cache.assumptions.evictions.next_wake() is None


@pytest.mark.parametrize("given_up", [False, True])
def test_a_pod_whose_eviction_was_refused_runs_again_once_nobody_waits_for_its_room(given_up):
    desk = evicting()
    desk.cache.is_given_up = lambda _cluster, _victim: given_up
    desk.settle(desk.world.of(Evict)[-1], "refused").apply()
    assert desk.task("p").status == (Status.RUNNING if given_up else Status.EVICTING)
    assert desk.cluster.nodes.releasing.any() != given_up
    assert (GIVEN_UP in str(desk.cache.record.trace())) is given_up
    before = desk.cluster.evictions_refused
    desk.now += SECOND
    desk.apply()
    assert desk.world.evictions == ["p"] * (1 if given_up else 2)
    assert desk.cluster.evictions_refused == before


def test_an_eviction_that_breaks_us_when_it_is_looked_after_costs_the_next_nothing(monkeypatch):
    desk = evicting("p", "q")
    send = desk.world.send

    def broken(effect):
        if isinstance(effect, Read) and effect.name == "p":
            raise RuntimeError("no such luck")
        send(effect)

    monkeypatch.setattr(desk.world, "send", broken)
    desk.now = desk.cache.assumptions.evictions.next_wake()
    assert desk.apply().world.reads == ["q"]
    assert [str(failure) for failure in desk.cache.failures] == ["no such luck"]
    assert "the eviction of a.p could not be looked after" in str(desk.cache.record.trace())
